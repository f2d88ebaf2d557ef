// Feeds that lose their sources and bring what they missed, against the same events without an outage: nothing shows that there was one.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import type { ClosedBar } from '../../src/schema/bar.ts'
import type { MarketEvent, MissingPart } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../src/schema/timeframe.ts'
import { fewAndMany } from '../support/cases.ts'
import { KINDS, MINTS, READS } from './answers.ts'

/** Five minutes before the windows of 24 hours move. */
const START_MS = 1_772_000_100_000
const FEEDS = ['a', 'b'] as const
type Feed = (typeof FEEDS)[number]
/** Prices of SOL come from it: it is never away. */
const PRICES = 'prices'

/** What a source has: at `atMs` it reaches the server. */
interface Sent {
  feed: Feed | typeof PRICES
  event: MarketEvent
  atMs: number
}
interface Received {
  event: MarketEvent
  atMs: number
}
interface Outage {
  feed: Feed
  fromMs: number
  /** The source is there again. */
  toMs: number
  /** The server knows. */
  knownMs: number
  /** All is brought. */
  healedMs: number
  missing: MissingPart[]
}

/** What the sources of a market have. */
interface World {
  /** Times of trades may differ by this much from their order. */
  delayMsMax: number
  /** Whether both feeds have trades of the same tokens. */
  isShared: boolean
  /** Amounts whose sums do not depend on their order. */
  amounts: readonly number[]
  hasSolPrices: boolean
}
const EXACT_AMOUNTS = [0.5, 1, 2.25, 8]

const act = fc.record({
  afterMs: fc.oneof(fc.integer({ min: 1, max: 900 }), fc.integer({ min: 1, max: 40_000 })),
  feed: fc.constantFrom(...FEEDS),
  mint: fc.nat(MINTS.length - 1),
  kind: fc.oneof(
    { weight: 20, arbitrary: fc.constant('trade' as const) },
    { weight: 1, arbitrary: fc.constant('token' as const) },
    { weight: 1, arbitrary: fc.constant('graduated' as const) },
    { weight: 1, arbitrary: fc.constant('patch' as const) },
    { weight: 2, arbitrary: fc.constant('solPrice' as const) },
  ),
  delayMs: fc.nat(4_000),
  amount: fc.nat(99),
  price: fc.integer({ min: 1, max: 9 }),
  isBuy: fc.boolean(),
  isInSol: fc.boolean(),
})
type Act = typeof act extends fc.Arbitrary<infer Each> ? Each : never
const acts = fc.array(act, { minLength: 1, maxLength: 120, size: 'max' })

function sentBy(each: readonly Act[], { delayMsMax, isShared, amounts, hasSolPrices }: World): Sent[] {
  let ts = START_MS
  const sent = each.flatMap(({ afterMs, feed, mint: index, kind, delayMs, ...of }): Sent[] => {
    ts += afterMs
    // Tokens of one feed only, or of both.
    const mint = MINTS[isShared ? index : 2 * (index % 2) + FEEDS.indexOf(feed)] as string
    const atMs = ts + (kind === 'trade' ? Math.min(delayMs, delayMsMax) : 0)
    switch (kind) {
      case 'trade': {
        const side = of.isBuy ? 'buy' : 'sell'
        const paid = of.isInSol && hasSolPrices ? { solAmount: of.price } : { priceUsd: of.price }
        const tokenAmount = amounts[of.amount % amounts.length] as number
        return [{ feed, event: { type: 'trade', mint, ts, side, tokenAmount, tx: `${ts}`, ...paid }, atMs }]
      }
      case 'token':
        // Of texts that two feeds send the one that comes last counts.
        return [
          {
            feed: isShared ? 'a' : feed,
            event: { type: 'token', mint, ts, name: `${ts}`, symbol: 'S' },
            atMs,
          },
        ]
      case 'graduated':
        return isShared ? [] : [{ feed, event: { type: 'graduated', mint, ts }, atMs }]
      case 'patch':
        return isShared
          ? []
          : [{ feed, event: { type: 'patch', mint, ts, fields: { holderCount: of.amount } }, atMs }]
      default:
        return hasSolPrices
          ? [{ feed: PRICES, event: { type: 'solPrice', ts, usd: 2 ** of.price }, atMs: ts }]
          : []
    }
  })
  const first: Sent = { feed: PRICES, event: { type: 'solPrice', ts: START_MS, usd: 4 }, atMs: START_MS }
  return [first, ...sent.sort((a, b) => a.atMs - b.atMs)]
}

