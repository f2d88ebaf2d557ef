// Compares bars as text and as columns with JSON.stringify and with a naive reading of the same cascade.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BarCascade } from '../../src/market/bars/bar-cascade.ts'
import { readBars, readColumns } from '../../src/market/bars/bar-query.ts'
import { C, H, L, N, O, T, tradeCount, V } from '../../src/market/bars/bar-ring.ts'
import { BarTextCache } from '../../src/market/bars/bar-text.ts'
import { LATE_GRACE_MS } from '../../src/market/time/limits.ts'
import type { BarsQuery, BarsText, TextForm } from '../../src/market/types.ts'
import { BAR_FILLS, BAR_SHAPES, type Bar, TIMEFRAME_MS, TIMEFRAMES } from '../../src/schema/bar.ts'

const START_MS = 1_772_000_040_000
const TOKENS = 3

/** Every bar, one by one, then filled, then cut: no bound is used while reading. */
function naive(store: BarCascade, slot: number, query: BarsQuery, watermarkMs: number): Bar[] {
  const length = TIMEFRAME_MS[query.tf]
  const bars: Bar[] = []
  store.backwards(slot, TIMEFRAMES.indexOf(query.tf), (values, at) => {
    const [t, o, h, l, c, v] = [T, O, H, L, C, V].map((field) => values[at + field])
    bars.unshift({ t, o, h, l, c, v, n: tradeCount(values[at + N]), closed: t + length <= watermarkMs })
    return true
  })
  const filled = bars.flatMap((bar, index) => {
    const next = bars[index + 1]
    const gaps = next === undefined || query.fill === 'none' ? 0 : (next.t - bar.t) / length - 1
    const { c } = bar
    return [
      bar,
      ...Array.from({ length: gaps }, (_, gap) => ({
        t: bar.t + (gap + 1) * length,
        o: c,
        h: c,
        l: c,
        c,
        v: 0,
        n: 0,
        closed: bar.t + (gap + 2) * length <= watermarkMs,
      })),
    ]
  })
  return filled
    .filter(({ t }) => t >= (query.fromMs ?? 0) && t <= (query.toMs ?? Number.POSITIVE_INFINITY))
    .slice(-query.limit)
}

const long = ({ t, o, h, l, c, v, n, closed }: Bar) => ({
  timestamp: t,
  open: o,
  high: h,
  low: l,
  close: c,
  volume: v,
  trades: n,
  closed,
})

const textOf = ({ closed, open }: BarsText): string => closed.toString() + open

function expectText(text: BarsText, bars: Bar[], { shape, separator }: TextForm, lengthMs: number): void {
  const rows = shape === 'long' ? bars.map(long) : bars
  expect(textOf(text)).toBe(rows.map((row) => JSON.stringify(row) + separator).join(''))
  expect(text.rowCount).toBe(bars.length)
  const intervals = bars.length === 0 ? 0 : (bars[bars.length - 1].t - bars[0].t) / lengthMs + 1
  expect(text.gaps).toBe(intervals - bars.filter(({ n }) => n > 0).length)
}

/** A cascade whose tokens trade, fall silent and are cleared, with all kinds of reads in between. */
class Run {
  readonly store: BarCascade
  readonly texts: BarTextCache
  readonly #newest = new Float64Array(TOKENS)
  readonly #watermarks = new Float64Array(TOKENS)
  readonly #seen = new Map<string, string>()
  #nowMs = START_MS

  constructor(barsPerTokenMax: number, bytesMax: number) {
    this.store = new BarCascade({ tokensMax: TOKENS, barsPerTokenMax })
    this.texts = new BarTextCache(this.store, bytesMax)
  }

