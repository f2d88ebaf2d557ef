// What a market's own trades say of a token, and when they say nothing: the four fields of a submission that need no provider.
import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import { Market } from '../../src/market/market.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

/** The end of a quarter of an hour. */
const START_MS = Math.ceil(1_772_000_000_000 / DAY_MS) * DAY_MS
const [MINT, OTHER, THIRD] = ['own', 'other', 'third'].map(mintOfSymbol)
const UNKNOWN_QUOTE = mintOfSymbol('a quote that nobody knows')

/** A market whose time began at START_MS. */
class Watch {
  market = new Market({ tokensMax: 2, changeLogEntriesMax: 1_024 })
  nowMs = START_MS

  constructor() {
    this.apply({ type: 'solPrice', usd: 100 })
  }

  apply(event: object, atMs = this.nowMs): void {
    expect(this.market.apply({ ts: atMs, ...event } as MarketEvent, atMs)).toBeNull()
  }

  pass(ms: number): void {
    this.nowMs += ms
    this.market.advanceTo(this.nowMs)
  }

  launch(mint = MINT): void {
    this.apply({ type: 'token', mint, name: 'Own', symbol: 'OWN' })
  }

  trade(
    wallet: string | null,
    side: 'buy' | 'sell' = 'buy',
    mint = MINT,
    fields: object = { priceUsd: 2 },
  ): void {
    this.apply({ type: 'trade', mint, side, tokenAmount: 3, wallet, ...fields })
  }

  /** Wallets of an hour and a day, bought and sold. */
  figures(mint = MINT): (number | null)[] {
    const own = this.market.enriched(mint)!
    expect(this.market.datapoint(mint)).toMatchObject(own)
    return [own.unique_wallet_1h, own.unique_wallet_24h, own.buy_volume_24h_usd, own.sell_volume_24h_usd]
  }

  /** Trades of a minute, buys and sells of a day, and the volume of a day. */
  counts(mint = MINT): (number | null)[] {
    const { tradeRate1m, buys24h, sells24h, volume24h } = this.market.datapoint(mint)!
    expect(this.market.snapshot(mint)).toMatchObject({ buys24h, sells24h, volume24h })
    return [tradeRate1m, buys24h, sells24h, volume24h]
  }

  /** @param without sections that the checkpoint lacks, as one of an older version does. */
  restart(without: readonly string[] = []): void {
    const sections = new Map<string, Buffer>()
    const rest = [...this.market.save()].map(({ name, bytes }) => ({ name, bytes: Buffer.from(bytes) }))
    for (const { name, bytes } of rest)
      sections.set(name, name === 'head' ? headWithout(bytes, without) : bytes)
    this.market = Market.restore(
      { tokensMax: 2, changeLogEntriesMax: 1_024 },
      (name) => sections.get(name) ?? null,
    )
  }
}

/** The head of a checkpoint that has not these sections. */
function headWithout(bytes: Buffer, names: readonly string[]): Buffer {
  const text = bytes.toString()
  const head = JSON.parse(text.slice(text.indexOf(' ') + 1))
  for (const name of names) delete head.sections[name]
  const json = JSON.stringify(head)
  return Buffer.from(`${crc32(json)} ${json}`)
}