const outageShape = fc.record({
  feed: fc.constantFrom(...FEEDS),
  afterMs: fc.nat(300_000),
  lengthMs: fc.oneof(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 1, max: 600_000 })),
  detectMs: fc.nat(60_000),
  healMs: fc.integer({ min: 1, max: 120_000 }),
  missing: fc.tuple(fc.nat(100), fc.nat(100)),
})

/** Outages of a feed one after the other. */
function outagesOf(
  shapes: readonly (typeof outageShape extends fc.Arbitrary<infer Each> ? Each : never)[],
  detectMsMax: number,
  isPartial: boolean,
): Outage[] {
  const ends = { a: START_MS, b: START_MS }
  return shapes.map(({ feed, afterMs, lengthMs, detectMs, healMs, missing: [at, share] }) => {
    const fromMs = ends[feed] + 1 + afterMs
    const toMs = fromMs + lengthMs
    const healedMs = toMs + healMs
    ends[feed] = healedMs
    const partFromMs = fromMs + Math.floor((lengthMs * at) / 100)
    const partToMs = Math.min(toMs, partFromMs + Math.floor((lengthMs * share) / 100))
    return {
      ...{ feed, fromMs, toMs, healedMs },
      knownMs: Math.min(toMs, fromMs + Math.min(detectMs, detectMsMax)),
      missing: isPartial ? [{ fromMs: partFromMs, toMs: partToMs, reason: 'budget' as const }] : [],
    }
  })
}

/** What the server receives where nothing is lost, and where it is brought later. */
function received(sent: readonly Sent[], outages: readonly Outage[]): Received[] {
  const all: Received[] = []
  const missed = new Map<Outage, Sent[]>(outages.map((outage) => [outage, []]))
  for (const each of sent) {
    const outage = outages.find(
      ({ feed, fromMs, healedMs }) => feed === each.feed && each.atMs > fromMs && each.atMs <= healedMs,
    )
    if (outage === undefined) all.push(each)
    else missed.get(outage)?.push(each)
  }
  for (const [{ feed, fromMs, toMs, knownMs, healedMs, missing }, events] of missed) {
    const lost = {
      type: 'disconnect',
      ts: knownMs,
      feed,
      sinceMs: fromMs,
      healUntilMs: healedMs + 1,
    } as const
    all.push({ event: lost, atMs: knownMs })
    const isHad = ({ event }: Sent) =>
      !missing.some((part) => event.ts >= part.fromMs && event.ts <= part.toMs)
    const brought = events.filter(isHad).sort((a, b) => a.event.ts - b.event.ts)
    for (const [index, { event, atMs }] of brought.entries()) {
      const share = Math.floor(((healedMs - toMs) * (index + 1)) / (brought.length + 1))
      all.push({ event, atMs: Math.max(toMs + share, atMs) })
    }
    const told = missing.length > 0 && { missing }
    all.push({ event: { type: 'reconnect', ts: healedMs, feed, healed: true, ...told }, atMs: healedMs })
  }
  // What the two feeds bring is interleaved; of one feed its order is kept.
  return all.map((each, index) => ({ ...each, index })).sort((a, b) => a.atMs - b.atMs || a.index - b.index)
}

interface Lived {
  market: Market
  emitted: Map<string, ClosedBar[]>
}

const newLived = (): Lived => {
  const emitted: Lived['emitted'] = new Map()
  const market = new Market({
    ...{ tokensMax: 8, changeLogEntriesMax: 1_024 },
    onBarClosed(bar) {
      const key = `${bar.mint} ${bar.tf} ${bar.t}`
      emitted.set(key, [...(emitted.get(key) ?? []), bar])
    },
  })
  return { market, emitted }
}

