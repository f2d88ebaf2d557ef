// Every call of the client on a real server.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient, type MintlakeClient, type Submission } from '../../src/client/index.ts'
import { seedToken, submission } from '../support/submission.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../support/test-server.ts'

const COOLDOWN_MS = 300
let server: TestServer
let anonymous: MintlakeClient

beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': `rate=0,cooldown-ms=${COOLDOWN_MS}` })
  anonymous = createClient({ baseUrl: server.url })
})
afterAll(() => server.remove())

const seed = (): Promise<string> => seedToken(server.client, Date.now())
const submissionOf = (mint: string): Submission => submission(mint) as Submission

async function agentOf(name: string, request?: typeof fetch): Promise<MintlakeClient> {
  const { key, rateLimit } = await anonymous.register({ name })
  expect(rateLimit).toBeNull()
  return createClient({ baseUrl: server.url, key, fetch: request })
}

test('reads pages, and all rows of one version of the list over its cursors', async () => {
  const mints = await Promise.all(Array.from({ length: 7 }, seed))
  const page = await anonymous.market({ tab: 'all', limit: 3, order: 'asc' })
  expect(page.data).toHaveLength(3)
  expect(page.meta).toMatchObject({ limit: 3, count: 3, total: 7, order: 'asc' })
  const rows: string[] = []
  for await (const { mint } of anonymous.marketRows({ limit: 2 })) {
    rows.push(mint)
    if (rows.length === 3) await seed()
  }
  expect(rows.toSorted()).toEqual(mints.toSorted())
})

test('a parameter that is null, as programs without types send it, is left out', async () => {
  const mint = await seed()
  const query: object = { search: null, sort: null, limit: 500 }
  const { data, meta } = await anonymous.market(query)
  expect(data.map((row) => row.mint)).toContain(mint)
  expect(meta.search).toBeUndefined()
})

test('reads DataPoints of one token, and of more than one request takes', async () => {
  const mints = await Promise.all(Array.from({ length: 12 }, seed))
  expect((await anonymous.datapoint(mints[0])).holderCount).toBe(200)
  const unknown = 'So11111111111111111111111111111111111111112'
  const { data, notFound } = await anonymous.datapoints([...mints, unknown])
  expect(data.map(({ mint }) => mint)).toEqual(mints)
  expect(notFound).toEqual([unknown])
  await expect(anonymous.datapoint(unknown)).rejects.toMatchObject({ code: 'token_not_found', status: 404 })
})

test('reads bars', async () => {
  const mint = await seed()
  const trade = { type: 'trade', mint, side: 'buy', tokenAmount: 10, priceUsd: 2 }
  await server.client.push({ ...trade, ts: Date.now() })
  const { data, meta } = await anonymous.bars({ mint, tf: '1s', limit: 5 })
  expect(data).toMatchObject([{ o: 2, v: 20, n: 1, closed: false }])
  expect(meta).toMatchObject({ mint, tf: '1s', fill: 'none' })
})

test('registers, submits, and reads the analysis, the leaderboard and the profile', async () => {
  const agent = await agentOf('ranked')
  const mint = await seed()
  const receipt = await agent.submit(submissionOf(mint))
  expect(receipt).toMatchObject({ mint, outcome: 'validated', xpEarned: 50, snapshotSource: 'server' })
  expect(await agent.analysis(receipt.analysisId)).toMatchObject({ mint, outcome: 'validated', score: 70 })
  expect((await agent.leaderboard({ limit: 5 }))[0]).toMatchObject({ rank: 1, name: 'ranked', xp: 50 })
  expect(await agent.profile()).toBeNull()
  expect(await agent.setProfile({ website: 'https://example.org' })).toMatchObject({ name: 'ranked' })
  expect(await agent.profile()).toMatchObject({ website: 'https://example.org', avatarUrl: null })
  expect(await agent.schema()).toMatchObject({ type: 'object' })
  expect((await agent.calibration()).sentiments).toEqual([])
})

test('queries the lake with a key that may', async () => {
  const operator = createClient({ baseUrl: server.url, key: ADMIN_KEY })
  const { data, meta } = await operator.query({ sql: 'SELECT 7 AS n FROM range(3)', limit: 2 })
  expect(data).toEqual({ columns: [{ name: 'n', type: 'INTEGER' }], rows: [[7], [7]] })
  expect(meta).toMatchObject({ rows: 2, truncated: true })
  await expect(operator.query({ sql: 'SELEC' })).rejects.toMatchObject({ code: 'query_failed', status: 400 })
  await expect(anonymous.query({ sql: 'SELECT 1' })).rejects.toMatchObject({ code: 'missing_key' })
})

test('a submission whose answer is lost is stored once', async () => {
  let lost = 0
  const lossy: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (init?.method !== 'POST' || lost++ > 0) return answer
    throw new TypeError('the answer was lost')
  }
  const agent = await agentOf('lossy', lossy)
  const receipt = await agent.submit(submissionOf(await seed()))
  expect(lost).toBe(2)
  expect(receipt.xpTotal).toBe(50)
  expect((await agent.leaderboard()).find(({ name }) => name === 'lossy')).toMatchObject({ analyses: 1 })
})

test('a cooldown rejects, or is waited out', async () => {
  const agent = await agentOf('patient')
  const mint = await seed()
  const { nextAllowedAt } = await agent.submit(submissionOf(mint))
  await expect(agent.submit(submissionOf(mint))).rejects.toMatchObject({ code: 'mint_cooldown', status: 429 })
  await agent.submit(submissionOf(mint), { waitForLimits: true })
  expect(Date.now()).toBeGreaterThanOrEqual(nextAllowedAt)
})

test('an error tells each fault with a suggestion', async () => {
  const agent = await agentOf('inventive')
  const body = submissionOf(await seed())
  const wrong = { ...body, quant: { ...body.quant, riskFactors: ['rug_pull_risk'] } }
  // @ts-expect-error the vocabulary is part of the type
  await expect(agent.submit(wrong)).rejects.toMatchObject({
    code: 'validation_failed',
    errors: [{ pointer: '/quant/riskFactors/0', suggestion: 'rug_pattern' }],
  })
})

test('a rejection tells the deviations and the strikes', async () => {
  const agent = await agentOf('fabricator')
  const body = submissionOf(await seed())
  const snapshot = { priceUsd: 5, snapshotAt: Date.now() }
  await expect(agent.submit({ ...body, snapshot })).rejects.toMatchObject({
    code: 'snapshot_rejected',
    problem: { outcome: 'rejected', worstField: 'priceUsd', strikes: 1 },
  })
})

test('rotates its key', async () => {
  const { key } = await anonymous.register({ name: 'rotating' })
  const rotated = await createClient({ baseUrl: server.url, key }).rotate()
  expect(rotated.oldKeyExpiresAt).toBeGreaterThan(Date.now())
  expect(await createClient({ baseUrl: server.url, key: rotated.key }).profile()).toBeNull()
})
