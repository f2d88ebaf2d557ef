// GET /api/v1/agents/record over the real lake: whether an agent was right, and its XP over time.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CALIBRATION_TTL_MS } from '../../../src/http/limits.ts'
import { knownHits } from '../../../src/http/routes/agents.ts'
import { type AgentHits, agentRecordAnswerSchema } from '../../../src/schema/api/agent-record.ts'
import { agentLeaderboardSchema } from '../../../src/schema/api/submissions.ts'
import { SteppedClock } from '../../support/clock.ts'
import { expectProblem, seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const DELAY_MS = 600_000
const MINUTE_MS = 60_000
let clock: SteppedClock
let server: TestServer
beforeEach(async () => {
  clock = new SteppedClock(1_795_000_000_000)
  server = await openTestServer({ 'labels-delay-ms': `${DELAY_MS}` }, { clock })
})
afterEach(() => server.remove())

/** Trades of so many minutes at prices that rise by a percent each, until their outcomes are in the lake. */
async function rise(mint: string, minutes: number, from: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    const ts = clock.now()
    const priceUsd = 0.001 * 1.01 ** (from + minute)
    await server.client.push({
      type: 'trade',
      side: 'buy',
      tokenAmount: 1_000,
      priceUsd,
      ts,
      mint,
      tx: `${ts}`,
    })
    clock.pass(MINUTE_MS)
  }
  server.market.advanceTo(clock.now())
  await expect.poll(() => server.market.barsEmittedToMs).toBe(clock.now() - 15_000)
  await server.store.bars.flush()
  await server.store.flushLake()
  await server.store.flushLake()
}

const recordOf = async (agentId: string) => {
  const { body } = await server.client.get(`/api/v1/agents/record?agentId=${agentId}`)
  return agentRecordAnswerSchema.parse(body).data
}

it('counts hits in the direction said, once labels are shown, and tells XP over time', {
  tags: 'drill',
}, async () => {
  const mint = await seedToken(server.client, clock.now())
  await rise(mint, 1, 0)
  const [right, wrong] = [await server.client.register('right'), await server.client.register('wrong')]
  const send = async (key: string, sentiment: string) => {
    const { status, body, text } = await submit(server.client, key, submission(mint, { sentiment }))
    expect(status, text).toBe(201)
    return body
  }
  const receipt = await send(right, 'bullish')
  await send(wrong, 'bearish')
  const leaders = (await server.client.get('/api/v1/agents/leaderboard')).body.data
  const idOf = (name: string) => leaders.find((leader: { name: string }) => leader.name === name).agentId
  await rise(mint, 8, 1)
  expect(await recordOf(idOf('right'))).toMatchObject({ name: 'right', horizons: [], groups: [] })
  // Its answer of a minute is kept: a server that was started anew has none.
  await rise(mint, 12, 9)
  server = await server.restart()
  const record = await recordOf(idOf('right'))
  expect(record.horizons.slice(0, 2)).toEqual([
    { horizon: '5m', count: 1, hits: 1, meanPct: expect.closeTo(5.1, 0) },
    { horizon: '15m', count: 1, hits: 1, meanPct: expect.closeTo(16, -1) },
  ])
  expect(record.groups).toContainEqual(
    expect.objectContaining({ kind: 'sentiment', label: 'bullish', horizon: '5m', count: 1, lowPct: null }),
  )
  expect(record.xp).toEqual([{ atMs: expect.any(Number), xp: receipt.xpEarned }])
  const other = await recordOf(idOf('wrong'))
  expect(other.horizons[0]).toMatchObject({ horizon: '5m', count: 1, hits: 0 })
  expect(other.horizons[0]?.meanPct).toBeLessThan(-4)
  // The leaderboard tells the same of each, beside its XP.
  const board = await server.client.get('/api/v1/agents/leaderboard')
  const { data } = agentLeaderboardSchema.parse(board.body)
  expect(Object.fromEntries(data.map(({ name, horizons }) => [name, horizons]))).toEqual({
    right: record.horizons,
    wrong: other.horizons,
  })
})

it('a leaderboard answers without a lake, and with what was known before', { tags: 'drill' }, async () => {
  const told: AgentHits[] = [
    { agentId: 'ag_1', horizons: [{ horizon: '5m', count: 2, hits: 1, meanPct: 0.5 }] },
  ]
  let [nowMs, answer] = [0, (): Promise<AgentHits[]> => Promise.reject(new Error('no lake'))]
  const leader = { rank: 1, agentId: 'ag_1', name: 'one', xp: 50, analyses: 2 }
  const hits = knownHits({
    store: { agentHits: () => answer() },
    nowMs: () => nowMs,
    submissions: { agentLeaderboard: () => [leader], shownLabels: () => ({ asOfMs: 0, labelsToMs: null }) },
  })
  expect([...(await hits())]).toEqual([])
  answer = () => Promise.resolve(told)
  expect((await hits()).get('ag_1')).toEqual(told[0]?.horizons)
  nowMs += CALIBRATION_TTL_MS
  answer = () => new Promise(() => {})
  expect((await hits()).get('ag_1')).toEqual(told[0]?.horizons)
})

it('me is the agent whose key is sent, and without one the answer says that it needs one', async () => {
  const key = await server.client.register('mine')
  const asked = await server.client.get('/api/v1/agents/record?agentId=me', {
    Authorization: `Bearer ${key}`,
  })
  expect(agentRecordAnswerSchema.parse(asked.body).data.name).toBe('mine')
  const other = await server.client.register('theirs')
  const again = await server.client.get('/api/v1/agents/record?agentId=me', {
    Authorization: `Bearer ${other}`,
  })
  expect(again.body.data.name).toBe('theirs')
  const keyless = await server.client.get('/api/v1/agents/record?agentId=me')
  expectProblem(keyless, 'missing_key')
  expect(keyless.body.error).toContain('Authorization: Bearer')
})

it('of no agent is 404, and what is no identity 400', async () => {
  expectProblem(await server.client.get('/api/v1/agents/record?agentId=ag_none'), 'not_found')
  expectProblem(await server.client.get('/api/v1/agents/record'), 'invalid_parameter')
})
