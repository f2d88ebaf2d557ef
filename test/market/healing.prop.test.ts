// Feeds that lose their sources and bring what they missed, against the same events without an outage: nothing shows that there was one.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import type { ClosedBar } from '../../src/schema/bar.ts'
import type { MarketEvent, MissingPart } from '../../src/schema/event.ts'
import { TIMEFRAMES } from '../../src/schema/timeframe.ts'
import { fewAndMany } from '../support/cases.ts'
import { MINTS } from './answers.ts'

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

function live(events: readonly Received[], lived = newLived()): Lived {
  const { market } = lived
  for (const { event, atMs } of events) {
    market.advanceTo(atMs)
    market.emitClosedBars(100)
    expect(market.apply(event, atMs)).toBe(null)
  }
  return lived
}

const datapointsOf = ({ market }: Lived, isExact: boolean) =>
  MINTS.map((mint) => {
    const datapoint = market.datapoint(mint)
    if (datapoint === null) return null
    const { snapshotAt: _, recentTrades, ...figures } = datapoint
    // In order of arrival, unless a feed heals: of trades that overtake one another only the time is the same.
    const recent = recentTrades.toSorted((a, b) => b.timestamp - a.timestamp).slice(0, 12)
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

function expectSame(one: Lived, other: Lived, atMs: number, isExact: boolean): void {
  for (const { market } of [one, other]) {
    market.advanceTo(atMs)
    market.emitClosedBars(100)
    market.emitClosedBars(100)
    expect(market.gaps(10)).toEqual({ open: [], ended: [] })
  }
  expect(barsOf(one)).toEqual(barsOf(other))
  expect(datapointsOf(one, isExact)).toEqual(datapointsOf(other, isExact))
  if (isExact) expect(hotOf(one)).toEqual(hotOf(other))
  else
    for (const [index, score] of scoresOf(one).entries())
      expect(score).toBeCloseTo(scoresOf(other)[index] ?? 0, 6)
}

for (const { runs, tags } of fewAndMany(20, 200)) {
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
        expectSame(healed, whole, endOf(sent, outages), false)
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
        expectSame(live(received(sent, outages)), live(received(sent, [])), endOf(sent, outages), false)
      }),
      { numRuns: runs },
    )
  })
}