/** @param mayBeLate a loss may be told so late that another feed's trades have closed what a trade of it is for */
function live(events: readonly Received[], lived = newLived(), mayBeLate = false): Lived {
  const { market } = lived
  for (const { event, atMs } of events) {
    market.advanceTo(atMs)
    market.emitClosedBars(100)
    const rejection = market.apply(event, atMs)
    if (!mayBeLate || rejection !== 'late') expect(rejection).toBe(null)
  }
  return lived
}

const datapointsOf = ({ market }: Lived, isExact: boolean) =>
  MINTS.map((mint) => {
    const datapoint = market.datapoint(mint)
    if (datapoint === null) return null
    const { snapshotAt: _, recentTrades, ...figures } = datapoint
    // What was too late without the outage is not among the others.
    const recent = recentTrades.slice(0, 12)
    return { ...figures, recentTrades: isExact ? recentTrades : recent }
  })

const barsOf = ({ market }: Lived) =>
  MINTS.map((mint) =>
    TIMEFRAMES.map(
      (tf) => market.bars({ mint, tf, limit: 1_000, fromMs: null, toMs: null, fill: 'none' })?.bars,
    ),
  )
const emittedOf = ({ emitted }: Lived) =>
  new Map(
    [...emitted].map(([key, bars]) => [
      key,
      bars.map(({ closedAtMs: _, watchedSinceMs: __, ...bar }) => bar),
    ]),
  )
const hotOf = ({ market }: Lived) =>
  market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 10 }).ndjson.toString()
const scoresOf = ({ market }: Lived) => MINTS.map((mint) => market.item(mint)?.hot_score ?? 0)

const endOf = (events: readonly Received[], outages: readonly Outage[]): number =>
  Math.max(START_MS, ...events.map(({ atMs }) => atMs), ...outages.map(({ healedMs }) => healedMs)) + 100_000

/** Figures of the market's own trades are unknown where a gap stays. */
const OWN_TRADES = [
  ...['unique_wallet_1h', 'unique_wallet_24h', 'buy_volume_24h_usd', 'sell_volume_24h_usd'],
  ...['enrichedFrom', 'enriched_at', 'enriched_source'],
]
const withoutOwnTrades = (datapoints: ReturnType<typeof datapointsOf>) =>
  datapoints.map(
    (figures) =>
      figures && Object.fromEntries(Object.entries(figures).filter(([name]) => !OWN_TRADES.includes(name))),
  )

/** @param areOwnTradesLeft out: where gaps stay, and where what was first known of a token came in another order */
function expectSame(
  one: Lived,
  other: Lived,
  atMs: number,
  isExact: boolean,
  areOwnTradesLeft = false,
): void {
  for (const { market } of [one, other]) {
    market.advanceTo(atMs)
    market.emitClosedBars(100)
    market.emitClosedBars(100)
    expect(market.gaps(10).open).toEqual([])
  }
  expect(barsOf(one)).toEqual(barsOf(other))
  const shown = areOwnTradesLeft
    ? withoutOwnTrades
    : (datapoints: ReturnType<typeof datapointsOf>) => datapoints
  expect(shown(datapointsOf(one, isExact))).toEqual(shown(datapointsOf(other, isExact)))
  if (isExact) expect(hotOf(one)).toEqual(hotOf(other))
  else
    for (const [index, score] of scoresOf(one).entries())
      expect(score).toBeCloseTo(scoresOf(other)[index] ?? 0, 6)
}

