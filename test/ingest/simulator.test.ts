// Tests of the simulated market: determinism, its trading rules, a lively start, and that all data is marked as simulated.
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { SIMULATOR_DEFAULTS } from '../../src/ingest/limits.ts'
import { type SimulatedEvent, Simulation } from '../../src/ingest/simulator/simulation.ts'
import { SimulatorFeed } from '../../src/ingest/simulator/simulator.ts'
import { Market } from '../../src/market/market.ts'
import {
  type IngestRecord,
  ingestRecordSchema,
  type MarketEvent,
  type TradeEvent,
} from '../../src/schema/event.ts'
import { isMint } from '../../src/schema/mint.ts'
import { simulatedEvents } from '../support/simulated-events.ts'
import { MemorySink, silentLog } from './memory-sink.ts'

const START = 1_772_000_000_000
const MINUTE = 60_000
const small = { seed: 7, tokens: 200, tradesPerSecond: 100, startMs: START }

const hashOf = (events: Iterable<SimulatedEvent>) => {
  const hash = createHash('sha256')
  for (const event of events) hash.update(JSON.stringify(event))
  return hash.digest('hex')
}
const all = simulatedEvents(new Simulation(small), START + MINUTE)
const eventsOf = <Type extends MarketEvent['type']>(type: Type) =>
  all.map(({ event }) => event).filter((event) => event.type === type) as Extract<
    MarketEvent,
    { type: Type }
  >[]

test('the same seed gives the same events, and another seed gives others, of other tokens', () => {
  expect(hashOf(simulatedEvents(new Simulation(small), START + MINUTE))).toBe(hashOf(all))
  const others = simulatedEvents(new Simulation({ ...small, seed: 8 }), START + MINUTE)
  expect(hashOf(others)).not.toBe(hashOf(all))
  const mints = new Set(eventsOf('token').map(({ mint }) => mint))
  expect(mints.size).toBeGreaterThan(100)
  expect(others.filter(({ event }) => event.type === 'token' && mints.has(event.mint))).toEqual([])
})

test('the events do not depend on how time is divided into calls, or on the sink', () => {
  const stepped = new Simulation(small)
  const parts: SimulatedEvent[] = []
  for (let untilMs = START - MINUTE; untilMs <= START + MINUTE; untilMs += 997)
    parts.push(...simulatedEvents(stepped, untilMs))
  parts.push(...simulatedEvents(stepped, START + MINUTE))
  expect(hashOf(parts)).toBe(hashOf(all))
  const sink = new MemorySink()
  const sliced = new Simulation(small)
  while (!sliced.advance(START + MINUTE, sink, 100));
  expect(hashOf(sink.received)).toBe(hashOf(all))
})

test('the time of receipt never goes back, and no event is received before its own time', () => {
  let latestMs = 0
  for (const { event, receivedAtMs } of all) {
    expect(receivedAtMs).toBeGreaterThanOrEqual(latestMs)
    expect(event.ts).toBeLessThanOrEqual(receivedAtMs)
    latestMs = receivedAtMs
  }
})

test('every event passes the schema of pushes unchanged', () => {
  for (const { event } of all) {
    expect(ingestRecordSchema.parse(event)).toEqual(JSON.parse(JSON.stringify(event)))
  }
})

test('simulated data is marked as simulated', () => {
  for (const token of eventsOf('token')) {
    expect(token.description).toMatch(/simulated/i)
    expect(isMint(token.mint)).toBe(true)
    for (const uri of [token.image_uri, token.website, token.twitter, token.telegram]) {
      if (uri != null) expect(new URL(uri).hostname).toMatch(/\.example$/)
    }
  }
  for (const { fields } of eventsOf('patch')) expect(fields.enriched_source).toBe('simulated')
  for (const trade of eventsOf('trade')) expect(trade.tx).toMatch(/^simulated-/)
})

test('each token trades along one constant-product curve, and off it only after graduating', () => {
  const graduated = new Set<string>()
  let onCurve = 0
  for (const { event } of all) {
    if (event.type === 'graduated') graduated.add(event.mint)
    if (event.type !== 'trade') continue
    expect(event.vSol == null).toBe(graduated.has(event.mint))
    if (event.vSol == null) expect(event.priceUsd).toBeGreaterThan(0)
    else {
      onCurve++
      const product = (event.vSol * (event.vTokens as number)) / (30 * 1_073_000_000)
      expect(product).toBeCloseTo(1, 6)
      expect(event.vTokens).toBeGreaterThanOrEqual(279_900_000)
      expect(event.vTokens).toBeLessThanOrEqual(1_073_000_000.001)
    }
  }
  expect(onCurve).toBeGreaterThan(1_000)
})

