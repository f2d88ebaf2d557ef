// A market that was saved and restored, anywhere, and one that was made again from its events alone, answer as the one that lived.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Simulation } from '../../src/ingest/simulator/simulation.ts'
import { CheckpointError } from '../../src/lib/sections/checkpoint-error.ts'
import { Market, type MarketOptions } from '../../src/market/market.ts'
import type { ClosedBar } from '../../src/schema/bar.ts'
import type { MarketEvent, RunHeader } from '../../src/schema/event.ts'
import { SORTS, TABS } from '../../src/schema/vocabulary.ts'
import { anyCharacter } from '../support/any-character.ts'
import { fewAndMany } from '../support/cases.ts'
import { KINDS, MINTS, READS } from './answers.ts'

const START_MS = 1_772_000_000_000
/** Fewer places than tokens, and so few bars of a token that the oldest are dropped. */
const OPTIONS: MarketOptions = {
  tokensMax: 4,
  newWindowMs: 3_600_000,
  barsPerTokenMax: 8,
  changeLogEntriesMax: 4_096,
}
const HEADER: RunHeader = {
  runId: 'run',
  version: '0',
  formatVersion: 1,
  node: 'v22',
  settings: new Market(OPTIONS).settings,
  feeds: [],
  simulated: false,
  checkpointEventNo: null,
  startedAtMs: START_MS,
}

/** One token has most of the events, as differences show only where several events of a token come together. */
const mint = fc.oneof(
  { weight: 4, arbitrary: fc.constant(MINTS[0]) },
  { weight: 2, arbitrary: fc.constantFrom(...MINTS) },
)
/** Often across the end of an interval of a window, or of a window itself. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 1_500 }) },
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(300_000, 600_000, 900_000, 3_600_000, 21_600_000, 85_800_000, 86_400_000),
  },
)
/** Sums of these depend on the order in which they are added up. */
const amount = fc.constantFrom(0.1, 0.3, 0.7, 1 / 3)
const text = fc.oneof(
  fc.constantFrom('', 'A', 'b\n"', 'é', '🦭', '\ud800', '\u0000', '日本'),
  fc.string({ unit: anyCharacter, maxLength: 6 }),
)
/** Reserves on the curve, near it, and far from it. */
const reserves = fc.constantFrom(
  { vSol: 30, vTokens: 1_073_000_000 },
  { vSol: 60, vTokens: 536_500_000 },
  { vSol: 10, vTokens: 10 },
)
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { freq: 3 })
const feed = fc.constantFrom('a', 'b')
const of = <Type extends string, Fields extends object>(
  type: Type,
  fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
) => fc.record({ type: fc.constant(type), ...fields })

const trade = fc
  .tuple(
    of('trade', {
      mint,
      side: fc.constantFrom('buy' as const, 'sell' as const),
      tokenAmount: amount,
      lateMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 7_000 })),
      wallet: maybe(text),
      tx: maybe(text),
    }),
    fc.oneof(fc.record({ priceUsd: amount }), fc.record({ solAmount: amount })),
    fc.oneof(fc.constant({}), reserves),
  )
  .map((parts) => Object.assign({}, ...parts))