for (const { runs, tags } of fewAndMany(6, 75)) {
  it(`a feed that brings what it missed, in order, leaves no mark, to the last digit, ${runs} cases`, {
    tags,
  }, () => {
    const world = { delayMsMax: 0, isShared: false, amounts: [0.1, 0.3, 0.7, 1 / 3], hasSolPrices: true }
    fc.assert(
      fc.property(acts, fc.array(outageShape, { maxLength: 4 }), (each, shapes) => {
        const sent = sentBy(each, world)
        const outages = outagesOf(shapes, 5_000, false)
        const [healed, whole] = [live(received(sent, outages)), live(received(sent, []))]
        const endMs = endOf(sent, outages)
        expectSame(healed, whole, endMs, true)
        expect(emittedOf(healed)).toEqual(emittedOf(whole))
        expect(healed.market.gaps(10).ended).toEqual([])
        expect(healed.market.stats().trades).toBe(whole.market.stats().trades)
      }),
      { numRuns: runs },
    )
  })

  it(`of tokens of two feeds of which one is away, trades that come in another order make the same market, ${runs} cases`, {
    tags,
  }, () => {
    const world = { delayMsMax: 4_000, isShared: true, amounts: EXACT_AMOUNTS, hasSolPrices: false }
    fc.assert(
      fc.property(acts, fc.array(outageShape, { maxLength: 4 }), (each, shapes) => {
        const sent = sentBy(each, world)
        const outages = outagesOf(shapes, 0, false)
        const healed = live(received(sent, outages))
        const whole = live(received(sent, []))
        expectSame(healed, whole, endOf(sent, outages), false, true)
      }),
      { numRuns: runs },
    )
  })

  it(`a loss that is known late, after bars have closed, is healed all the same, ${runs} cases`, {
    tags,
  }, () => {
    const world = { delayMsMax: 4_000, isShared: false, amounts: EXACT_AMOUNTS, hasSolPrices: false }
    fc.assert(
      fc.property(acts, fc.array(outageShape, { maxLength: 4 }), (each, shapes) => {
        const sent = sentBy(each, world)
        const outages = outagesOf(shapes, 60_000, false)
        expectSame(live(received(sent, outages)), live(received(sent, [])), endOf(sent, outages), false, true)
      }),
      { numRuns: runs },
    )
  })

  it(`of what is brought in part exactly the told intervals are missing, ${runs} cases`, { tags }, () => {
    const world = { delayMsMax: 0, isShared: false, amounts: [0.1, 0.3, 0.7, 1 / 3], hasSolPrices: true }
    fc.assert(
      fc.property(acts, fc.array(outageShape, { minLength: 1, maxLength: 4 }), (each, shapes) => {
        const sent = sentBy(each, world)
        const outages = outagesOf(shapes, 5_000, true)
        const isHad = ({ feed, event, atMs }: Sent) =>
          !outages.some(
            (outage) =>
              outage.feed === feed &&
              atMs > outage.fromMs &&
              outage.missing.some(({ fromMs, toMs }) => event.ts >= fromMs && event.ts <= toMs),
          )
        const [healed, whole] = [live(received(sent, outages)), live(received(sent.filter(isHad), []))]
        const told = outages.flatMap(({ feed, missing }) => missing.map((part) => ({ feed, ...part })))
        expectSame(healed, whole, endOf(sent, outages), true, told.length > 0)
        const { ended } = healed.market.gaps(10)
        expect(ended).toHaveLength(told.length)
        expect(ended).toEqual(expect.arrayContaining(told))
        // Bars that they touch are incomplete, and no others.
        for (const bars of healed.emitted.values())
          for (const bar of bars) {
            const endMs = bar.t + TIMEFRAME_MS[bar.tf]
            const isTouched = told.some(({ fromMs, toMs }) => fromMs < endMs && toMs >= bar.t)
            expect([bar.tf, bar.t, bar.complete]).toEqual([
              bar.tf,
              bar.t,
              !isTouched && bar.t >= bar.watchedSinceMs,
            ])
          }
      }),
      { numRuns: runs },
    )
  })

  it(`whether time passes between events or with them decides nothing, also where deadlines pass, ${runs} cases`, {
    tags,
  }, () => {
    const world = { delayMsMax: 4_000, isShared: true, amounts: [0.1, 0.3, 0.7, 1 / 3], hasSolPrices: true }
    const given = fc.integer({ min: 1, max: 400_000 })
    fc.assert(
      fc.property(acts, fc.array(outageShape, { maxLength: 4 }), given, (each, shapes, givenMs) => {
        const sent = sentBy(each, world)
        const outages = outagesOf(shapes, 20_000, true)
        const [ticked, plain] = [newLived().market, newLived().market]
        let tickMs = START_MS
        for (const { event, atMs } of received(sent, outages)) {
          for (; tickMs < atMs; tickMs += 700) ticked.advanceTo(tickMs)
          const told = event.type === 'disconnect' ? { ...event, healUntilMs: event.ts + givenMs } : event
          expect(ticked.apply(told, atMs)).toBe(plain.apply(told, atMs))
        }
        for (const market of [ticked, plain]) market.advanceTo(endOf(sent, outages))
        for (const kind of KINDS)
          if (kind !== 'changes') expect([kind, READS[kind](ticked)]).toEqual([kind, READS[kind](plain)])
        expect(ticked.gaps(100)).toEqual(plain.gaps(100))
        expect(ticked.stats()).toEqual(plain.stats())
      }),
      { numRuns: runs },
    )
  })

  it(`a market that is saved and restored while a feed heals goes on as one that was not, ${runs} cases`, {
    tags,
  }, () => {
    const worlds = fc.record({
      delayMsMax: fc.constantFrom(0, 4_000),
      isShared: fc.boolean(),
      amounts: fc.constant([0.1, 0.3, 0.7, 1 / 3]),
      hasSolPrices: fc.boolean(),
    })
    const restored = (market: Market): Lived => {
      const sections = new Map<string, Buffer>()
      for (const { name, bytes } of market.save()) sections.set(name, Buffer.from(bytes))
      const options = { tokensMax: 8, changeLogEntriesMax: 1_024 }
      return { market: Market.restore(options, (name) => sections.get(name) ?? null), emitted: new Map() }
    }
    fc.assert(
      fc.property(
        worlds,
        acts,
        fc.array(outageShape, { maxLength: 4 }),
        fc.nat(100),
        (world, each, shapes, at) => {
          const sent = sentBy(each, world)
          const outages = outagesOf(shapes, 20_000, true)
          const events = received(sent, outages)
          const cut = Math.floor((events.length * at) / 100)
          const lived = live(events.slice(0, cut), newLived(), true)
          const copy = restored(lived.market)
          live(events.slice(cut), lived, true)
          live(events.slice(cut), copy, true)
          for (const { market } of [lived, copy]) market.advanceTo(endOf(sent, outages))
          for (const kind of KINDS)
            if (kind !== 'changes')
              expect([kind, READS[kind](copy.market)]).toEqual([kind, READS[kind](lived.market)])
          expect(copy.market.gaps(100)).toEqual(lived.market.gaps(100))
          expect(copy.market.stats()).toEqual(lived.market.stats())
        },
      ),
      { numRuns: runs },
    )
  })
}

