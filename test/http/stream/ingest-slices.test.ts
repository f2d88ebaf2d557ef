// DataPoints that were served while one large body of trades was ingested can be submitted without a deviation.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { submission, submit } from '../../support/submission.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

const MINT = mintOfSymbol('one large body')
const TRADES = 40_000
const SNAPSHOT = ['priceUsd', 'marketCap', 'volume24h', 'buys24h', 'sells24h', 'snapshotAt'] as const

let server: TestServer
beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0' })
})
afterAll(() => server.remove())

test('a DataPoint that was served while one large body was ingested is validated without a deviation', async () => {
  const { client } = server
  const key = await client.register()
  await client.push({
    type: 'trade',
    mint: MINT,
    ts: Date.now(),
    side: 'buy',
    tokenAmount: 1,
    priceUsd: 1e-9,
  })
  // Each trade raises the price: after 4096 trades it is 1.5 times the first one.
  const body = Array.from({ length: TRADES }, (_, at) =>
    JSON.stringify({
      type: 'trade',
      mint: MINT,
      ts: Date.now(),
      side: at % 2 ? 'buy' : 'sell',
      tokenAmount: 1,
      priceUsd: 1e-9 * 1.0001 ** at,
    }),
  ).join('\n')
  let isGoingOn = true
  const pushed = client
    .request('POST', '/api/v1/ingest', body, {
      'Content-Type': 'application/x-ndjson',
      Authorization: `Bearer ${FEED_KEY}`,
    })
    .finally(() => {
      isGoingOn = false
    })
  const served = new Map<number, Record<string, number>>()
  while (isGoingOn) {
    const data = JSON.parse(server.market.datapointJson(MINT)!.json.toString())
    served.set(data.priceUsd, Object.fromEntries(SNAPSHOT.map((name) => [name, data[name]])))
    await new Promise(setImmediate)
  }
  expect((await pushed).body).toMatchObject({ ok: true, accepted: TRADES })
  expect(served.size, 'the body was read between its slices').toBeGreaterThan(5)
  for (const snapshot of served.values()) {
    const answer = await submit(client, key, submission(MINT, { snapshot }))
    expect(answer.body, answer.text).toMatchObject({ outcome: 'validated', deviationPct: 0 })
  }
})

test('a DataPoint served in the millisecond of a change, before or after it, is validated without a deviation', async () => {
  await server.remove()
  let nowMs = 1_900_000_000_000
  const settings = { 'submit-limits': 'rate=0,cooldown-ms=0' }
  server = await openTestServer(settings, { clock: { ...systemClock, now: () => nowMs } })
  const { client, market } = server
  const key = await client.register()
  const trade = { type: 'trade', mint: MINT, side: 'buy', tokenAmount: 1 }
  const read = async () => {
    const { priceUsd, volume24h, snapshotAt } = (await client.get(`/api/v1/datapoint?mint=${MINT}`)).body.data
    return { priceUsd, volume24h, snapshotAt }
  }
  await client.push({ ...trade, ts: nowMs, priceUsd: 1 })
  nowMs += 1_000
  market.advanceTo(nowMs)
  const before = await read()
  await client.push({ ...trade, ts: nowMs, priceUsd: 10 })
  const after = await read()
  expect([before, after]).toMatchObject([
    { priceUsd: 1, snapshotAt: nowMs },
    { priceUsd: 10, snapshotAt: nowMs },
  ])
  nowMs += 1_000
  await client.push({ ...trade, ts: nowMs, priceUsd: 100 })
  for (const snapshot of [before, after]) {
    const answer = await submit(client, key, submission(MINT, { snapshot }))
    expect(answer.body, answer.text).toMatchObject({ outcome: 'validated', deviationPct: 0 })
  }
  const mixed = { ...after, priceUsd: before.priceUsd }
  const answer = await submit(client, key, submission(MINT, { snapshot: mixed }))
  expect(answer.body.code, 'each version counts as a whole').toBe('snapshot_rejected')
})
