// Gaps against a plain list: which bars a gap touches, whatever began and ended in which order.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { Gaps } from '../../src/market/time/gaps.ts'
import { GAPS_ANSWERED_MAX, GAPS_MAX } from '../../src/market/time/limits.ts'
import { MarketTime } from '../../src/market/time/market-time.ts'
import { recordedSinks } from '../../src/recording/event-recorder.ts'
import type { ClosedBar } from '../../src/schema/bar.ts'
import {
  type DisconnectEvent,
  type MarketEvent,
  MISSING_PARTS_MAX,
  type MissingPart,
  type RunHeader,
} from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

const START_MS = 1_772_000_000_000
type MissingReason = MissingPart['reason']
const MINT = mintOfSymbol('one')
const HEADER: RunHeader = {
  runId: 'run',
  version: '0',
  formatVersion: 1,
  node: 'v22',
  settings: { tokensMax: 1, newWindowMs: 1, solPriceMaxAgeMs: 0, barsPerTokenMax: 1, versionsMax: 1 },
  feeds: [],
  simulated: false,
  checkpointEventNo: null,
  startedAtMs: START_MS,
}

const feed = fc.constantFrom('a', 'b', 'c')
const act = fc.oneof(
  fc.record({ type: fc.constant('disconnect' as const), feed, awayMs: fc.option(fc.nat(50)) }),
  fc.record({ type: fc.constant('reconnect' as const), feed }),
  fc.record({
    type: fc.constant('gap' as const),
    backMs: fc.nat(40),
    lengthMs: fc.nat(30),
    reason: fc.constantFrom('downtime' as const, 'lost' as const),
  }),
  fc.record({ type: fc.constant('run' as const) }),
)
const step = fc.record({ waitMs: fc.nat(20), act })

interface Known {
  fromMs: number
  toMs: number | null
  feed: string | null
}

/** What each event means, on a list that forgets nothing. */
function applyPlainly(known: Known[], event: MarketEvent): void {
  const isOpen = (gap: Known) => gap.toMs === null && gap.feed !== null
  if (event.type === 'disconnect') {
    const fromMs = event.sinceMs ?? event.ts
    const open = known.find((gap) => isOpen(gap) && gap.feed === event.feed)
    if (open === undefined) known.push({ fromMs, toMs: null, feed: event.feed })
    else open.fromMs = Math.min(open.fromMs, fromMs)
  } else if (event.type === 'gap') known.push({ fromMs: event.fromMs, toMs: event.toMs, feed: null })
  else if (event.type === 'reconnect' || event.type === 'run')
    for (const gap of known)
      if (isOpen(gap) && (event.type === 'run' || gap.feed === event.feed)) gap.toMs = event.ts
}

function toEvent(each: typeof act extends fc.Arbitrary<infer Each> ? Each : never, ts: number): MarketEvent {
  if (each.type === 'disconnect')
    return {
      type: 'disconnect',
      ts,
      feed: each.feed,
      ...(each.awayMs !== null && { sinceMs: ts - each.awayMs }),
    }
  if (each.type === 'gap') {
    const fromMs = ts - each.backMs
    return { type: 'gap', ts, fromMs, toMs: fromMs + each.lengthMs, reason: each.reason }
  }
  return each.type === 'run' ? { ...each, ts, firstSeq: 0, header: HEADER } : { ...each, ts }
}

it('tells exactly the gaps that touch a time', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 25 }),
      fc.array(fc.tuple(fc.nat(600), fc.nat(60))),
      (steps, asked) => {
        const market = new Market({ tokensMax: 2, changeLogEntriesMax: 1_024 })
        const known: Known[] = []
        let atMs = START_MS
        market.apply({ type: 'trade', mint: MINT, ts: atMs, side: 'buy', tokenAmount: 1, priceUsd: 1 }, atMs)
        for (const { waitMs, act } of steps) {
          atMs += waitMs
          const event = toEvent(act, atMs)
          market.apply(event, atMs)
          applyPlainly(known, event)
        }
        const { open, ended } = market.gaps(GAPS_MAX)
        const byFrom = (a: Known, b: Known) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
        const plain = ({ fromMs, toMs, feed }: Known): Known => ({ fromMs, toMs, feed })
        expect([...open, ...ended].map(plain).sort(byFrom)).toEqual(known.sort(byFrom))
        market.advanceTo(START_MS + 1_000)
        for (const [fromMs, lengthMs] of asked) {
          const [from, to] = [START_MS + fromMs - 50, START_MS + fromMs - 50 + lengthMs]
          const query = { mint: MINT, tf: '1s', limit: 5, fromMs: from, toMs: to, fill: 'none' } as const
          const beforeMs = Math.min(Math.floor(to / 1_000) * 1_000 + 1_000, START_MS + 1_001)
          const touching = known.filter((gap) => gap.fromMs < beforeMs && (gap.toMs ?? from) >= from)
          const told = market.bars(query)!.incomplete
          if (touching.length <= GAPS_ANSWERED_MAX) expect(told.map(plain).sort(byFrom)).toEqual(touching)
          else expect(told).toHaveLength(GAPS_ANSWERED_MAX)
        }
      },
    ),
    { numRuns: 60 },
  )
})

