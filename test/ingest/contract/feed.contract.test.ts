// What every feed promises to the server, whatever its source is.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { REFUSAL_JUDGED_MIN, REFUSAL_SPAN_MS, REFUSAL_SPANS } from '../../../src/ingest/limits.ts'
import { feedStatusSchema } from '../../../src/schema/api/status.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'
import {
  HARNESSES,
  type RunningFeed,
  SECRET,
  START_MS,
  type Surroundings,
  TestClock,
} from './feed-harness.ts'

const soon = { interval: 2, timeout: 10_000 }
let around: Surroundings
let feeds: RunningFeed[]

beforeEach(() => {
  around = { sink: new MemorySink(), clock: new TestClock(), log: new MemoryLog() }
  feeds = []
})
afterEach(async () => {
  const told = [...(await Promise.all(feeds.map((feed) => feed.status()))), ...around.log.lines]
  for (const feed of feeds) {
    await feed.stop()
    await feed.close()
  }
  expect(JSON.stringify(told), 'nothing that a feed tells holds a key').not.toContain(SECRET)
})

/** How many resources of each kind keep the process alive. */
const resources = (): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

describe.each(HARNESSES)('the feed $name', ({ simulated, inFlightMs, told, isLight, keyOf, start }) => {
  const begin = async (): Promise<RunningFeed> => {
    const feed = await start(around)
    feeds.push(feed)
    await feed.ready
    return feed
  }
  /** Sends events and awaits them. @returns what arrived. */
  const deliver = async (feed: RunningFeed, count: number): Promise<void> => {
    const before = around.sink.received.length
    const keys = await feed.send(count)
    const arrived = () => around.sink.events.slice(before).flatMap((event) => keyOf(event) ?? [])
    await expect.poll(() => arrived().length, soon).toBeGreaterThanOrEqual(keys.length)
    expect(arrived()).toEqual(keys)
  }

  test('becomes ready, and its status is true from the start', async () => {
    const feed = await begin()
    const status = await feed.status()
    expect(feedStatusSchema.parse(status)).toMatchObject({ simulated, rejected: {} })
    expect(status.stateSinceMs).toBe(START_MS)
    await deliver(feed, 1)
    expect((await feed.status()).state).toBe('running')
  })

  test('delivers each event of its source once, in order, and counts it', async () => {
    const feed = await begin()
    await deliver(feed, 1)
    const { accepted } = await feed.status()
    const before = around.sink.data.length
    for (const count of [1, 7, 30]) {
      around.clock.pass(10)
      await deliver(feed, count)
    }
    await expect
      .poll(async () => (await feed.status()).accepted, soon)
      .toBe(accepted + around.sink.data.length - before)
  })

  test('counts what the market rejects by its reason, and goes on', async () => {
    const feed = await begin()
    await deliver(feed, 1)
    around.sink.reject = () => 'late'
    const rejected = (await feed.send(3)).length
    await expect.poll(async () => (await feed.status()).rejected, soon).toEqual({ late: rejected })
    around.sink.reject = () => null
    await deliver(feed, 2)
  })

  test('goes on after an exception of the market, which it counts', async () => {
    const feed = await begin()
    await deliver(feed, 1)
    around.sink.reject = () => {
      throw new Error('a fault of the program')
    }
    await feed.send(1)
    await expect.poll(async () => (await feed.status()).rejected.fault, soon).toBeGreaterThanOrEqual(1)
    // A step of the simulator is several events, each in a turn where they fail.
    let faults = 0
    const stays = async (): Promise<boolean> => {
      const before = faults
      faults = (await feed.status()).rejected.fault ?? 0
      return faults === before
    }
    await expect.poll(stays, soon).toBe(true)
    around.sink.reject = () => null
    await deliver(feed, 2)
    if (isLight)
      expect(around.log.lines).toContainEqual(
        expect.objectContaining({ level: 'error', message: 'an event could not be applied' }),
      )
  })

  test('counts what is no event by its reason, and goes on', async ({ skip }) => {
    const feed = await begin()
    if (feed.spoil === null) return skip('its source is part of it')
    await deliver(feed, 1)
    const before = around.sink.data.length
    const reasons = await feed.spoil()
    const once = Object.fromEntries(reasons.map((reason) => [reason, 1]))
    await expect.poll(async () => feed.reasons(await feed.status()), soon).toEqual(once)
    expect(around.sink.data).toHaveLength(before)
    await deliver(feed, 2)
  })

  test('tells when it refuses much of what it gets, with reason and sample, until that is over', async () => {
    const feed = await begin()
    await deliver(feed, 1)
    const before = (await feed.status()).refusals
    expect(before).toMatchObject({ isTooMuch: false, refused: 0 })
    around.sink.reject = () => 'late'
    // The simulator has sent a history before.
    await feed.send(REFUSAL_JUDGED_MIN + Math.ceil(before.received / 5))
    await expect.poll(async () => (await feed.status()).refusals.isTooMuch, soon).toBe(true)
    const { refusals, feed: name } = await feed.status()
    expect(refusals.reasons).toEqual({ late: refusals.refused })
    expect(refusals.samples).toEqual([{ reason: 'late', sample: expect.stringMatching(/at 20\d\d-/) }])
    const told = expect.stringContaining(`the feed ${name} has refused`)
    if (isLight)
      expect(around.log.lines).toContainEqual(expect.objectContaining({ level: 'warn', message: told }))
    if (feed.reasonsTold !== undefined) expect(await feed.reasonsTold()).toContainEqual(told)
    around.sink.reject = () => null
    around.clock.pass(REFUSAL_SPANS * REFUSAL_SPAN_MS)
    expect((await feed.status()).refusals).toMatchObject({ isTooMuch: false, refused: 0 })
    if (feed.reasonsTold !== undefined) expect(await feed.reasonsTold()).not.toContainEqual(told)
  })

  test('tells each loss of its source, since when, and each return, in turn', async ({ skip }) => {
    const feed = await begin()
    const { outage } = feed
    if (outage === null || !told.events)
      return skip('it has no source to lose, or one that trades do not come from')
    await deliver(feed, 1)
    const expected: object[] = []
    const known = around.sink.links.length
    for (let loss = 0; loss < 5; loss++) {
      around.clock.pass(1_000)
      await deliver(feed, 2)
      const sinceMs = around.clock.nowMs - (inFlightMs ?? 0)
      around.clock.pass(1_000)
      await outage.begin()
      expected.push({ type: 'disconnect', ts: around.clock.nowMs, feed: expect.any(String), sinceMs })
      await expect.poll(() => around.sink.links.length - known, soon).toBeGreaterThanOrEqual(expected.length)
      // A source that is back at once is back at this time.
      const isAway = around.sink.links.length - known === expected.length
      expected.push({
        type: 'reconnect',
        ts: around.clock.pass(isAway ? 1_000 : 0),
        feed: expect.any(String),
      })
      await outage.end()
      await expect.poll(() => around.sink.links.length - known, soon).toBe(expected.length)
    }
    expect(around.sink.links.slice(known)).toEqual(expected)
    const { feed: name } = await feed.status()
    expect(new Set(around.sink.links.map((link) => link.feed))).toEqual(new Set([name]))
  })

  test('shows in its state, with the time, that its source is away and that it is back', async ({ skip }) => {
    const feed = await begin()
    const { outage } = feed
    if (outage === null || !told.states) return skip('its state does not depend on its source')
    await deliver(feed, 1)
    expect(await feed.status()).toMatchObject({ state: 'running', latestError: null })
    for (let loss = 0; loss < 2; loss++) {
      const lostAtMs = around.clock.pass(1_000)
      await outage.begin()
      await expect.poll(async () => (await feed.status()).state, soon).toBe('reconnecting')
      const status = await feed.status()
      expect(status.stateSinceMs).toBe(lostAtMs)
      expect(status.latestError?.atMs).toBe(lostAtMs)
      const backAtMs = around.clock.pass(1_000)
      await outage.end()
      await expect.poll(async () => (await feed.status()).state, soon).toBe('running')
      expect((await feed.status()).stateSinceMs).toBe(backAtMs)
    }
    await deliver(feed, 2)
  })

  test('delivers nothing after its end, and leaves no socket and no timer behind', async () => {
    const before = resources()
    const feed = await begin()
    await deliver(feed, 3)
    around.clock.pass(1_000)
    await feed.stop()
    await feed.stop()
    const count = around.sink.received.length
    expect((await feed.status()).state).toBe('stopped')
    await expect.poll(() => feed.connections(), soon).toBe(0)
    await Promise.race([feed.send(3).catch(() => {}), nextTurn()])
    around.clock.pass(100_000)
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    expect(around.sink.received).toHaveLength(count)
    await feed.close()
    // What the test before has left may go meanwhile.
    const more = () => Object.entries(resources()).filter(([kind, count]) => count > (before[kind] ?? 0))
    await expect.poll(more, { ...soon, timeout: 20_000 }).toEqual([])
  })

  test('can be stopped while it starts', async () => {
    const feed = await start(around)
    feeds.push(feed)
    const settled = feed.ready.then(
      () => 'ready',
      () => 'failed',
    )
    await feed.stop()
    expect(await settled).toBe('ready')
    expect((await feed.status()).state).toBe('stopped')
  })

  test.runIf(isLight)('leaves no memory behind', { tags: 'drill' }, async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    let port = 0
    const heapBytesAfter = async (starts: number): Promise<number> => {
      for (let count = 0; count < starts; count++) {
        const own = { sink: new MemorySink(), clock: new TestClock(), log: new MemoryLog(), port }
        const feed = await start(own)
        port = feed.port ?? 0
        await feed.ready
        await feed.send(2)
        await feed.stop()
        await feed.close()
      }
      for (let turn = 0; turn < 5; turn++) {
        await nextTurn()
        collect()
      }
      return process.memoryUsage().heapUsed
    }
    const early = await heapBytesAfter(10)
    const late = await heapBytesAfter(30)
    expect((late - early) / 30).toBeLessThan(20_000)
  })
})