const patch = of('patch', {
  mint,
  fields: fc.record(
    {
      volume1m: maybe(amount),
      volume24h: maybe(amount),
      buys24h: maybe(fc.nat(9)),
      tradeRate1m: maybe(fc.nat(9)),
      priceUsd: maybe(amount),
      priceSol: maybe(amount),
      totalSupply: maybe(fc.constantFrom(1e6, 1e9)),
      marketCap: maybe(amount),
      solPriceUsd: fc.constantFrom(100, 150, null),
      liquidity: maybe(amount),
      holderCount: maybe(fc.nat(9)),
      name: text,
      description: maybe(text),
      createdAt: maybe(fc.constantFrom(START_MS, START_MS + 3_000_000)),
      isLive: fc.boolean(),
      bondingComplete: fc.boolean(),
      topHolders: fc.constant([{ address: 'x', amount: 0.1, pct: 1 }]),
      has_mint_authority: maybe(fc.boolean()),
      enriched_source: maybe(text),
    },
    { requiredKeys: [] },
  ),
})
const others = [
  of('token', {
    mint,
    name: text,
    symbol: text,
    creator: maybe(text),
    totalSupply: maybe(fc.constantFrom(1e6, 1e9)),
  }),
  of('solPrice', { usd: fc.constantFrom(100, 150) }),
  of('graduated', { mint, pool: maybe(text) }),
  of('live', { mint, isLive: fc.boolean(), viewerCount: maybe(fc.nat(9)) }),
  of('analysisCount', { mint, count: fc.nat(9) }),
  of('disconnect', {
    feed,
    awayMs: maybe(fc.nat(90_000)),
    healMs: maybe(fc.constantFrom(500, 60_000, 7_200_000)),
  }),
  of('reconnect', { feed }),
  of('gap', { lengthMs: fc.nat(90_000), reason: fc.constantFrom('downtime' as const, 'lost' as const) }),
  of('run', { aheadBy: fc.nat(1_000) }),
  of('rewind', { backMs: fc.constantFrom(900, 40_000, 3_600_000, 90_000_000) }),
]
const payload = fc.oneof(
  { weight: 10, arbitrary: trade },
  { weight: 3, arbitrary: patch },
  ...others.map((arbitrary) => ({ weight: 1, arbitrary: arbitrary as fc.Arbitrary<object> })),
)

const act = fc.record({
  step,
  /** null: time passes, and closed bars are looked for. */
  payload: fc.option(payload, { freq: 6 }),
  sweep: fc.nat(4),
  reads: fc.subarray(KINDS),
  isSaved: fc.nat(5).map((chance) => chance === 0),
})
type Act = typeof act extends fc.Arbitrary<infer Each> ? Each : never

function toEvent(payload: object, atMs: number, seq: number): MarketEvent {
  const {
    lateMs = 0,
    awayMs = null,
    healMs = null,
    lengthMs = 0,
    aheadBy = 0,
    ...others
  } = payload as Record<string, never>
  const { backMs = 0, ...fields } = others
  return {
    // What goes back is not before the first event.
    ts: backMs > 0 ? Math.max(START_MS, atMs - backMs) : atMs - lateMs,
    ...(awayMs !== null && { sinceMs: atMs - awayMs }),
    ...(healMs !== null && { healUntilMs: atMs + healMs }),
    ...{ fromMs: atMs - lengthMs, toMs: atMs, firstSeq: seq + aheadBy, header: HEADER },
    ...(fields as object),
  } as unknown as MarketEvent
}

/** A market with what it has emitted. */
class Watched {
  readonly bars: ClosedBar[] = []
  readonly profiles: string[] = []
  market: Market

  constructor() {
    this.market = new Market(this.#options)
  }

  get #options(): MarketOptions {
    return {
      ...OPTIONS,
      onBarClosed: (bar) => this.bars.push(bar),
      onProfileChanged: (mint) => this.profiles.push(mint),
    }
  }