it('at the maximum tells more than is missing, never less', () => {
  const gaps = new Gaps(new MarketTime(), { seq: 0 })
  const moments: number[] = []
  for (let index = 0; index < 2 * GAPS_MAX; index++) {
    const fromMs = START_MS + index * 1_000 + (index % 7) * 100
    gaps.add({ type: 'gap', ts: fromMs, fromMs, toMs: fromMs + 10, reason: 'lost' })
    moments.push(fromMs, fromMs + 10)
  }
  expect(gaps.latest(Number.MAX_SAFE_INTEGER)).toHaveLength(GAPS_MAX)
  for (const atMs of moments) expect(gaps.touches(atMs, atMs + 1)).toBe(true)
  expect(gaps.touches(START_MS - 10, START_MS)).toBe(false)
  const told = gaps.within(START_MS, Number.POSITIVE_INFINITY)
  expect(told).toHaveLength(GAPS_ANSWERED_MAX)
  expect(told[0]).toMatchObject({ fromMs: START_MS, reason: 'several', feed: null })
  for (const atMs of moments)
    expect(told.some(({ fromMs, toMs }) => fromMs <= atMs && atMs <= (toMs ?? atMs))).toBe(true)
})

it('tells each feed that is away, though they are more than an answer tells gaps', () => {
  const gaps = new Gaps(new MarketTime(), { seq: 0 })
  const feeds = Array.from({ length: GAPS_ANSWERED_MAX + 2 }, (_, index) => `push:${index}`)
  for (const [index, feed] of feeds.entries())
    gaps.disconnect({ type: 'disconnect', ts: START_MS + index, feed }, START_MS + index)
  const told = () => gaps.within(START_MS - 100, Number.POSITIVE_INFINITY).map(({ feed }) => feed)
  expect(told()).toEqual(feeds)
  for (const ts of [START_MS - 50, START_MS - 30])
    gaps.add({ type: 'gap', ts, fromMs: ts, toMs: ts + 1, reason: 'lost' })
  expect(told()).toEqual([null, ...feeds])
})

/** A market that collects its closed bars of a minute, and trades once. */
function tradedMarket() {
  const bars: ClosedBar[] = []
  const market = new Market({ tokensMax: 2, onBarClosed: (bar) => bar.tf === '1m' && bars.push(bar) })
  const minuteMs = START_MS - (START_MS % 60_000)
  const trade = (atMs: number) =>
    market.apply({ type: 'trade', mint: MINT, ts: atMs, side: 'buy', tokenAmount: 1, priceUsd: 1 }, atMs)
  market.advanceTo(minuteMs - 1)
  return { market, bars, minuteMs, trade }
}

it('a bar is incomplete if its feed was away for a part of it', () => {
  const { market, bars, minuteMs, trade } = tradedMarket()
  for (const minute of [0, 1, 2, 3]) {
    trade(minuteMs + minute * 60_000 + 1_000)
    if (minute === 1)
      market.apply({ type: 'disconnect', ts: minuteMs + 90_000, feed: 'a' }, minuteMs + 90_000)
    if (minute === 2)
      market.apply({ type: 'reconnect', ts: minuteMs + 122_000, feed: 'a' }, minuteMs + 122_000)
  }
  market.advanceTo(minuteMs + 300_000)
  market.emitClosedBars(2)
  expect(bars.map(({ complete }) => complete)).toEqual([true, false, false, true])
})