test('a curve graduates when its last token is sold, at about 115 virtual SOL', () => {
  const simulation = new Simulation({ ...small, tokens: 60, tradesPerSecond: 400 })
  const busy = simulatedEvents(simulation, START + 3 * MINUTE)
  const last = new Map<string, TradeEvent>()
  let seen = 0
  for (const { event } of busy) {
    if (event.type === 'trade') last.set(event.mint, event)
    const before = event.type === 'graduated' ? last.get(event.mint) : undefined
    if (before === undefined) continue
    seen++
    expect(before.vTokens).toBe(279_900_000)
    expect(before.vSol).toBeCloseTo(115.005, 2)
  }
  expect(seen).toBeGreaterThan(0)
})

test('holders never hold more than was sold, and the top ten share is the sum of the first ten', () => {
  for (const { fields } of eventsOf('patch')) {
    const top = fields.topHolders ?? []
    const sum = top.slice(0, 10).reduce((total, { pct }) => total + (pct ?? 0), 0)
    expect(fields.top10HolderPct).toBeCloseTo(sum, 2)
    expect(fields.top10Holding).toBe(fields.top10HolderPct)
    expect(fields.holderCount).toBeGreaterThanOrEqual(top.length)
    expect(top.every(({ amount }) => (amount as number) > 0)).toBe(true)
    expect(top.map(({ amount }) => amount)).toEqual(top.map(({ amount }) => amount).sort((a, b) => b! - a!))
  }
})

test('sums of holders equal what the curve or the pool has given out', () => {
  const simulation = new Simulation({ ...small, tokens: 40 })
  simulation.advance(START + MINUTE, new MemorySink())
  for (const { holders, reserves, isGraduated } of simulation.snapshotTokens()) {
    const held = holders.named.reduce((sum, { tokens }) => sum + tokens, holders.crowdTokens)
    const given = (isGraduated ? 1_000_000_000 : 1_073_000_000) - reserves.tokens
    expect(Math.abs(held - given)).toBeLessThan(0.01)
    expect(holders.crowdCount > 0 || holders.crowdTokens < 1e-3).toBe(true)
  }
})

test('in a large market, too, every trade moves tokens and every token is held by someone or still unsold', {
  tags: 'drill',
}, () => {
  const large = new Simulation({ ...small, tokens: 20_000 })
  const sink = new MemorySink()
  large.advance(START - 86_400_000, sink)
  const trades = sink.events.filter((event) => event.type === 'trade')
  expect(trades.length).toBeGreaterThan(10_000)
  expect(trades.filter(({ tokenAmount }) => !(tokenAmount > 0))).toEqual([])
  expect(trades.filter(({ solAmount }) => !((solAmount as number) >= 0))).toEqual([])
  for (const { holders } of large.snapshotTokens()) {
    expect(holders.crowdTokens >= 0 && holders.named.every(({ tokens }) => tokens > 0)).toBe(true)
  }
})

test('at the start the market looks alive: every token has a price and a patch, all tabs have tokens', () => {
  const history = all.filter(({ receivedAtMs }) => receivedAtMs <= START)
  const of = (type: IngestRecord['type']) => history.filter(({ event }) => event.type === type)
  const mints = (type: IngestRecord['type']) =>
    new Set(of(type).map(({ event }) => (event as { mint: string }).mint))
  expect(mints('token').size).toBeGreaterThanOrEqual(170)
  expect(mints('trade').size).toBe(mints('token').size)
  expect(mints('patch').size).toBe(mints('token').size)
  expect(mints('graduated').size).toBeGreaterThan(3)
  expect(mints('live').size).toBeGreaterThan(0)
  expect(of('token').filter(({ event }) => event.ts > START - 86_400_000).length).toBeGreaterThan(40)
  const fresh = of('patch').filter(({ receivedAtMs }) => receivedAtMs > START - 2 * MINUTE)
  expect(new Set(fresh.map(({ event }) => (event as { mint: string }).mint)).size).toBeGreaterThan(140)
})

test('the live market trades at the configured rate, mostly in a few tokens', () => {
  const live = all.filter(({ event, receivedAtMs }) => event.type === 'trade' && receivedAtMs > START)
  expect(live.length / 60).toBeGreaterThan(90)
  expect(live.length / 60).toBeLessThan(110)
  const counts = new Map<string, number>()
  for (const { event } of live) {
    const { mint } = event as { mint: string }
    counts.set(mint, (counts.get(mint) ?? 0) + 1)
  }
  const sorted = [...counts.values()].sort((a, b) => b - a)
  const tenth = sorted.slice(0, 20).reduce((sum, count) => sum + count, 0)
  expect(tenth / live.length).toBeGreaterThan(0.4)
})

