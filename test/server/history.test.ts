// The last hour of the server: sampled, bounded, with limits.
import { expect, it } from 'vitest'
import { HISTORY_EVERY_MS, HISTORY_SAMPLES_MAX } from '../../src/http/limits.ts'
import { historySchema } from '../../src/schema/api/status.ts'
import { ServerHistory } from '../../src/server/history.ts'
import { SteppedClock } from '../support/clock.ts'
import { openTestServer } from '../support/test-server.ts'

it('keeps the last hour, rates of counters, and what this server does not have is left out', async () => {
  const clock = new SteppedClock(1_795_000_000_000)
  let trades = 0
  const value = async (name: string) =>
    name === 'mintlake_market_trades_total' ? trades : name === 'mintlake_market_tokens' ? 90 : null
  const history = new ServerHistory({ value }, clock, 100, 64)
  for (let samples = 0; samples < HISTORY_SAMPLES_MAX + 40; samples++) {
    await history.sample()
    clock.pass(HISTORY_EVERY_MS)
    trades += 500
  }
  const { timesMs, series } = history.since(0)
  expect(timesMs.length).toBe(HISTORY_SAMPLES_MAX)
  expect(timesMs.at(-1)! - timesMs[0]!).toBe(3_600_000 - HISTORY_EVERY_MS)
  expect(series.map(({ name, limit, limitIs, values }) => [name, limit, limitIs, values.at(-1)])).toEqual([
    ['trades', null, null, 50],
    ['tokens', 100, 'most', 90],
    ['eventLoopDelay', 0.25, 'most', expect.any(Number)],
  ])
  // Who has the others asks for the newest alone.
  expect(history.since(timesMs.at(-2)!).series[0]).toMatchObject({ name: 'trades', values: [50] })
  // Also where the clock was set back.
  clock.step(-1_800_000)
  await history.sample()
  expect(history.since(timesMs.at(-1)!).timesMs).toEqual([clock.wallMs])
})

it('is served to everybody, and a counter that goes back is no negative rate', async () => {
  const server = await openTestServer()
  const { body } = await server.client.get('/health/history')
  expect(historySchema.parse(body)).toEqual(body)
  const names = body.data.series.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['tokens', 'followers', 'memory', 'eventLoopDelay']))
  // The space that the store keeps free.
  const diskFree = body.data.series.find(({ name }: { name: string }) => name === 'diskFree')
  expect(diskFree).toMatchObject({ limit: expect.any(Number), limitIs: 'least' })
  expect((await server.client.get('/health/history?since=x')).status).toBe(400)
  await server.remove()
  const clock = new SteppedClock(0)
  const counts = [10, 3]
  const history = new ServerHistory({ value: async () => counts.shift() ?? 0 }, clock, 100, 64)
  await history.sample()
  clock.pass(1_000)
  await history.sample()
  expect(history.since(0).series[0]?.values.every((each) => each === null || each >= 0)).toBe(true)
})