  trade(slot: number, laterMs: number, price: number, volume: number): void {
    const ts = Math.max(this.#nowMs + laterMs, this.#watermarks[slot])
    this.#nowMs = Math.max(this.#nowMs, ts)
    this.#newest[slot] = Math.max(this.#newest[slot], ts)
    this.#watermarks[slot] = Math.max(this.#watermarks[slot], this.#newest[slot] - LATE_GRACE_MS)
    this.store.add(slot, ts, price, volume, true, this.#watermarks[slot])
  }

  silence(slot: number, ms: number): void {
    this.#nowMs += ms
    if (this.#watermarks[slot] > 0) this.#watermarks[slot] = this.#nowMs - LATE_GRACE_MS
  }

  clear(slot: number): void {
    this.store.clear(slot)
    this.#newest[slot] = 0
    this.#watermarks[slot] = 0
  }

  read(slot: number, query: BarsQuery, form: TextForm): void {
    const watermarkMs = this.#watermarks[slot]
    const expected = naive(this.store, slot, query, watermarkMs)
    expect(readBars(this.store, slot, query, watermarkMs).bars).toEqual(expected)
    const text = this.texts.read(slot, query, watermarkMs, form)
    expectText(text, expected, form, TIMEFRAME_MS[query.tf])
    expect(this.texts.bytes).toBeGreaterThanOrEqual(0)
    const columns = readColumns(this.store, slot, query, watermarkMs)
    expect(columns.gaps).toBe(text.gaps)
    expect(Array.from(columns.t)).toEqual(expected.map(({ t }) => t))
    for (const [reader, { version }] of Object.entries({ text, columns })) {
      const asked = `${reader} ${slot} ${JSON.stringify(query)} ${version}`
      const before = this.#seen.get(asked)
      const now = JSON.stringify(expected)
      if (before !== undefined) expect(now).toBe(before)
      this.#seen.set(asked, now)
    }
  }

  /** Milliseconds since the start, as a time. */
  at(ms: number | null): number | null {
    return ms === null ? null : START_MS + ms
  }
}

const slot = fc.nat(TOKENS - 1)
const price = fc.oneof(
  fc.constantFrom(1, 1.5, 1e-9, 4.5e-9, 123_456.789),
  fc.double({ min: 1e-12, max: 1e12, noNaN: true }),
)
const later = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -LATE_GRACE_MS, max: 3_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 400_000 }) },
)
const bound = fc.option(fc.integer({ min: -5_000, max: 400_000 }))
const tf = fc.constantFrom(...TIMEFRAMES.slice(0, 5))
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(slot, later, price, price).map(
      ([of, ms, at, volume]) =>
        (run: Run) =>
          run.trade(of, ms, at, volume),
    ),
  },
  {
    weight: 6,
    arbitrary: fc
      .record({
        of: slot,
        tf,
        limit: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 1_000 })),
        fill: fc.constantFrom(...BAR_FILLS),
        from: bound,
        to: bound,
        shape: fc.constantFrom(...BAR_SHAPES),
        separator: fc.constantFrom(',' as const, '\n' as const),
      })
      .map(({ of, from, to, shape, separator, ...query }) => (run: Run) => {
        run.read(of, { mint: '', ...query, fromMs: run.at(from), toMs: run.at(to) }, { shape, separator })
      }),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(slot, fc.nat(20_000)).map(
      ([of, ms]) =>
        (run: Run) =>
          run.silence(of, ms),
    ),
  },
  { weight: 1, arbitrary: slot.map((of) => (run: Run) => run.clear(of)) },
)

describe('the cache of bar texts', () => {
  it('gives the same text as JSON.stringify, whatever was read or dropped before', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(16, 1_024),
        fc.constantFrom(0, 20_000, 10_000_000),
        fc.array(step, { maxLength: 150 }),
        (barsPerTokenMax, bytesMax, steps) => {
          const run = new Run(barsPerTokenMax, bytesMax)
          for (const act of steps) act(run)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('stays under its maximum of bytes by dropping the series that was read longest ago', () => {
    const store = new BarCascade({ tokensMax: 50, barsPerTokenMax: 1_024 })
    const texts = new BarTextCache(store, 200_000)
    for (let token = 0; token < 50; token++) {
      for (let second = 0; second < 300; second++)
        store.add(token, START_MS + second * 1_000, 1 + second, 1, true, START_MS + (second - 5) * 1_000)
      const query: BarsQuery = { mint: '', tf: '1s', limit: 100, fromMs: null, toMs: null, fill: 'none' }
      texts.read(token, query, START_MS + 294_000, { shape: 'short', separator: ',' })
      expect(texts.bytes).toBeLessThan(200_000)
    }
    expect(texts.bytes).toBeGreaterThan(100_000)
  })

  it('renders a closed bar once', () => {
    const store = new BarCascade({ tokensMax: 1, barsPerTokenMax: 1_024 })
    const texts = new BarTextCache(store)
    const query: BarsQuery = { mint: '', tf: '1s', limit: 1_000, fromMs: null, toMs: null, fill: 'none' }
    const read = (watermarkMs: number) =>
      texts.read(0, query, watermarkMs, { shape: 'short', separator: ',' })
    let openBytes = 0
    for (let second = 0; second < 2_000; second++) {
      const ts = START_MS + second * 1_000
      store.add(0, ts, 1 / (1 + second), 1, true, ts - LATE_GRACE_MS)
      openBytes = Math.max(openBytes, read(ts - LATE_GRACE_MS).open.length)
    }
    // Only the seconds within the grace are rendered at each read.
    expect(openBytes).toBeLessThan(10 * 200)
  })
})