  /** Ends the market, and goes on with one that is restored from it. */
  replace(): void {
    const sections = saved(this.market)
    this.market = Market.restore(this.#options, (name) => sections.get(name) ?? null)
    expect(differing(saved(this.market), sections)).toEqual([])
  }

  /** @returns the event, if the market took it. */
  apply({ payload, sweep }: Act, atMs: number): MarketEvent | null {
    const { market } = this
    if (payload === null) {
      market.advanceTo(atMs)
      market.emitClosedBars(sweep)
      return null
    }
    const event = toEvent(payload, atMs, market.seq)
    return market.apply(event, atMs) === null ? event : null
  }
}

/** Copies, at places that are not aligned, as they may lie in a file. */
function saved(market: Market): Map<string, Buffer> {
  const sections = new Map<string, Buffer>()
  for (const { name, bytes } of market.save()) {
    const file = Buffer.allocUnsafeSlow(bytes.length + 1)
    file.set(bytes, 1)
    sections.set(name, file.subarray(1))
  }
  return sections
}

/** The sections that are not the same in both. */
const differing = (one: Map<string, Buffer>, other: Map<string, Buffer>): string[] =>
  [...new Set([...one.keys(), ...other.keys()])].filter(
    (name) => !(one.get(name)?.equals(other.get(name) ?? Buffer.of(0)) ?? false),
  )

function expectSameAnswers(market: Market, other: Market): void {
  const since = Math.max(market.oldestSince, other.oldestSince)
  for (const kind of KINDS)
    if (kind !== 'changes')
      expect(JSON.stringify(READS[kind](market)), kind).toBe(JSON.stringify(READS[kind](other)))
  expect(market.changesSince(since, 'all', 100)).toEqual(other.changesSince(since, 'all', 100))
  const figures = ({ timeMs, seq, solPrice, barsEmittedToMs }: Market) => ({
    ...{ timeMs, seq, solPrice, barsEmittedToMs },
  })
  expect(figures(market)).toEqual(figures(other))
  expect(market.gaps(100)).toEqual(other.gaps(100))
}

for (const { runs, tags } of fewAndMany(8, 50))
  it(`a market that is saved and restored anywhere answers, emits and is saved as one that is not: ${runs} cases`, {
    tags,
  }, () => {
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 60, size: 'max' }), (acts) => {
        const lived = new Watched()
        const restored = new Watched()
        let atMs = START_MS
        for (const each of acts) {
          atMs += each.step
          lived.apply(each, atMs)
          restored.apply(each, atMs)
          atMs = lived.market.timeMs
          for (const kind of each.reads) READS[kind](lived.market)
          if (each.isSaved) restored.replace()
        }
        expectSameAnswers(lived.market, restored.market)
        expect(restored.market.stats()).toEqual(lived.market.stats())
        expect(restored.bars).toEqual(lived.bars)
        expect(restored.profiles).toEqual(lived.profiles)
        expect(differing(saved(restored.market), saved(lived.market))).toEqual([])
      }),
      { numRuns: runs },
    )
  })

/** What a market has that its events do not decide: how often it was told the time, and which bars were looked for. */
const NOT_OF_EVENTS = ['head', 'figures', 'sweep', 'bars.emitted']

for (const { runs, tags } of fewAndMany(8, 50))
  it(`the events that a market took, with the times in effect, make the same market again: ${runs} cases`, {
    tags,
  }, () => {
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 60, size: 'max' }), (acts) => {
        const lived = new Watched()
        const again = new Watched()
        let atMs = START_MS
        for (const each of acts) {
          atMs += each.step
          const event = lived.apply(each, atMs)
          atMs = lived.market.timeMs
          for (const kind of each.reads) READS[kind](lived.market)
          if (each.isSaved) again.replace()
          if (event === null) continue
          again.market.apply(event, lived.market.timeMs)
          expect(again.market.seq).toBe(lived.market.seq)
        }
        const last: MarketEvent = { type: 'solPrice', ts: atMs, usd: 99 }
        for (const { market } of [lived, again]) market.apply(last, atMs)
        const others = differing(saved(again.market), saved(lived.market))
        expect(others.filter((name) => !NOT_OF_EVENTS.includes(name))).toEqual([])
        for (const kind of KINDS.filter((each) => each !== 'changes'))
          expect(JSON.stringify(READS[kind](again.market)), kind).toBe(
            JSON.stringify(READS[kind](lived.market)),
          )
      }),
      { numRuns: runs },
    )
  })

