import { describe, expect, it } from 'vitest'
import { random } from '../../bench/datasets/random.ts'
import { Market } from '../../src/market/market.ts'
import { LATE_GRACE_MS } from '../../src/market/time/limits.ts'
import { EvictedMints } from '../../src/market/tokens/evicted-mints.ts'
import { MINTS_KNOWN_MIN } from '../../src/market/tokens/limits.ts'
import type { PatchFields } from '../../src/schema/datapoint.ts'
import type { TradeEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

const START_MS = 1_772_000_040_000
const mint = (name: string | number) => mintOfSymbol(`${name}`)
const trade = (of: string, ts: number, more: Partial<TradeEvent> = {}): TradeEvent => ({
  type: 'trade',
  mint: of,
  ts,
  side: 'buy',
  tokenAmount: 10,
  priceUsd: 1,
  ...more,
})
const all = { tab: 'all', sort: 'hot', order: 'desc', limit: 1_000, offset: 0 } as const
const mints = (market: Market) =>
  market
    .page(all)
    .ndjson.toString()
    .split('\n')
    .slice(0, -1)
    .map((row) => JSON.parse(row).mint)

describe('a market at its maximum of tokens', () => {
  it('evicts the token whose last event is oldest, with its bars and its row', () => {
    const market = new Market({ tokensMax: 3 })
    for (const name of ['a', 'b', 'c']) market.apply(trade(mint(name), START_MS), START_MS)
    market.apply({ type: 'live', mint: mint('a'), ts: START_MS, isLive: true }, START_MS + 1)
    market.apply(trade(mint('d'), START_MS + 2), START_MS + 2)
    expect(market.has(mint('b'))).toBe(false)
    expect(mints(market).sort()).toEqual(['a', 'c', 'd'].map(mint).sort())
    expect(market.stats()).toMatchObject({ tokens: 3, tokensMax: 3, evicted: 1 })
    expect(market.versionsAt(mint('b'), START_MS)).toEqual([])
  })

  it('starts a token that comes back anew, except for its count of analyses', () => {
    const market = new Market({ tokensMax: 1 })
    market.apply({ type: 'analysisCount', mint: mint('a'), ts: START_MS, count: 7 }, START_MS)
    market.apply(trade(mint('a'), START_MS, { priceUsd: 5 }), START_MS)
    market.apply(
      { type: 'patch', mint: mint('a'), ts: START_MS, fields: { holderCount: 9, volume24h: 1e6 } },
      START_MS,
    )
    market.apply(trade(mint('b'), START_MS), START_MS)
    market.apply(trade(mint('a'), START_MS + 1_000), START_MS + 1_000)
    expect(market.item(mint('a'))).toMatchObject({
      analysis_count: 7,
      holder_count: null,
      volume_24h_usd: 10,
      priceUsd: 1,
    })
    const bars = market.bars({
      mint: mint('a'),
      tf: '1s',
      limit: 10,
      fromMs: null,
      toMs: null,
      fill: 'none',
    })!.bars
    expect(bars).toHaveLength(1)
  })

  it('marks the bars in whose interval a token was evicted and came back as possibly incomplete', () => {
    const since: [string, number, number][] = []
    const market = new Market({
      tokensMax: 1,
      onBarClosed: (bar) => {
        if (bar.tf === '1m') since.push([bar.mint, bar.t, bar.watchedSinceMs])
      },
    })
    const apply = (of: string, second: number) =>
      market.apply(trade(mint(of), START_MS + 1_000 * second), START_MS + 1_000 * second)
    apply('a', 0)
    expect(market.barsWholeFromMs(mint('a'))).toBe(0)
    apply('b', 20)
    apply('a', 30)
    // The minute in which it had gone is not whole, each later one is: a trade would have brought it back.
    expect(market.barsWholeFromMs(mint('a'))).toBe(START_MS + 20_001)
    apply('a', 70)
    apply('a', 200)
    market.emitClosedBars(1)
    expect(since.filter(([of]) => of === mint('a')).map(([, t, from]) => [t, t >= from])).toEqual([
      [START_MS, false],
      [START_MS + 60_000, true],
    ])
    expect(market.barsWholeFromMs(mint('b'))).toBe(0)
  })

  it('does so too where what takes the place is an older event that a feed heals', () => {
    const at = (second: number) => START_MS + 1_000 * second
    const market = new Market({ tokensMax: 1 })
    const apply = (of: string, second: number, receivedSecond = second) =>
      expect(market.apply(trade(mint(of), at(second)), at(receivedSecond))).toBe(null)
    const lost = { type: 'disconnect', feed: 'f', ts: at(0), healUntilMs: at(600) } as const
    market.apply(lost, lost.ts)
    apply('a', 60)
    // The market has had the trade of `a` by then.
    apply('b', 1, 70)
    apply('a', 80)
    expect(market.barsWholeFromMs(mint('a'))).toBe(at(70) + 1)
  })

  it('treats a new mint as held before once an evicted mint was forgotten', () => {
    const evicted = new EvictedMints(2)
    for (const [at, name] of ['a', 'b', 'c'].entries()) evicted.add(mint(name), START_MS + at)
    expect(['b', 'c', 'a', 'new'].map((name) => evicted.take(mint(name)) - START_MS)).toEqual([1, 2, 0, 0])
    // Of several that were forgotten the latest, in whatever order they were.
    const one = new EvictedMints(1)
    for (const [name, afterMs] of Object.entries({ a: 10, b: 5, c: 20 }))
      one.add(mint(name), START_MS + afterMs)
    expect(one.take(mint('a'))).toBe(START_MS + 10)
  })

  it('forgets the count of analyses that changed longest ago when there are too many', () => {
    const market = new Market({ tokensMax: 2 })
    const count = (of: string, count: number) =>
      market.apply({ type: 'analysisCount', mint: of, ts: START_MS, count }, START_MS)
    market.apply(trade(mint('a'), START_MS), START_MS)
    market.apply(trade(mint('b'), START_MS), START_MS)
    count(mint('a'), 3)
    count(mint('b'), 4)
    for (let at = 0; at < MINTS_KNOWN_MIN - 2; at++) count(`${at}`, 1)
    count(mint('a'), 5)
    const seq = market.seq
    count('one more', 1)
    expect([market.item(mint('a'))!.analysis_count, market.item(mint('b'))!.analysis_count]).toEqual([5, 0])
    expect(market.seq, 'followers get the row that changed').toBe(seq + 1)
    expect(market.page(all).ndjson.toString()).toContain('"analysis_count":0')
  })

  it('never holds more than the maximum in a storm of new tokens', () => {
    const market = new Market({ tokensMax: 50 })
    for (let index = 0; index < 2_000; index++)
      market.apply(trade(mint(index), START_MS + index), START_MS + index)
    expect(market.stats()).toMatchObject({ tokens: 50, evicted: 1_950 })
    expect(mints(market)).toHaveLength(50)
    expect(mints(market)).toContain(mint(1_999))
  })

  it('evicts thousands of tokens in the order of their last events', { tags: 'drill' }, () => {
    const tokensMax = 3_000
    const market = new Market({ tokensMax })
    const next = random(1)
    /** A Map keeps the order of insertion: its first key is the token touched longest ago. */
    const held = new Map<string, true>()
    for (let index = 0; index < 20_000; index++) {
      const key = mint(Math.floor(next() ** 2 * 2 * tokensMax))
      if (!held.delete(key) && held.size === tokensMax) {
        const [coldest] = held.keys()
        held.delete(coldest)
      }
      held.set(key, true)
      market.apply(trade(key, START_MS + index), START_MS + index)
      expect(market.stats().tokens).toBe(held.size)
    }
    expect(market.stats().evicted).toBeGreaterThan(1_000)
    for (let index = 0; index < 2 * tokensMax; index++) {
      expect(market.has(mint(index)), `token ${index}`).toBe(held.has(mint(index)))
    }
  })
})

describe('the bars of a token', () => {
  it('are the newest ones when it has reached its maximum', () => {
    const market = new Market({ tokensMax: 2, barsPerTokenMax: 64 })
    for (let second = 0; second < 500; second++) {
      market.apply(
        trade(mint('a'), START_MS + second * 1_000, { priceUsd: second + 1 }),
        START_MS + second * 1_000,
      )
    }
    const { bars } = market.bars({
      mint: mint('a'),
      tf: '1s',
      limit: 1_000,
      fromMs: null,
      toMs: null,
      fill: 'none',
    })!
    expect(bars.length).toBeGreaterThanOrEqual(64)
    expect(bars.length).toBeLessThan(100)
    expect(bars[bars.length - 1].c).toBe(500)
  })

  it('include a trade that is late within the grace, and a later one is counted and dropped', () => {
    const market = new Market({ tokensMax: 2 })
    market.apply(trade(mint('a'), START_MS + 60_000, { priceUsd: 2 }), START_MS + 60_000)
    expect(
      market.apply(trade(mint('a'), START_MS + 60_000 - LATE_GRACE_MS, { priceUsd: 3 }), START_MS + 60_000),
    ).toBeNull()
    expect(market.apply(trade(mint('a'), START_MS + 60_000 - LATE_GRACE_MS - 1), START_MS + 60_000)).toBe(
      'late',
    )
    expect(market.stats().lateDropped).toBe(1)
    expect(market.item(mint('a'))?.priceUsd).toBe(2)
  })

  it('are filled with the previous close, between the first and the last trade only', () => {
    const market = new Market({ tokensMax: 2 })
    for (const [minute, priceUsd] of [
      [0, 1],
      [3, 2],
      [4, 3],
      [7, 4],
    ]) {
      market.apply(trade(mint('a'), START_MS + minute * 60_000, { priceUsd }), START_MS + minute * 60_000)
    }
    const query = { mint: mint('a'), tf: '1m', limit: 1_000, fromMs: null, toMs: null } as const
    const none = market.bars({ ...query, fill: 'none' })!
    expect(none.bars.map((bar) => bar.c)).toEqual([1, 2, 3, 4])
    expect(none.gaps).toBe(4)
    const filled = market.bars({ ...query, fill: 'prev' })!
    expect(filled.bars.map((bar) => [bar.c, bar.n])).toEqual([
      [1, 1],
      [1, 0],
      [1, 0],
      [2, 1],
      [3, 1],
      [3, 0],
      [3, 0],
      [4, 1],
    ])
    expect(market.bars({ ...query, fill: 'prev', limit: 3 })!.bars.map((bar) => bar.c)).toEqual([3, 3, 4])
    const minute = 60_000
    const part = market.bars({
      ...query,
      fill: 'prev',
      fromMs: START_MS + minute,
      toMs: START_MS + 5 * minute,
    })!
    expect(part.bars.map((bar) => [(bar.t - (START_MS - (START_MS % minute))) / minute, bar.c])).toEqual([
      [1, 1],
      [2, 1],
      [3, 2],
      [4, 3],
      [5, 3],
    ])
  })

  it('are open where they are filled and a trade may still come, and their version tells when time closes them', () => {
    const market = new Market({ tokensMax: 2 })
    const query = { mint: mint('a'), tf: '1s', limit: 99, fromMs: null, toMs: null, fill: 'prev' } as const
    const form = { shape: 'short', separator: ',' } as const
    const read = () => {
      const { bars, version } = market.bars(query)!
      const text = market.barsText(query, form)!
      expect(JSON.parse(`[${`${text.closed}${text.open}`.slice(0, -1)}]`)).toEqual(bars)
      expect(text.version).toBe(version)
      return { closed: bars.filter((bar) => bar.closed).length, prices: bars.map(({ c }) => c), version }
    }
    market.apply(trade(mint('a'), START_MS), START_MS)
    // Its clock is ahead.
    market.apply(trade(mint('a'), START_MS + 30_000, { priceUsd: 2 }), START_MS)
    const first = read()
    expect(first.closed).toBe(25)
    expect(market.apply(trade(mint('a'), START_MS + 28_500, { priceUsd: 3 }), START_MS)).toBeNull()
    const late = read()
    expect(late.closed).toBe(25)
    expect(late.prices.slice(-4)).toEqual([1, 3, 3, 2])
    // The token is silent: an interval without a trade closes, and no bar.
    market.advanceTo(START_MS + 32_000)
    const silent = read()
    expect(silent.closed).toBe(27)
    expect(new Set([first, late, silent].map(({ version }) => version)).size).toBe(3)
  })

  it('are none for a known mint without trades, and null for an unknown mint', () => {
    const market = new Market({ tokensMax: 2 })
    market.apply({ type: 'token', mint: mint('a'), ts: START_MS, name: 'A', symbol: 'A' }, START_MS)
    expect(
      market.bars({ mint: mint('a'), tf: '1m', limit: 5, fromMs: null, toMs: null, fill: 'none' })!.bars,
    ).toEqual([])
    expect(
      market.bars({ mint: mint('b'), tf: '1m', limit: 5, fromMs: null, toMs: null, fill: 'none' }),
    ).toBeNull()
  })
})

describe('a patch', () => {
  it('sets exactly the nine compared values that it names', () => {
    const market = new Market({ tokensMax: 2 })
    const fields = {
      priceUsd: 0.5,
      marketCap: 1_000,
      volume24h: 250,
      liquidity: 60,
      holderCount: 12,
      top10HolderPct: 20,
      buys24h: 7,
      sells24h: 3,
      bondingProgress: 40,
    }
    market.apply({ type: 'patch', mint: mint('a'), ts: START_MS, fields }, START_MS)
    expect(market.snapshot(mint('a'))).toEqual(fields)
    market.apply(trade(mint('a'), START_MS + 1, { priceUsd: 1 }), START_MS + 1)
    expect(market.snapshot(mint('a'))).toEqual({
      ...fields,
      priceUsd: 1,
      marketCap: 2_000,
      volume24h: 260,
      buys24h: 8,
    })
  })

  it('of a volume is shown as it was set, to the last digit, however much was traded before', () => {
    const market = new Market({ tokensMax: 2 })
    market.apply(trade(mint('a'), START_MS, { tokenAmount: 1e12 }), START_MS)
    const fields = { volume1m: 0.00001, volume1h: 0.1, volume6h: 3, volume24h: 12.34 }
    market.apply({ type: 'patch', mint: mint('a'), ts: START_MS, fields }, START_MS)
    expect(market.datapoint(mint('a'))).toMatchObject(fields)
  })

  it('of the supply moves the market cap that counted all of it, and none that was told', () => {
    const market = new Market({ tokensMax: 2 })
    const patch = (name: string, fields: PatchFields) =>
      market.apply({ type: 'patch', mint: mint(name), ts: START_MS, fields }, START_MS)
    for (const name of ['a', 'b']) {
      const told = { type: 'token', mint: mint(name), ts: START_MS, name, symbol: name } as const
      market.apply({ ...told, totalSupply: 2e9 }, START_MS)
      market.apply(trade(mint(name), START_MS, { priceUsd: 2 }), START_MS)
    }
    patch('b', { marketCap: 1e9 })
    for (const name of ['a', 'b']) patch(name, { totalSupply: 1e9 })
    expect(market.datapoint(mint('a'))).toMatchObject({ totalSupply: 1e9, marketCap: 2e9, fdv: 2e9 })
    expect(market.datapoint(mint('b'))).toMatchObject({ totalSupply: 1e9, marketCap: 1e9, fdv: 2e9 })
  })

  it('of a price of zero leaves a market cap that was told before any price, until a price says of how many tokens', () => {
    const market = new Market({ tokensMax: 1 })
    const marketCapAfter = (fields: PatchFields) => {
      market.apply({ type: 'patch', mint: mint('a'), ts: START_MS, fields }, START_MS)
      return market.datapoint(mint('a'))?.marketCap
    }
    const told: PatchFields[] = [{ marketCap: 1_000 }, { priceUsd: 0 }, { priceUsd: 2 }, { priceUsd: 3 }]
    expect(told.map(marketCapAfter)).toEqual([1_000, 1_000, 1_000, 1_500])
  })

  it('sets values to null, and unknown values are null and never zero', () => {
    const market = new Market({ tokensMax: 2 })
    market.apply(
      { type: 'patch', mint: mint('a'), ts: START_MS, fields: { holderCount: 5, has_mint_authority: false } },
      START_MS,
    )
    market.apply({ type: 'patch', mint: mint('a'), ts: START_MS, fields: { holderCount: null } }, START_MS)
    expect(market.datapoint(mint('a'))).toMatchObject({
      holderCount: null,
      has_mint_authority: false,
      has_freeze_authority: null,
      priceUsd: null,
    })
  })
})

describe('a bonding curve', () => {
  it('determines price, progress, supply and liquidity of a pump.fun token', () => {
    const market = new Market({ tokensMax: 2 })
    market.apply({ type: 'solPrice', ts: START_MS, usd: 100 }, START_MS)
    const vTokens = 1_073_000_000 - 396_550_000
    const vSol = (30 * 1_073_000_000) / vTokens
    market.apply(trade(mint('a'), START_MS, { priceUsd: undefined, solAmount: 1, vSol, vTokens }), START_MS)
    const datapoint = market.datapoint(mint('a'))!
    expect(datapoint.bondingProgress).toBeCloseTo(50, 9)
    expect(datapoint.priceSol).toBe(vSol / vTokens)
    expect(datapoint.priceUsd).toBe((vSol / vTokens) * 100)
    expect(datapoint.totalSupply).toBe(1e9)
    expect(datapoint.liquidity).toBeCloseTo(2 * (vSol - 30) * 100, 6)
  })

  it('determines no progress where it is not pump.fun’s', () => {
    const market = new Market({ tokensMax: 2 })
    market.apply(trade(mint('a'), START_MS, { vSol: 500, vTokens: 5_000 }), START_MS)
    expect(market.datapoint(mint('a'))).toMatchObject({
      bondingProgress: null,
      virtualSolReserves: 500,
      priceUsd: 1,
    })
  })

  it('needs the price of SOL for a trade without a price in USD', () => {
    const market = new Market({ tokensMax: 2 })
    expect(market.apply(trade(mint('a'), START_MS, { priceUsd: undefined, solAmount: 1 }), START_MS)).toBe(
      'sol_price_unknown',
    )
    expect(market.has(mint('a'))).toBe(false)
  })
})
