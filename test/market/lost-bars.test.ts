// What a token's windows say once the market has too few places for all bars, and other tokens have taken those of this one.
import { describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { WINDOWS } from '../../src/market/bars/limits.ts'
import { Market, type MarketOptions } from '../../src/market/market.ts'
import type { RowFields } from '../../src/market/types.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

/** The end of a quarter of an hour. */
const START_MS = Math.ceil(1_772_000_000_000 / DAY_MS) * DAY_MS
const MINTS = Array.from({ length: 40 }, (_, index) => mintOfSymbol(`${index}`))
/** Room for 800 bars of each timeframe that a window consists of. */
const OPTIONS: MarketOptions = { tokensMax: MINTS.length, barsPerTokenMax: 64, poolBarsMin: 64 }
const VOLUMES = { volume1m: '1m', volume1h: '1h', volume6h: '6h', volume24h: '24h' } as const

/** A market in which each token is bought for 1 USD so often, after each such step of time. */
class Traded {
  market: Market
  readonly #times: number[] = []

  constructor(stepMs: number, count: number, options = OPTIONS) {
    this.market = new Market({ changeLogEntriesMax: 1_024, ...options })
    for (let index = 0; index < count; index++) this.buyAll(START_MS + index * stepMs)
  }

  buyAll(ts: number): void {
    this.#times.push(ts)
    for (const mint of MINTS) this.buy(mint, ts)
  }

  buy(mint: string, ts: number): void {
    this.market.apply(
      { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 } as MarketEvent,
      ts,
    )
  }

  restart(options = OPTIONS): void {
    const sections = new Map([...this.market.save()].map(({ name, bytes }) => [name, Buffer.from(bytes)]))
    this.market = Market.restore(
      { changeLogEntriesMax: 1_024, ...options },
      (name) => sections.get(name) ?? null,
    )
  }

  rewind(ts: number): void {
    this.market.apply({ type: 'rewind', ts }, ts)
    this.#times.splice(0, this.#times.length, ...this.#times.filter((time) => time <= ts))
  }

  /** The trades of each window: those that a token has had in it. */
  expected(): Record<keyof typeof VOLUMES, number> {
    const { timeMs } = this.market
    const within = ({ lengthMs, timeframe }: (typeof WINDOWS)[keyof typeof WINDOWS]) => {
      const resolutionMs = { '1s': SECOND_MS, '1m': MINUTE_MS, '5m': 5 * MINUTE_MS, '15m': 15 * MINUTE_MS }[
        timeframe
      ]
      const fromMs = Math.floor(timeMs / resolutionMs) * resolutionMs - lengthMs + resolutionMs
      return this.#times.filter((ts) => ts >= fromMs).length
    }
    const { volume1m, volume1h, volume6h, volume24h } = VOLUMES
    return {
      volume1m: within(WINDOWS[volume1m]),
      volume1h: within(WINDOWS[volume1h]),
      volume6h: within(WINDOWS[volume6h]),
      volume24h: within(WINDOWS[volume24h]),
    }
  }

  /** Expects of each token and window that it tells all of its trades, or that it does not know. @returns what the first one tells */
  figures() {
    const expected = this.expected()
    for (const mint of MINTS) {
      const told = this.market.datapoint(mint)
      for (const name of Object.keys(VOLUMES) as (keyof typeof VOLUMES)[])
        expect([null, expected[name]], `${name} of ${mint}`).toContain(told?.[name])
      expect([null, expected.volume24h]).toContain(told?.buys24h)
      expect([null, expected.volume1m]).toContain(told?.tradeRate1m)
      expect(told?.buySellImbalance1m).toBe(told?.volume1m ? 1 : null)
    }
    const { volume1m, volume1h, volume6h, volume24h, tradeRate1m, buys24h } = this.market.datapoint(MINTS[0])!
    return { volume1m, volume1h, volume6h, volume24h, tradeRate1m, buys24h }
  }
}

describe('a window of which bars were lost because the market has no room for more', () => {
  it('is unknown until it has passed, and longer ones are whole', () => {
    const [minute, hour, quarterOfDay, day] = [SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS].map(
      (stepMs) => new Traded(stepMs, 48),
    )
    const unknown = { volume1m: null, tradeRate1m: null }
    expect(minute.figures()).toMatchObject({ ...unknown, volume1h: 48, volume6h: 48, volume24h: 48 })
    expect(hour.figures()).toMatchObject({ volume1m: 1, volume1h: null, volume6h: 48, volume24h: 48 })
    expect(quarterOfDay.figures()).toMatchObject({ volume1m: 1, volume1h: 12, volume6h: null, volume24h: 48 })
    expect(day.figures()).toMatchObject({ volume1m: 1, volume1h: 4, volume24h: null, buys24h: null })
    for (const [traded, name] of [
      [minute, 'volume1m'],
      [hour, 'volume1h'],
      [quarterOfDay, 'volume6h'],
      [day, 'volume24h'],
    ] as const) {
      traded.restart()
      expect(traded.figures()[name]).toBe(null)
      traded.market.advanceTo(traded.market.timeMs + WINDOWS[VOLUMES[name]].lengthMs)
      expect(traded.figures()[name]).toBe(0)
      traded.buyAll(traded.market.timeMs)
      expect(traded.figures()[name]).toBe(1)
    }
  })

  it('is unknown where a start has less room than there was', () => {
    const traded = new Traded(15 * MINUTE_MS, 24, { ...OPTIONS, tokensMax: 60 })
    expect(traded.figures()).toMatchObject({ volume6h: 24, volume24h: 24, buys24h: 24 })
    const { barsReclaimed } = traded.market.stats()
    traded.restart()
    expect(traded.figures()).toMatchObject({ volume6h: null, volume24h: null, buys24h: null })
    expect(traded.market.datapoint(MINTS[39])).toMatchObject({ volume24h: 24, buys24h: 24 })
    expect(traded.market.stats().barsReclaimed).toBeGreaterThan(barsReclaimed)
    traded.market.advanceTo(traded.market.timeMs + DAY_MS)
    expect(traded.figures()).toMatchObject({ volume24h: 0, buys24h: 0 })
  })

  it('is unknown where market time goes back to a bar whose shorter ones were lost', () => {
    const traded = new Traded(5 * MINUTE_MS, 25)
    expect(traded.figures()).toMatchObject({ volume6h: null, volume24h: 25 })
    traded.rewind(START_MS + 20 * MINUTE_MS)
    expect(traded.figures()).toMatchObject({ volume24h: null })
    traded.market.advanceTo(START_MS + DAY_MS + HOUR_MS)
    expect(traded.figures()).toMatchObject({ volume6h: 0, volume24h: 0 })
  })

  it('is unknown, too, where a bar before the one that lost its shorter ones is still open', () => {
    const traded = new Traded(0, 1)
    const quarterMs = START_MS + 15 * MINUTE_MS
    for (let index = 0; index < 20; index++) traded.buyAll(quarterMs + index * 15 * SECOND_MS)
    expect(traded.figures()).toMatchObject({ volume24h: 21 })
    traded.rewind(quarterMs + 70 * SECOND_MS)
    expect(traded.figures()).toMatchObject({ volume6h: null, volume24h: null })
  })

  it('has no trade that was taken back after all seconds of the token were lost', () => {
    const traded = new Traded(MINUTE_MS, 32)
    for (let index = 0; index < 16; index++) traded.buyAll(START_MS + 2 * HOUR_MS + index * MINUTE_MS)
    traded.rewind(START_MS + HOUR_MS)
    traded.figures()
    expect(traded.market.datapoint(MINTS[39])).toMatchObject({ volume24h: 32 })
    traded.rewind(START_MS + 12 * MINUTE_MS)
    traded.figures()
  })
})

describe('a row whose token loses bars to another', () => {
  /** Fields of rows, which are kept as texts, and those of the DataPoint that say the same. */
  const SAME = {
    volume_24h_usd: 'volume24h',
    volume_1h_usd: 'volume1h',
    change_1h: 'priceChange1h',
    change_6h: 'priceChange6h',
    change_24h: 'priceChange24h',
  } as const
  const NAMES = Object.keys(SAME) as (keyof typeof SAME)[]
  const FIELDS: RowFields = { key: 'figures', fields: ['mint', ...NAMES] }
  function rowsOf(market: Market): Map<string, unknown[]> {
    const query = {
      tab: 'all',
      sort: 'volume_24h',
      order: 'desc',
      offset: 0,
      limit: 40,
      fields: FIELDS,
    } as const
    const rows = market.page(query).lines.map((line) => JSON.parse(line.toString()))
    return new Map(rows.map((row) => [row.mint, NAMES.map((name) => row[name])]))
  }

  it.each([
    ['hour', MINUTE_MS],
    ['day', 15 * MINUTE_MS],
  ])('shows its volume of the %s as unknown at once, and followers are told', (_, stepMs) => {
    const bought = new Traded(0, 1)
    const { market } = bought
    let different = 0
    for (let index = 1; index < 48 && different < 5; index++) {
      const atMs = START_MS + index * stepMs
      market.advanceTo(atMs)
      // To and fro: in the same order each would take its own.
      for (const mint of index % 2 === 0 ? MINTS : MINTS.toReversed()) {
        const [before, { seq }, { barsReclaimed }] = [rowsOf(market), market, market.stats()]
        bought.buy(mint, atMs)
        if (market.stats().barsReclaimed === barsReclaimed) continue
        const told = new Set<string>()
        market.changedMints(seq, (each) => told.add(each))
        for (const [other, row] of rowsOf(market)) {
          const point = market.datapoint(other)
          expect(row).toEqual(NAMES.map((name) => point?.[SAME[name]]))
          if (`${row}` === `${before.get(other)}` || other === mint) continue
          expect(told).toContain(other)
          different++
        }
      }
    }
    expect(different).toBeGreaterThan(0)
  })
})

describe('a DataPoint whose token loses bars to another', () => {
  const textOf = (market: Market, mint: string) => {
    const { json, version } = market.datapointJson(mint)!
    return { text: json.toString(), version }
  }

  it.each([
    ['minute', SECOND_MS],
    ['sparkline', 30 * MINUTE_MS],
  ])('shows no more than is left of its %s, and has another version, also within a second', (_, stepMs) => {
    const bought = new Traded(0, 1)
    const { market } = bought
    let different = 0
    for (let index = 1; index < 60 && different < 5; index++) {
      const atMs = START_MS + index * stepMs
      market.advanceTo(atMs)
      // To and fro: in the same order each would take its own.
      for (const mint of index % 2 === 0 ? MINTS : MINTS.toReversed()) {
        // What is read twice is kept.
        for (const each of MINTS) textOf(market, each)
        const before = new Map(MINTS.map((each) => [each, textOf(market, each)]))
        const { barsReclaimed } = market.stats()
        bought.buy(mint, atMs)
        if (market.stats().barsReclaimed === barsReclaimed) continue
        for (const other of MINTS) {
          const { text, version } = textOf(market, other)
          expect(JSON.parse(text)).toEqual(market.datapoint(other))
          if (other === mint || text === before.get(other)?.text) continue
          expect(version).not.toBe(before.get(other)?.version)
          different++
        }
      }
    }
    expect(different).toBeGreaterThan(0)
  })
})