it('a bar that was forming when the server was killed is incomplete', () => {
  const { market, bars, minuteMs, trade } = tradedMarket()
  trade(minuteMs + 10_000)
  const atMs = minuteMs + 40_000
  market.apply({ type: 'run', ts: atMs, firstSeq: 1_000, header: HEADER }, atMs)
  market.apply({ type: 'gap', ts: atMs, fromMs: minuteMs + 10_000, toMs: atMs, reason: 'downtime' }, atMs)
  trade(minuteMs + 50_000)
  const query = { mint: MINT, tf: '1m', limit: 1, fromMs: null, toMs: null, fill: 'none' } as const
  expect(market.bars(query)).toMatchObject({
    bars: [{ t: minuteMs, closed: false }],
    incomplete: [{ fromMs: minuteMs + 10_000, toMs: atMs, reason: 'downtime', feed: null }],
  })
  trade(minuteMs + 70_000)
  market.advanceTo(minuteMs + 300_000)
  market.emitClosedBars(2)
  expect(bars.map(({ complete }) => complete)).toEqual([false, true])
})

describe('parts of a gap that are told while its feed heals', () => {
  const part = (fromMs: number, toMs: number, reason: MissingReason = 'pruned') => ({
    ...{ fromMs: START_MS + fromMs, toMs: START_MS + toMs, reason },
  })
  const tell = (market: Market, more: Partial<DisconnectEvent>) =>
    market.apply({ type: 'disconnect', ts: market.timeMs, feed: 'a', ...more }, market.timeMs)
  const end = (market: Market, missing: MissingPart[]) =>
    market.apply({ type: 'reconnect', ts: market.timeMs, feed: 'a', healed: true, missing }, market.timeMs)
  const begun = () => {
    const market = new Market({ tokensMax: 8 })
    market.advanceTo(START_MS + 60_000)
    tell(market, { sinceMs: START_MS, healUntilMs: START_MS + 300_000, missing: [part(1_000, 2_000)] })
    return market
  }
  const restored = (market: Market) => {
    const sections = new Map<string, Uint8Array>()
    for (const { name, bytes } of market.save()) sections.set(name, bytes.slice())
    return Market.restore({ tokensMax: 8 }, (name) => sections.get(name) ?? null)
  }
  const ended = (market: Market) =>
    market.gaps(1_000).ended.map(({ fromMs, toMs, reason }) => ({ fromMs, toMs, reason }))

  it('stay missing, each once, whoever ends it after a restart', () => {
    const market = restored(begun())
    const changes = market.gapChanges(null).next
    tell(market, {
      healUntilMs: START_MS + 300_000,
      missing: [part(5_000, 6_000, 'budget'), part(1_000, 2_000)],
    })
    // Nothing of it is news: the gap is open anyway.
    expect(market.gapChanges(changes).gaps).toEqual([])
    expect(market.gaps(1).open).toMatchObject([
      { missing: [part(1_000, 2_000), part(5_000, 6_000, 'budget')] },
    ])
    const again = restored(market)
    end(again, [part(5_000, 6_000, 'budget'), part(8_000, 9_000)])
    const parts = [part(8_000, 9_000), part(5_000, 6_000, 'budget'), part(1_000, 2_000)]
    expect(ended(again)).toEqual(parts)
    expect(again.gaps(1).open).toEqual([])
  })

  it('are no gaps beside one that is told whole: that of a feed that has given up, or come too late', () => {
    const market = begun()
    market.advanceTo(START_MS + 300_000)
    expect(market.gaps(1).open).toEqual([{ fromMs: START_MS, toMs: null, reason: 'disconnect', feed: 'a' }])
    tell(market, { healUntilMs: START_MS + 900_000, missing: [part(3_000, 4_000)] })
    end(market, [])
    expect(ended(market)).toEqual([part(0, 300_000, 'disconnect' as MissingReason)])
    // Why it has given up is known where it says so.
    const late = begun()
    late.advanceTo(START_MS + 300_000)
    end(late, [part(3_000, 4_000, 'too_long'), part(5_000, 6_000, 'too_long')])
    expect(ended(late)).toEqual([part(0, 300_000, 'too_long')])
  })

  it('are at most MISSING_PARTS_MAX: then the last one covers the rest', () => {
    const market = begun()
    for (let at = 1; at <= MISSING_PARTS_MAX + 10; at++)
      tell(market, {
        healUntilMs: START_MS + 300_000,
        missing: [part(1_000 + at * 100, 1_001 + at * 100, 'budget')],
      })
    end(market, [])
    expect(ended(market)).toHaveLength(MISSING_PARTS_MAX)
    for (let at = 1; at <= MISSING_PARTS_MAX + 10; at++) {
      const atMs = START_MS + 1_000 + at * 100
      expect(ended(market).some(({ fromMs, toMs }) => fromMs <= atMs && (toMs ?? 0) >= atMs)).toBe(true)
    }
  })
})

