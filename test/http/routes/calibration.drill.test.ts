// @module-tag drill
// GET /api/v1/calibration over real HTTP and the real store: whose labels it tells, and when.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { calibrationAnswerSchema } from '../../../src/schema/api/calibration.ts'
import { SteppedClock } from '../../support/clock.ts'
import { seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const DELAY_MS = 600_000
let clock: SteppedClock
let server: TestServer
beforeEach(async () => {
  clock = new SteppedClock(1_795_000_000_000)
  server = await openTestServer({ 'labels-delay-ms': `${DELAY_MS}` }, { clock })
})
afterEach(() => server.remove())

/** Trades of so many minutes, until their outcomes are in the lake. */
async function trade(mints: readonly string[], minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    const ts = clock.now()
    const trade = { type: 'trade', side: 'buy', tokenAmount: 1_000, priceUsd: 0.001, ts }
    await server.client.push(...mints.map((mint) => ({ ...trade, mint, tx: `${ts} ${mint}` })))
    clock.pass(60_000)
  }
  server.market.advanceTo(clock.now())
  await expect.poll(() => server.market.barsEmittedToMs).toBe(clock.now() - 15_000)
  await server.store.bars.flush()
  await server.store.flushLake()
  await server.store.flushLake()
}

async function groups(): Promise<[string, string, number, number][]> {
  const { body } = await server.client.get('/api/v1/calibration')
  const { sentiments, scores } = calibrationAnswerSchema.parse(body).data
  return [...sentiments, ...scores].map(({ label, horizon, count, tokens }) => [
    label,
    horizon,
    count,
    tokens,
  ])
}

it('tells labels when their delay has passed, of groups of five submissions and three agents at least', async () => {
  const mints = [await seedToken(server.client, clock.now()), await seedToken(server.client, clock.now())]
  const [one, other] = mints
  const keys: string[] = []
  for (const name of ['a', 'b', 'c']) keys.push(await server.client.register(name))
  const send = async (key = '', mint = '', more = {}) =>
    expect((await submit(server.client, key, submission(mint, more))).status).toBe(201)
  const [a, b, c] = keys
  for (const key of keys) await send(key, one)
  for (const key of [a, b]) await send(key, other)
  // Two agents are too few, and so are four submissions.
  for (let round = 0; round < 3; round++) {
    clock.pass(61_000)
    for (const key of [a, b]) await send(key, one, { sentiment: 'bearish', score: 10 })
  }
  await send(c, other, { sentiment: 'neutral', score: 30 })
  clock.pass(61_000)
  for (const key of keys) await send(key, other, { sentiment: 'neutral', score: 30 })

  await trade(mints, 5)
  expect(await groups()).toEqual([])
  // The delay does not pass because somebody sets the clock.
  server = await server.restart()
  clock.step(3_600_000)
  expect(await groups()).toEqual([])
  clock.step(-3_600_000)

  await trade(mints, 8)
  server = await server.restart()
  expect(await groups()).toEqual([
    ['bullish', '15m', 5, 2],
    ['bullish', '5m', 5, 2],
    ['60–79', '15m', 5, 2],
    ['60–79', '5m', 5, 2],
  ])
})
