// Feeds that can wait deliver nothing while there is no room for events, and all of it afterwards.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { INGEST_FRAMES_WAITING_BYTES_MAX, INGEST_SLICE_RECORDS } from '../../src/ingest/limits.ts'
import { PushFeed } from '../../src/ingest/push/push-feed.ts'
import { LakeReplay } from '../../src/ingest/replay/lake-replay.ts'
import { Replay } from '../../src/ingest/replay/replay.ts'
import { SimulatorFeed } from '../../src/ingest/simulator/simulator.ts'
import type { Feed, Room } from '../../src/ingest/types.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { MemorySink, silentLog } from './memory-sink.ts'

const NOW_MS = Date.UTC(2026, 1, 1)
const clock = { now: () => NOW_MS, monotonicMs: () => 0 }
const NDJSON = 'application/x-ndjson'
const trade = (index: number): object => ({
  ...{
    type: 'trade',
    mint: mintOfSymbol('room'),
    ts: NOW_MS,
    side: 'buy',
    tokenAmount: 1,
    priceUsd: index + 1,
  },
})
const body = (count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, index) => JSON.stringify(trade(index))).join('\n'))
const frame = (index: number): Buffer => Buffer.from(JSON.stringify(trade(index)))

/** Room for so many events: then feeds wait until it is emptied. */
class Bucket extends MemorySink {
  free: number
  #waiting: PromiseWithResolvers<void> | null = null

  constructor(free: number) {
    super()
    this.free = free
  }

  readonly room: Room = () => {
    if (this.received.length < this.free) return null
    this.#waiting ??= Promise.withResolvers()
    return this.#waiting.promise
  }

  get isWaitedFor(): boolean {
    return this.#waiting !== null
  }

  empty(free: number): void {
    this.free += free
    this.#waiting?.resolve()
    this.#waiting = null
  }
}

async function turns(count = 30): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn()
}

function pushFeed(sink: Bucket): PushFeed {
  const feed = new PushFeed(sink, sink, clock, silentLog, sink.room)
  feed.begin()
  return feed
}

describe('pushed bodies', () => {
  test('wait before each slice, one behind the other', async () => {
    const sink = new Bucket(1)
    const feed = pushFeed(sink)
    const results = [1, 2, 3].map(() => feed.ingest(body(INGEST_SLICE_RECORDS + 10), NDJSON))
    await turns()
    // One slice was let in, since there was room for one event.
    expect(sink.received.length).toBe(INGEST_SLICE_RECORDS)
    while (sink.received.length < 3 * (INGEST_SLICE_RECORDS + 10)) {
      const before = sink.received.length
      sink.empty(before + 1 - sink.free)
      await turns()
      // However many wait, only one slice comes at a time.
      expect(sink.received.length - before).toBeGreaterThan(0)
      expect(sink.received.length - before).toBeLessThanOrEqual(INGEST_SLICE_RECORDS)
    }
    for (const { accepted } of await Promise.all(results)) expect(accepted).toBe(INGEST_SLICE_RECORDS + 10)
  })

  test('a stop applies what waits', async () => {
    const sink = new Bucket(0)
    const feed = pushFeed(sink)
    const results = [feed.ingest(body(3), NDJSON), feed.ingestFrame(frame(0), false)]
    const stopped = feed.stop()
    await turns()
    expect(sink.received).toHaveLength(0)
    sink.empty(100)
    await stopped
    expect(sink.received).toHaveLength(4)
    for (const result of results) expect((await result).rejected).toBe(0)
  })
})

describe('frames of WebSockets', () => {
  test('wait in their order, also those that come while there is room again', async () => {
    const sink = new Bucket(1)
    const feed = pushFeed(sink)
    expect(feed.ingestFrame(frame(0), false)).toMatchObject({ accepted: 1 })
    const shared = frame(1)
    const waiting = [feed.ingestFrame(shared, false), feed.ingestFrame(frame(2), false)]
    // The server uses the buffer of a frame again.
    shared.fill(0)
    sink.empty(10)
    waiting.push(feed.ingestFrame(frame(3), false))
    await Promise.all(waiting)
    expect(sink.events).toEqual([0, 1, 2, 3].map((index) => expect.objectContaining({ priceUsd: index + 1 })))
  })

  test('are refused where too many wait, and taken again afterwards', async () => {
    const sink = new Bucket(0)
    const feed = pushFeed(sink)
    const bytes = new Uint8Array(1_000_000).fill(32)
    const waiting: unknown[] = []
    while (waiting.length * bytes.length <= INGEST_FRAMES_WAITING_BYTES_MAX - bytes.length)
      waiting.push(feed.ingestFrame(bytes, false))
    expect(() => feed.ingestFrame(bytes, false)).toThrow(/send it again/)
    sink.empty(100)
    await Promise.all(waiting)
    expect(feed.ingestFrame(frame(0), false)).toMatchObject({ accepted: 1 })
  })
})

const rows = 3 * INGEST_SLICE_RECORDS
async function* tradeBatch() {
  yield {
    rows,
    tsMs: Float64Array.from({ length: rows }, (_, index) => NOW_MS + index),
    price: new Float64Array(rows).fill(1),
    size: new Float64Array(rows).fill(1),
    symbolCode: new Uint32Array(rows),
    symbols: ['SPY'],
    ...{ side: null, wallet: null, tx: null, faults: new Map() },
  }
}
async function* recorded() {
  yield Array.from({ length: rows }, (_, index) => ({
    ...{ eventNo: index + 1, atMs: NOW_MS },
    event: { type: 'solPrice' as const, ts: NOW_MS, usd: index + 1 },
  }))
}
const OF_A_LAKE = {
  ...{ eventsTotal: rows, playFromNo: 1, simulated: true, approximate: null, endsEarly: null },
  ...{ speed: 'max' as const, label: 'lake', lost: [], market: { seq: 1, timeMs: 0 } },
}

describe.each<[string, (sink: Bucket) => Feed, number]>([
  [
    'a replay of a file',
    (sink) => new Replay({ trades: tradeBatch(), speed: 'max' }, sink, clock, silentLog, sink.room),
    rows,
  ],
  [
    'a replay of a lake',
    (sink) => new LakeReplay({ ...OF_A_LAKE, events: recorded() }, sink, clock, silentLog, sink.room),
    rows,
  ],
  [
    'the simulator',
    (sink) =>
      new SimulatorFeed({ seed: 1, tokens: 300, tradesPerSecond: 1 }, sink, clock, silentLog, sink.room),
    5_000,
  ],
])('%s', (_, start, atLeast) => {
  test('waits, and then delivers the rest', async () => {
    const sink = new Bucket(1)
    const feed = start(sink)
    await expect.poll(() => sink.isWaitedFor).toBe(true)
    const before = sink.received.length
    await turns()
    expect(sink.received.length).toBe(before)
    expect(before).toBeLessThan(atLeast)
    sink.empty(Number.POSITIVE_INFINITY)
    await feed.ready
    await expect.poll(() => sink.received.length).toBeGreaterThanOrEqual(atLeast)
    await feed.stop()
  })

  test('can be stopped while it waits', async () => {
    const sink = new Bucket(1)
    const feed = start(sink)
    await expect.poll(() => sink.isWaitedFor).toBe(true)
    const before = sink.received.length
    await feed.stop()
    expect(sink.received.length).toBe(before)
  })
})