it('a feed that has not healed by its deadline leaves a gap like that of one that does not heal, at that moment', () => {
  const trade = (ts: number): MarketEvent => ({
    ...{ type: 'trade', mint: MINTS[0] as string, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 },
  })
  const disconnect = { type: 'disconnect', feed: 'a', ts: START_MS + 1_000 } as const
  const deadlineMs = START_MS + 90_000
  const plain = live([
    { event: trade(START_MS), atMs: START_MS },
    { event: disconnect, atMs: disconnect.ts },
  ])
  const healing = live([
    { event: trade(START_MS), atMs: START_MS },
    { event: { ...disconnect, healUntilMs: deadlineMs }, atMs: disconnect.ts },
  ])
  const closedAt = ({ market }: Lived) =>
    market.bars({ mint: MINTS[0] as string, tf: '1s', limit: 9, fromMs: null, toMs: null, fill: 'none' })
      ?.bars[0]?.closed
  for (const { market } of [plain, healing]) market.advanceTo(deadlineMs - 1)
  expect([closedAt(plain), closedAt(healing)]).toEqual([true, false])
  expect(healing.market.apply(trade(START_MS + 20_000), deadlineMs - 1)).toBe(null)
  expect(healing.market.gaps(1).open).toMatchObject([{ healUntilMs: deadlineMs }])
  healing.market.advanceTo(deadlineMs)
  expect(closedAt(healing)).toBe(true)
  expect(healing.market.gaps(1).open).toEqual([
    { fromMs: disconnect.ts, toMs: null, reason: 'disconnect', feed: 'a' },
  ])
  expect(healing.market.apply(trade(START_MS + 30_000), deadlineMs)).toBe('late')
  const late = { type: 'reconnect', feed: 'a', ts: deadlineMs + 1, healed: true } as const
  expect(healing.market.apply(late, late.ts)).toBe(null)
  const { ended } = healing.market.gaps(1)
  expect(ended).toEqual([{ fromMs: disconnect.ts, toMs: late.ts, reason: 'disconnect', feed: 'a' }])
})