test('history and present are one process: rate, sizes and launches are the same before the start and after it', () => {
  const options = { ...small, tokens: 1_000, tradesPerSecond: 10 }
  const simulation = new Simulation(options)
  const spanMs = 15 * MINUTE
  const events = simulatedEvents(simulation, START + spanMs).filter(
    ({ receivedAtMs }) => receivedAtMs > START - spanMs,
  )
  const trades = events.flatMap(({ event }) => (event.type === 'trade' ? [event] : []))
  const [before, after] = [trades.filter(({ ts }) => ts <= START), trades.filter(({ ts }) => ts > START)]
  const expected = (options.tradesPerSecond * spanMs) / 1_000
  for (const part of [before, after]) expect(Math.abs(part.length / expected - 1)).toBeLessThan(0.05)
  // No minute stands out.
  for (let fromMs = START - spanMs; fromMs < START + spanMs; fromMs += MINUTE) {
    const count = trades.filter(({ ts }) => ts > fromMs && ts <= fromMs + MINUTE).length
    expect(Math.abs(count / (60 * options.tradesPerSecond) - 1)).toBeLessThan(0.15)
  }
  const medianOf = (part: TradeEvent[]) =>
    part.map(({ solAmount }) => solAmount as number).toSorted((a, b) => a - b)[Math.floor(part.length / 2)] ??
    0
  expect(medianOf(after) / medianOf(before)).toBeGreaterThan(0.8)
  expect(medianOf(after) / medianOf(before)).toBeLessThan(1.25)
  const launches = events.filter(({ event }) => event.type === 'token')
  const launched = launches.filter(({ receivedAtMs }) => receivedAtMs <= START).length
  expect(launched).toBeGreaterThan(10)
  expect(launches.length - launched).toBeGreaterThan(10)
})

test('the default history reaches as far as charts and windows ask, with no more events than a start can take', {
  tags: 'drill',
}, () => {
  const market = new Market({ tokensMax: 10_000 })
  const simulation = new Simulation({ ...SIMULATOR_DEFAULTS, startMs: START })
  let events = 0
  const sink = {
    apply: (event: MarketEvent, atMs: number) => {
      events++
      return market.apply(event, atMs)
    },
  }
  simulation.advance(START, sink)
  expect(events).toBeLessThan(100_000)
  const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 100, offset: 0 })
  const mints = page.ndjson
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).mint as string)
  const points = mints.flatMap((mint) => market.datapoint(mint) ?? [])
  const withAll = points.filter(
    ({ priceChange1h, priceChange6h, priceChange24h, sparkline, createdAt }) =>
      ((createdAt ?? 0) > START - 86_400_000 || (priceChange6h !== null && priceChange24h !== null)) &&
      ((createdAt ?? 0) > START - 3_600_000 || priceChange1h !== null) &&
      sparkline.length >= 20,
  )
  expect(withAll.length).toBeGreaterThan(80)
})

/** A sink that reports when the time of receipt has passed a moment. */
class WatchedSink extends MemorySink {
  private waiting: { untilMs: number; resolve: () => void }[] = []

  override apply(...args: Parameters<MemorySink['apply']>) {
    const rejection = super.apply(...args)
    for (const { untilMs, resolve } of this.waiting) if (args[1] >= untilMs) resolve()
    return rejection
  }

  past(untilMs: number): Promise<void> {
    return new Promise((resolve) => this.waiting.push({ untilMs, resolve }))
  }
}

test('a feed delivers its history, then keeps up with the clock, and stops', async () => {
  const clock = { timeMs: START, now: () => clock.timeMs, monotonicMs: () => clock.timeMs }
  const sink = new WatchedSink()
  const feed = new SimulatorFeed({ seed: 7, tokens: 200, tradesPerSecond: 100 }, sink, clock, silentLog)
  await feed.ready
  expect(feed.describe()).toMatchObject({ feed: 'simulator', simulated: true, state: 'running', seed: 7 })
  const reached = sink.past(START + 9_000)
  clock.timeMs = START + 10_000
  await reached
  await feed.stop()
  expect(feed.describe().state).toBe('stopped')
  const expected = all.filter(({ receivedAtMs }) => receivedAtMs <= sink.received.at(-1)!.receivedAtMs)
  expect(hashOf(sink.received)).toBe(hashOf(expected.slice(0, sink.received.length)))
})

test('after the machine slept for long, the feed skips the time and reports it', async () => {
  const clock = { timeMs: START, now: () => clock.timeMs, monotonicMs: () => clock.timeMs }
  const sink = new WatchedSink()
  const feed = new SimulatorFeed({ seed: 7, tokens: 50, tradesPerSecond: 100 }, sink, clock, silentLog)
  await feed.ready
  const reached = sink.past(START + 3_600_000)
  clock.timeMs = START + 3_600_000
  await reached
  await feed.stop()
  const nowMs = START + 3_600_000
  expect(sink.links).toEqual([
    { type: 'disconnect', ts: nowMs, feed: 'simulator', sinceMs: START },
    { type: 'reconnect', ts: nowMs, feed: 'simulator' },
  ])
  expect(feed.describe().skippedMs).toBe(3_600_000)
})