describe('a token that was watched from its launch', () => {
  it('has all four from its first trade on', () => {
    const watch = new Watch()
    watch.pass(MINUTE_MS + 300)
    watch.launch()
    expect(watch.figures()).toEqual([0, 0, 0, 0])
    watch.trade('a')
    watch.pass(2_000)
    watch.trade('b', 'sell')
    watch.trade('a')
    expect(watch.figures()).toEqual([2, 2, 12, 6])
    watch.pass(2 * HOUR_MS)
    watch.trade('c')
    expect(watch.figures()).toEqual([1, 3, 18, 6])
    watch.restart()
    expect(watch.figures()).toEqual([1, 3, 18, 6])
    watch.pass(DAY_MS)
    expect(watch.figures()).toEqual([0, 0, 0, 0])
  })

  it('has none while a gap touches the window, but those of an hour are known as soon as that has passed', () => {
    const watch = new Watch()
    watch.pass(MINUTE_MS)
    watch.launch()
    watch.trade('a')
    watch.apply({ type: 'disconnect', feed: 'push' })
    expect(watch.figures()).toEqual([null, null, null, null])
    watch.pass(1_000)
    watch.apply({ type: 'reconnect', feed: 'push' })
    watch.trade('b')
    expect(watch.figures()).toEqual([null, null, null, null])
    watch.pass(HOUR_MS)
    expect(watch.figures()).toEqual([0, null, null, null])
    watch.pass(DAY_MS)
    watch.trade('c')
    expect(watch.figures()).toEqual([1, 1, 6, 0])
  })

  it('has none after it was evicted and came back, until the windows are covered again', () => {
    const watch = new Watch()
    watch.pass(MINUTE_MS)
    watch.launch()
    watch.trade('a')
    for (const mint of [OTHER, THIRD]) {
      watch.pass(1_000)
      watch.launch(mint)
    }
    expect(watch.market.enriched(MINT)).toBeNull()
    watch.trade('b')
    expect(watch.figures()).toEqual([null, null, null, null])
    watch.pass(HOUR_MS)
    watch.trade('c')
    expect(watch.figures()).toEqual([1, null, null, null])
    watch.pass(DAY_MS)
    expect(watch.figures()).toEqual([0, 0, 0, 0])
  })
})

describe('a token that was there before', () => {
  it('has the fields of a window once the market has watched that long', () => {
    const watch = new Watch()
    watch.pass(MINUTE_MS)
    watch.trade('a')
    expect(watch.figures()).toEqual([null, null, null, null])
    watch.pass(HOUR_MS - MINUTE_MS)
    watch.trade('a')
    expect(watch.figures()).toEqual([1, null, null, null])
    watch.pass(DAY_MS - HOUR_MS)
    watch.trade('b', 'sell')
    expect(watch.figures()).toEqual([1, 2, 6, 6])
  })

  it('does not become younger by what is said of its creation later', () => {
    const watch = new Watch()
    watch.pass(MINUTE_MS)
    watch.trade('a')
    watch.pass(MINUTE_MS)
    watch.launch()
    expect(watch.figures()).toEqual([null, null, null, null])
  })
})

it('a trade without a wallet makes the wallets unknown, and one without a price the volumes', () => {
  const watch = new Watch()
  watch.pass(MINUTE_MS)
  for (const mint of [MINT, OTHER]) {
    watch.launch(mint)
    watch.trade('a', 'buy', mint)
  }
  watch.trade(null)
  watch.trade('b', 'sell', OTHER, { quoteMint: UNKNOWN_QUOTE, quoteAmount: 7 })
  expect(watch.figures()).toEqual([null, null, 12, 0])
  expect(watch.figures(OTHER)).toEqual([2, 2, null, null])
  watch.restart()
  expect(watch.figures(OTHER)).toEqual([2, 2, null, null])
  watch.pass(DAY_MS)
  expect([watch.figures(), watch.figures(OTHER)]).toEqual([
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ])
})