it('a simulated market that is saved in the middle goes on as one that is not', { tags: 'drill' }, () => {
  const simulation = new Simulation({ seed: 7, tokens: 250, tradesPerSecond: 40, startMs: START_MS })
  const options = { tokensMax: 200 }
  const lived = new Market(options)
  let restored = new Market(options)
  const both = {
    apply(event: MarketEvent, atMs: number) {
      lived.apply(event, atMs)
      return restored.apply(event, atMs)
    },
  }
  for (const atMs of [-70_000_000, -3_000_000, -400_000, 0, 20_000, 60_000].map((ms) => START_MS + ms)) {
    simulation.advance(atMs, both)
    const sections = saved(restored)
    restored = Market.restore(options, (name) => sections.get(name) ?? null)
    for (const tab of TABS)
      for (const sort of SORTS) {
        const query = { tab, sort, order: 'desc', offset: 0, limit: 50 } as const
        expect(restored.page(query).ndjson.equals(lived.page(query).ndjson)).toBe(true)
      }
    for (const line of lived.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 20 }).lines) {
      const { mint } = JSON.parse(line.toString())
      expect(restored.datapointJson(mint)).toEqual(lived.datapointJson(mint))
      expect(restored.versionsAt(mint, atMs - 60_000)).toEqual(lived.versionsAt(mint, atMs - 60_000))
    }
    expect(differing(saved(restored), saved(lived))).toEqual([])
  }
  expect(lived.stats().evicted).toBeGreaterThan(10)
})

describe('a checkpoint that cannot be used', () => {
  const filled = () => {
    const { market } = new Watched()
    for (const [index, mint] of MINTS.slice(0, 3).entries()) {
      const atMs = START_MS + index
      market.apply({ type: 'token', mint, ts: atMs, name: 'A', symbol: 'B' }, atMs)
      market.apply({ type: 'trade', mint, ts: atMs, side: 'buy', tokenAmount: 1, priceUsd: 1 }, atMs)
    }
    return saved(market)
  }
  const restore = (sections: Map<string, Buffer>, options = OPTIONS) =>
    Market.restore(options, (name) => sections.get(name) ?? null)

  it('is refused with a sentence, whichever section is missing, cut or damaged', { tags: 'drill' }, () => {
    const sections = filled()
    for (const [name, bytes] of sections) {
      const flipped = Buffer.from(bytes)
      if (flipped.length > 0) flipped[flipped.length >> 1] ^= 1
      const others = [null, bytes.subarray(1), Buffer.concat([bytes, Buffer.of(0)]), flipped]
      for (const [index, other] of others.entries()) {
        if (bytes.length === 0 && (index === 1 || index === 3)) continue
        const changed = new Map(sections)
        if (other === null) changed.delete(name)
        else changed.set(name, other)
        const sentence = /^[A-Z].*\.$/
        expect(() => restore(changed), `${name} ${index}`).toThrow(
          expect.objectContaining({ name: CheckpointError.name, message: expect.stringMatching(sentence) }),
        )
      }
    }
  })

  it('is refused if it holds more tokens than there is room for, or had other bounds', () => {
    expect(() => restore(filled(), { ...OPTIONS, tokensMax: 2 })).toThrow(
      'The checkpoint holds 3 tokens, and this server at most 2.',
    )
    for (const other of [{ barsPerTokenMax: 16 }, { versionsMax: 5 }])
      expect(() => restore(filled(), { ...OPTIONS, ...other })).toThrow(CheckpointError)
  })

  it('is refused if it is something else', () => {
    for (const head of ['', '{}', '0 {}', '2745614147 {}', 'null'])
      expect(() => restore(new Map([['head', Buffer.from(head)]]))).toThrow(CheckpointError)
    expect(() => restore(new Map())).toThrow('This is no checkpoint of a market: it has no head.')
  })
})

