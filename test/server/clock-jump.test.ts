// The market goes on when the wall clock is set far ahead or back, for a while or permanently.
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { SteadyClock } from '../../src/lib/steady-clock.ts'
import { Market } from '../../src/market/market.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { Timekeeper } from '../../src/server/timekeeper.ts'
import { SteppedClock } from '../support/clock.ts'
import { openTestServer } from '../support/test-server.ts'

const START_MS = 1_900_000_000_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

test.each([
  ['ahead', 40 * DAY_MS],
  ['back', -40 * DAY_MS],
])('no trade is lost when the wall clock is set %s for three seconds', async (_, stepMs) => {
  const clock = new SteppedClock(START_MS)
  const server = await openTestServer({}, { clock })
  try {
    const [active, silent] = ['active', 'silent'].map(mintOfSymbol)
    const trade = (mint: string, ts: number) =>
      server.client.push({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 })
    await trade(silent, clock.wallMs)
    clock.step(stepMs)
    for (let second = 0; second < 3; second++) {
      clock.pass(1_000)
      await trade(active, clock.wallMs - stepMs)
    }
    clock.step(-stepMs)
    clock.pass(20_000)
    await trade(silent, clock.wallMs)
    await trade(active, clock.wallMs)
    expect(server.market.timeMs).toBe(clock.wallMs)
    expect(server.market.datapoint(active)).toMatchObject({ volume1m: 4, buys24h: 4 })
  } finally {
    await server.remove()
  }
})

type Jumps = [number, boolean][]
function openSteady(clock: Clock): { steady: SteadyClock; jumps: Jumps } {
  const jumps: Jumps = []
  return { steady: new SteadyClock(clock, (...jump) => jumps.push(jump)), jumps }
}

test('a jump of the clock is believed once it has lasted as long as it is far, and less than ten seconds at once', () => {
  const clock = new SteppedClock(START_MS)
  const { steady, jumps } = openSteady(clock)
  const afterMs = (ms: number) => {
    clock.pass(ms)
    return steady.now() - START_MS
  }
  clock.step(MINUTE_MS)
  expect([afterMs(0), afterMs(13_000), afterMs(MINUTE_MS - 13_001)]).toEqual([0, 13_000, MINUTE_MS - 1])
  expect(afterMs(1)).toBe(2 * MINUTE_MS)
  clock.step(-9_999)
  expect(afterMs(1_000)).toBe(2 * MINUTE_MS - 8_999)
  clock.step(-MINUTE_MS)
  expect(afterMs(0)).toBe(2 * MINUTE_MS - 8_999)
  expect(afterMs(MINUTE_MS - 1)).toBe(3 * MINUTE_MS - 9_000)
  expect(afterMs(1)).toBe(2 * MINUTE_MS - 8_999)
  expect(jumps).toEqual([
    [MINUTE_MS, false],
    [MINUTE_MS, true],
    [-MINUTE_MS, false],
    [-MINUTE_MS, true],
  ])
})

test('a jump of days ahead is believed after an hour, and one back never', () => {
  const clock = new SteppedClock(START_MS)
  const { steady } = openSteady(clock)
  clock.step(40 * DAY_MS)
  expect(steady.now()).toBe(START_MS)
  clock.pass(HOUR_MS)
  expect(steady.now()).toBe(clock.wallMs)
  clock.step(-40 * DAY_MS)
  for (let hour = 0; hour < 50; hour++) {
    clock.pass(HOUR_MS)
    expect(steady.now()).toBe(clock.wallMs + 40 * DAY_MS)
  }
  expect(steady.jumpMs).toBe(-40 * DAY_MS)
  steady.trust()
  expect([steady.now(), steady.jumpMs]).toEqual([clock.wallMs, 0])
})

test('a clock that was behind at the start is believed as soon as it is not', () => {
  const clock = new SteppedClock(0)
  const { steady } = openSteady(clock)
  steady.notBefore(START_MS)
  for (let hour = 0; hour < 5; hour++) clock.pass(HOUR_MS)
  expect(steady.now()).toBe(START_MS + 5 * HOUR_MS)
  clock.step(START_MS + DAY_MS)
  expect(steady.now()).toBe(START_MS + DAY_MS + 5 * HOUR_MS)
  expect(steady.jumpMs).toBe(0)
})

test('a clock that comes back to where it was is believed at once', () => {
  const clock = new SteppedClock(START_MS)
  const { steady } = openSteady(clock)
  steady.now()
  clock.step(-HOUR_MS)
  steady.now()
  clock.pass(HOUR_MS)
  expect(steady.now()).toBe(START_MS)
  clock.step(HOUR_MS)
  expect(steady.now()).toBe(START_MS + HOUR_MS)
})

class BootedClock extends SteppedClock {
  id = 'first'
  uptimeMs = 1_000
  readonly boot = () => ({ id: this.id, uptimeMs: this.uptimeMs })
  override pass(ms: number): void {
    super.pass(ms)
    this.uptimeMs += ms
  }
  sleep(ms: number): void {
    this.wallMs += ms
    this.uptimeMs += ms
  }
}

test('a machine that has slept has no clock that leapt', () => {
  const clock = new BootedClock(START_MS)
  const { steady, jumps } = openSteady(clock)
  steady.now()
  clock.sleep(8 * HOUR_MS)
  expect(steady.now()).toBe(START_MS + 8 * HOUR_MS)
  expect(jumps).toEqual([])
})

test('a start knows the time by how long the machine is up, unless it was started anew', () => {
  const clock = new BootedClock(START_MS)
  const known = openSteady(clock).steady.known()
  clock.pass(HOUR_MS)
  clock.step(DAY_MS)
  const { steady } = openSteady(clock)
  steady.goOnFrom(known)
  expect(steady.now()).toBe(START_MS + HOUR_MS)
  expect(steady.jumpMs).toBe(DAY_MS)
  clock.id = 'second'
  const { steady: other } = openSteady(clock)
  other.goOnFrom(known)
  expect(other.now()).toBe(clock.wallMs)
})

test.each([
  ['a gap', null],
  ['none where a feed heals', START_MS + DAY_MS],
])('what the clock leaps over while feeds bring what they begin with is %s', async (_, healUntilMs) => {
  const clock = new SteppedClock(START_MS)
  const { steady } = openSteady(clock)
  const market = new Market({ tokensMax: 10 })
  // Recorded a minute ahead of what the machine says when it starts.
  market.advanceTo(START_MS + MINUTE_MS)
  if (healUntilMs !== null) {
    const ts = market.timeMs
    market.apply({ type: 'disconnect', ts, feed: 'push', sinceMs: ts, healUntilMs }, ts)
  }
  const told: MarketEvent[] = []
  const sink = {
    ...{ timeMs: 0, prefetch() {} },
    apply(event: MarketEvent, atMs: number) {
      told.push(event)
      return market.apply(event, atMs)
    },
  }
  const deps = {
    clock: steady,
    config: readConfig(['--feed', 'none'], {}),
    log: createLog('error'),
    publisher: null,
  }
  const keeper = new Timekeeper(deps, market, sink)
  const fromMs = keeper.beginMs()
  clock.step(4 * HOUR_MS)
  keeper.start()
  await expect.poll(() => market.timeMs, { interval: 10 }).toBe(START_MS + 4 * HOUR_MS)
  keeper.stop()
  expect(told).toMatchObject(healUntilMs === null ? [{ type: 'gap', reason: 'leap', fromMs }] : [])
})
