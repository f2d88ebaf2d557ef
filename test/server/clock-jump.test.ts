// The market goes on when the wall clock is set far ahead or back, for a while or permanently.
import { expect, test } from 'vitest'
import { SteadyClock } from '../../src/lib/steady-clock.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { SteppedClock } from '../support/clock.ts'
import { openTestServer } from '../support/test-server.ts'

const START_MS = 1_900_000_000_000
const DAY_MS = 86_400_000

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

test('a jump of the wall clock is followed after ten seconds, and a change of less than ten seconds at once', () => {
  const clock = new SteppedClock(START_MS)
  const jumps: [number, boolean][] = []
  const steady = new SteadyClock(clock, (...jump) => jumps.push(jump))
  const afterMs = (ms: number) => {
    clock.pass(ms)
    return steady.now() - START_MS
  }
  clock.step(DAY_MS)
  expect([afterMs(0), afterMs(4_000), afterMs(5_999)]).toEqual([0, 4_000, 9_999])
  expect(afterMs(1)).toBe(DAY_MS + 10_000)
  expect(jumps).toEqual([
    [DAY_MS, false],
    [DAY_MS, true],
  ])
  clock.step(-9_999)
  expect(afterMs(1_000)).toBe(DAY_MS + 1_001)
  expect(jumps).toHaveLength(2)
})