it('a market may be restored with room for more tokens, and another age up to which they are new', () => {
  const { market } = new Watched()
  market.apply({ type: 'token', mint: MINTS[0], ts: START_MS, name: 'A', symbol: 'A' }, START_MS)
  market.advanceTo(START_MS + 4_000_000)
  const sections = saved(market)
  const restored = Market.restore(
    { ...OPTIONS, tokensMax: 9, newWindowMs: 5_000_000 },
    (name) => sections.get(name) ?? null,
  )
  const total = (of: Market) => of.page({ tab: 'new', sort: 'hot', order: 'desc', offset: 0, limit: 1 }).total
  expect([total(market), total(restored)]).toEqual([0, 1])
  for (const mint of MINTS)
    restored.apply({ type: 'token', mint, ts: START_MS, name: 'A', symbol: 'A' }, START_MS + 4_000_000)
  expect(restored.stats()).toMatchObject({ tokens: 5, tokensMax: 9, evicted: 0 })
})

it('a bar of a late trade that was open at the checkpoint is emitted, though it ended before those that are known to be written', () => {
  const { market: lived } = new Watched()
  const trade = (mint: string, ts: number) =>
    ({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 }) as const
  const nowMs = START_MS + 600_000
  lived.apply({ type: 'token', mint: MINTS[1], ts: nowMs, name: 'B', symbol: 'B' }, nowMs)
  lived.apply(trade(MINTS[0], nowMs - 90_000), nowMs)
  const sections = saved(lived)
  const emitted: ClosedBar[] = []
  const market = Market.restore(
    { ...OPTIONS, onBarClosed: (bar) => emitted.push(bar) },
    (name) => sections.get(name) ?? null,
  )
  market.emitBarsEndedSince(nowMs)
  // Nor does it matter that the token was known before its first trade.
  market.apply(trade(MINTS[1], nowMs - 60_000), nowMs + 1_000)
  market.advanceTo(nowMs + 30_000)
  market.emitClosedBars(9)
  expect(
    emitted
      .filter(({ tf }) => tf === '1m')
      .map(({ mint }) => mint)
      .toSorted(),
  ).toEqual([MINTS[0], MINTS[1]].toSorted())
})

it('bars that may have been lost with a process are emitted again, in order of time', () => {
  const lived = new Watched()
  for (let minute = 0; minute < 7; minute++) {
    const ts = START_MS + minute * 60_000
    lived.market.apply({ type: 'trade', mint: MINTS[0], ts, side: 'buy', tokenAmount: 1, priceUsd: 1 }, ts)
  }
  lived.market.advanceTo(START_MS + 3_600_000)
  lived.market.emitClosedBars(9)
  const restored = new Watched()
  const sections = saved(lived.market)
  const again: ClosedBar[] = []
  const market = Market.restore(
    { ...OPTIONS, onBarClosed: (bar) => again.push(bar) },
    (name) => sections.get(name) ?? null,
  )
  const sinceMs = START_MS + 150_000
  market.emitBarsEndedSince(sinceMs)
  const length = { '1m': 60_000, '5m': 300_000, '15m': 900_000, '1h': 3_600_000 } as Record<string, number>
  const expected = lived.bars.filter(({ tf, t }) => t + length[tf] > sinceMs)
  const plain = ({ closedAtMs: _, ...bar }: ClosedBar) => bar
  const byKey = (a: ClosedBar, b: ClosedBar) => (a.tf === b.tf ? a.t - b.t : a.tf < b.tf ? -1 : 1)
  expect(expected.length).toBeGreaterThan(3)
  expect(again.toSorted(byKey).map(plain)).toEqual(expected.toSorted(byKey).map(plain))
  for (const tf of Object.keys(length)) {
    const starts = again.filter((bar) => bar.tf === tf).map(({ t }) => t)
    expect(starts).toEqual(starts.toSorted((a, b) => a - b))
  }
  market.emitClosedBars(9)
  expect(again).toHaveLength(expected.length)
  expect(restored.bars).toEqual([])
})