describe('a trade that is refused as too late while feeds heal', () => {
  const at = (second: number) => START_MS + 1_000 * second
  const healing = () => {
    const market = new Market({ tokensMax: 2 })
    const sink = recordedSinks(market, null)('push')
    const trade = (second: number, receivedSecond: number) =>
      sink.apply(
        { type: 'trade', mint: MINT, ts: at(second), side: 'buy', tokenAmount: 1, priceUsd: 1 },
        at(receivedSecond),
      )
    const lose = (of: string, second: number, sinceSecond: number, untilSecond: number) => {
      const sinceMs = at(sinceSecond)
      const lost = {
        type: 'disconnect',
        feed: of,
        ts: at(second),
        sinceMs,
        healUntilMs: at(untilSecond),
      } as const
      market.apply(lost, lost.ts)
    }
    const end = (of: string, second: number, healed: boolean) =>
      market.apply({ type: 'reconnect', feed: of, ts: at(second), healed }, at(second))
    const ended = () =>
      market
        .gaps(9)
        .ended.map(({ feed: of, reason, fromMs, toMs }) => [
          of,
          reason,
          ...[fromMs, toMs ?? 0].map((ms) => (ms - START_MS) / 1_000),
        ])
    return { market, trade, lose, end, ended }
  }

  it.each(['passes its deadline', 'comes back without having healed'])(
    'is no part of a later gap where the feed of its own %s',
    (how) => {
      const { market, trade, lose, end, ended } = healing()
      trade(100, 100)
      lose('a', 101, 80, 200)
      expect(trade(90, 102)).toBe('late')
      if (how.startsWith('passes')) market.advanceTo(at(300))
      end('a', 301, false)
      trade(1_000, 1_000)
      lose('a', 1_001, 980, 2_000)
      expect(trade(994, 1_002)).toBe('late')
      end('a', 1_010, true)
      expect(ended()).toEqual([
        ['a', 'refused', 994, 994.999],
        ['a', 'disconnect', 80, 301],
      ])
    },
  )

  it('is missing from every gap that it lies in, though another heals first', () => {
    const { trade, lose, end, ended } = healing()
    trade(100, 100)
    lose('a', 101, 80, 900)
    trade(400, 400)
    lose('b', 401, 395, 900)
    expect(trade(90, 402)).toBe('late')
    end('b', 403, true)
    expect(ended()).toEqual([])
    end('a', 404, true)
    expect(ended()).toEqual([['a', 'refused', 90, 90.999]])
  })
})

it('a gap whose feed does not heal is no news when nothing heals any more', () => {
  const gaps = new Gaps(new MarketTime(), { seq: 0 })
  gaps.disconnect({ type: 'disconnect', feed: 'a', ts: START_MS }, START_MS)
  const before = gaps.changeCount
  gaps.expire(Number.POSITIVE_INFINITY)
  expect(gaps.changeCount).toBe(before)
})

it('an answer has another version once a gap touches it, and once the gap has ended', () => {
  const { market, minuteMs, trade } = tradedMarket()
  trade(minuteMs)
  const query = { mint: MINT, tf: '1m', limit: 10, fromMs: null, toMs: null, fill: 'none' } as const
  const versions = [market.bars(query)!.version]
  market.apply({ type: 'disconnect', ts: minuteMs + 1, feed: 'a' }, minuteMs + 1)
  versions.push(market.bars(query)!.version)
  market.apply({ type: 'reconnect', ts: minuteMs + 2, feed: 'a' }, minuteMs + 2)
  versions.push(market.bars(query)!.version)
  expect(new Set(versions).size).toBe(3)
})

it('a run begins the change log anew above its first position, and below none that was given', () => {
  const market = new Market({ tokensMax: 2 })
  const token = (mint: string) =>
    market.apply({ type: 'token', mint, ts: START_MS, name: 'A', symbol: 'A' }, START_MS)
  token(MINT)
  const before = market.seq
  market.apply({ type: 'run', ts: START_MS, firstSeq: 5_000, header: HEADER }, START_MS)
  expect([market.seq, market.firstSeq, market.oldestSince]).toEqual([5_000, 5_000, 5_000])
  expect(before).toBeLessThan(market.oldestSince)
  token(mintOfSymbol('two'))
  expect(market.changesSince(5_000, 'all', 10)).toMatchObject({ parts: [{ seq: 5_001 }], nextSeq: 5_001 })
  market.apply({ type: 'run', ts: START_MS, firstSeq: 7, header: HEADER }, START_MS)
  expect([market.seq, market.firstSeq]).toEqual([5_001, 5_001])
  // The evicted token was last changed before this run.
  token(mintOfSymbol('three'))
  expect(market.changesSince(5_001, 'all', 10).parts).toHaveLength(2)
})