it('a loss within the grace of late trades may be healed without having been announced, a longer one may not', () => {
  const { market } = newLived()
  const lost = { type: 'disconnect', feed: 'a', ts: START_MS } as const
  for (const [lengthMs, gaps] of [
    [5_000, 0],
    [5_001, 1],
  ] as const) {
    const atMs = market.timeMs + 10_000
    market.apply({ ...lost, ts: atMs }, atMs)
    const back = { type: 'reconnect', feed: 'a', ts: atMs + lengthMs, healed: true } as const
    market.apply(back, back.ts)
    expect(market.gaps(9)).toMatchObject({ open: [], ended: { length: gaps } })
  }
})

it('trades of an outage are worth what SOL was before it, unless a price of then comes, and the former are counted', () => {
  const { market } = newLived()
  const inSol = (ts: number) =>
    ({ type: 'trade', mint: MINTS[0] as string, ts, side: 'buy', tokenAmount: 1, solAmount: 1 }) as const
  const price = (ts: number, usd: number) => ({ type: 'solPrice', ts, usd }) as const
  const at = (afterMs: number) => START_MS + afterMs
  const lost = { type: 'disconnect', feed: 'a', ts: at(1_000), healUntilMs: at(600_000) } as const
  live(
    [
      { event: price(at(0), 100), atMs: at(0) },
      { event: inSol(at(0)), atMs: at(0) },
      { event: lost, atMs: at(1_000) },
      // Of another feed, meanwhile.
      { event: price(at(40_000), 300), atMs: at(40_000) },
      { event: inSol(at(10_000)), atMs: at(60_000) },
      { event: price(at(20_000), 200), atMs: at(60_000) },
      { event: inSol(at(30_000)), atMs: at(60_000) },
      { event: inSol(at(50_000)), atMs: at(60_000) },
    ],
    { market, emitted: new Map() },
  )
  const query = {
    mint: MINTS[0] as string,
    tf: '1s',
    limit: 9,
    fromMs: null,
    toMs: null,
    fill: 'none',
  } as const
  expect(market.bars(query)?.bars.map(({ c }) => c)).toEqual([100, 100, 200, 300])
  expect(market.solPrice?.usd).toBe(300)
  expect(market.stats().earlierPriced).toBe(1)
})

it('where as many seconds are held open as there is memory for nothing heals any more, and bars close', {
  tags: 'drill',
}, () => {
  const market = new Market({ tokensMax: 2_000, changeLogEntriesMax: 1_024 })
  const mints = Array.from({ length: 1_900 }, (_, index) => mintOfSymbol(`${index}`))
  market.apply({ type: 'disconnect', feed: 'a', ts: START_MS, healUntilMs: START_MS + 3_000_000 }, START_MS)
  let ts = START_MS
  for (let second = 0; market.gaps(1).open[0]?.healUntilMs !== undefined; second++) {
    ts = START_MS + second * 1_000
    expect(second).toBeLessThan(600)
    for (const mint of mints)
      market.apply({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 }, ts)
  }
  expect(ts - START_MS).toBeGreaterThan(500_000)
  const range = { limit: 1_000, fromMs: null, toMs: null, fill: 'none' } as const
  const { bars } = market.bars({ mint: mints[7] as string, tf: '1m', ...range }) ?? { bars: [] }
  expect(bars.reduce((sum, { n }) => sum + n, 0)).toBe((ts - START_MS) / 1_000 + 1)
  expect(bars.filter(({ closed }) => !closed)).toHaveLength(1)
  expect(market.gaps(1).open).toMatchObject([{ fromMs: START_MS, toMs: null, feed: 'a' }])
})
