// What agents ask for first: dry runs, their standing, their submissions.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient, type MintlakeClient, type Submission } from '../../src/client/index.ts'
import { seedToken, submission } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'

let server: TestServer
let anonymous: MintlakeClient
let agent: MintlakeClient
let agentId: string

beforeAll(async () => {
  server = await openTestServer({ 'labels-delay-ms': '600000' })
  anonymous = createClient({ baseUrl: server.url })
  const registration = await anonymous.register({ name: 'standing' })
  agentId = registration.agentId
  agent = createClient({ baseUrl: server.url, key: registration.key })
})
afterAll(() => server.remove())

const newSubmission = async (): Promise<Submission> =>
  submission(await seedToken(server.client, Date.now())) as Submission

test('a dry run has the verdict of the submission, and stores nothing', async () => {
  const body = await newSubmission()
  const trial = await agent.submit(body, { dryRun: true })
  expect(trial).toMatchObject({ dryRun: true, analysisId: null, outcome: 'validated', xpEarned: 50 })
  expect((await agent.analyses({ agentId: 'me', mint: body.mint })).data).toEqual([])
  expect(await agent.submit(body)).toMatchObject({ outcome: 'validated', xpEarned: 50 })
  await expect(agent.submit({ ...body, score: 101 }, { dryRun: true })).rejects.toMatchObject({
    code: 'validation_failed',
    problem: { dryRun: true },
  })
})

test('the standing tells XP, rank and what is left of the limits', async () => {
  const before = await agent.standing()
  const { mint, nextAllowedAt } = await agent.submit(await newSubmission())
  const standing = await agent.standing()
  expect(standing).toMatchObject({ agentId, xp: before.xp + 50, rank: 1, banned: false, bannedUntil: null })
  expect(standing.validated).toBe(before.validated + 1)
  expect(standing.limits.submit).toMatchObject({ limit: 10, windowMs: 60_000 })
  // The clocks of the two differ by a fraction of a millisecond.
  const cooldown = standing.limits.cooldowns.find((each) => each.mint === mint)
  expect(Math.abs((cooldown?.nextAllowedAt ?? 0) - nextAllowedAt)).toBeLessThanOrEqual(1)
  expect(standing.limits.reads).toBeNull()
})

test('pages of its own submissions lead from the newest to the oldest', async () => {
  const { analysisId } = await agent.submit(await newSubmission())
  const listed: string[] = []
  let cursor: string | undefined
  do {
    const page = await agent.analyses({ agentId: 'me', limit: 1, cursor })
    listed.push(...page.data.map((each) => each.analysisId))
    cursor = page.meta.nextCursor ?? undefined
  } while (cursor !== undefined)
  expect(listed[0]).toBe(analysisId)
  expect(new Set(listed).size).toBe((await agent.standing()).analyses)
})

test('labels of others are withheld, its own are not', async () => {
  const { analysisId, createdAt } = await agent.submit(await newSubmission())
  expect(await agent.analysis(analysisId)).toMatchObject({ score: 70, labelsAvailableAt: null })
  const withheld = await anonymous.analysis(analysisId)
  expect(withheld).toMatchObject({ score: null, sentiment: null, quant: null })
  expect(withheld.labelsAvailableAt).toBeGreaterThan(createdAt)
})