describe('trades without a price', () => {
  const UNPRICED = { quoteMint: UNKNOWN_QUOTE, quoteAmount: 7 }
  /** With two priced buys of 6 USD, and a buy and a sell without a price at the end of a minute. */
  const watched = () => {
    const watch = new Watch()
    watch.pass(MINUTE_MS)
    watch.trade('a')
    watch.trade('a')
    watch.pass(MINUTE_MS - 1_000)
    watch.trade('b', 'buy', MINT, UNPRICED)
    watch.trade('b', 'sell', MINT, UNPRICED)
    return watch
  }

  it('are counted in their windows, and leave them as others do', () => {
    const watch = watched()
    expect(watch.counts()).toEqual([4, 3, 1, null])
    watch.pass(1_000)
    expect(watch.counts()).toEqual([2, 3, 1, null])
    watch.restart()
    watch.trade('c', 'sell', MINT, UNPRICED)
    expect(watch.counts()).toEqual([3, 3, 2, null])
    watch.pass(DAY_MS - 15 * MINUTE_MS)
    watch.trade('c', 'sell', MINT, UNPRICED)
    expect(watch.counts()).toEqual([1, 3, 3, null])
    watch.pass(15 * MINUTE_MS)
    expect(watch.counts()).toEqual([0, 0, 1, null])
    watch.pass(DAY_MS)
    expect(watch.counts()).toEqual([0, 0, 0, 0])
  })

  it('that come late count as of their own time', () => {
    const watch = watched()
    const trade = { type: 'trade', mint: MINT, side: 'sell', tokenAmount: 1, ...UNPRICED }
    expect(watch.market.apply({ ...trade, ts: watch.nowMs - 4_000 } as MarketEvent, watch.nowMs)).toBeNull()
    expect(watch.counts()).toEqual([5, 3, 2, null])
    watch.pass(MINUTE_MS - 3_000)
    expect(watch.counts()).toEqual([2, 3, 2, null])
  })

  it('are added to patched counts, and change no patched volume and no patched change of price', () => {
    const watch = watched()
    const fields = { buys24h: 10, sells24h: null, tradeRate1m: 9, volume24h: 50, priceChange1h: 2 }
    watch.apply({ type: 'patch', mint: MINT, fields })
    expect(watch.counts()).toEqual([9, 10, null, 50])
    watch.trade('b', 'buy', MINT, UNPRICED)
    expect(watch.counts()).toEqual([5, 11, 1, 50])
    expect(watch.market.datapoint(MINT)?.priceChange1h).toBe(2)
    watch.restart()
    expect(watch.counts()).toEqual([5, 11, 1, 50])
  })

  it('are not counted in a checkpoint of before: counts are unknown there until the window has passed', () => {
    const watch = watched()
    watch.restart(['windows.countsFrom', 'windows.unpriced'])
    expect(watch.counts()).toEqual([null, null, null, null])
    watch.pass(DAY_MS)
    expect(watch.counts()).toEqual([0, 0, 0, 0])
  })

  it('of later than a time to which the market goes back make counts unknown, and others stay', () => {
    const [behind, before] = [watched(), watched()]
    behind.apply({ type: 'rewind', ts: behind.nowMs - 2_000 })
    expect(behind.counts()).toEqual([null, null, null, null])
    const rightMs = before.nowMs
    before.pass(DAY_MS)
    before.apply({ type: 'rewind', ts: rightMs })
    expect(before.counts()).toEqual([4, 3, 1, null])
  })

  it('are forgotten with their token', () => {
    const watch = watched()
    for (const mint of [OTHER, THIRD, MINT]) watch.launch(mint)
    expect(watch.counts()).toEqual([0, 0, 0, 0])
  })
})

it('market time that goes back makes wallets unknown that were seen later than now, and no others', () => {
  const watch = new Watch()
  watch.pass(MINUTE_MS)
  for (const mint of [MINT, OTHER]) {
    watch.launch(mint)
    watch.trade('a', 'buy', mint)
  }
  const rightMs = watch.nowMs + MINUTE_MS
  watch.pass(3 * HOUR_MS)
  watch.trade('b')
  watch.apply({ type: 'rewind', ts: rightMs })
  watch.nowMs = rightMs
  expect(watch.figures().slice(0, 2)).toEqual([null, null])
  expect(watch.figures(OTHER).slice(0, 2)).toEqual([1, 1])
  watch.pass(2 * HOUR_MS)
  watch.trade('c')
  expect(watch.figures().slice(0, 2)).toEqual([1, null])
})

it('a provider comes first, and where it says nothing own trades do; the source names both, and the date is the older one', () => {
  const watch = new Watch()
  watch.pass(MINUTE_MS)
  watch.launch()
  watch.trade('a')
  expect(watch.market.datapoint(MINT)).toMatchObject({ enriched_source: 'trades', enriched_at: watch.nowMs })
  const enrichedAt = watch.nowMs
  const fields = { unique_wallet_24h: 70, enriched_at: enrichedAt, enriched_source: 'birdeye' }
  watch.apply({ type: 'patch', mint: MINT, fields })
  watch.pass(5_000)
  expect(watch.market.datapoint(MINT)).toMatchObject({
    unique_wallet_24h: 70,
    unique_wallet_1h: 1,
    enriched_source: 'birdeye+trades',
    enriched_at: enrichedAt,
  })
  expect(watch.market.enriched(MINT)).toMatchObject({ unique_wallet_24h: 70, buy_volume_24h_usd: 6 })
  const rest = { unique_wallet_1h: 1, buy_volume_24h_usd: 2, sell_volume_24h_usd: 3 }
  watch.apply({ type: 'patch', mint: MINT, fields: rest })
  expect(watch.market.datapoint(MINT)).toMatchObject({ ...rest, enriched_source: 'birdeye+push' })
})
