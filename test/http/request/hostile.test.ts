// JSON bodies made to mislead code, over the real server: each is refused with a pointer to the fault, never with a 500.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FRAMES, PROFILES, RECORDS, SUBMISSIONS } from '../../fuzz/entrances.ts'
import { Mutator } from '../../support/mutations.ts'
import { expectProblem, newMint, submission, submit } from '../../support/submission.ts'
import { ADMIN_KEY, FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

const TRICK = { length: { toString: 1 } }
const CASES_EACH = 40
let server: TestServer
let key: string

beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0' })
  key = await server.client.register()
})
afterAll(() => server.remove())

const push = (lines: string) =>
  server.client.request('POST', '/api/v1/ingest', lines, {
    'Content-Type': 'application/x-ndjson',
    Authorization: `Bearer ${FEED_KEY}`,
  })

it('a registration whose name is an object with a length is refused with the pointer of the name', async () => {
  expectProblem(
    await server.client.post('/api/v1/keys/register', { name: TRICK }),
    'validation_failed',
    '/name',
  )
})

it('a profile whose text is an object with a length is refused with the pointer of the text', async () => {
  for (const field of ['name', 'description', 'avatarUrl', 'twitterHandle', 'website']) {
    const answer = await server.client.post('/api/v1/agent/profile', { [field]: TRICK }, key)
    expectProblem(answer, 'validation_failed', `/${field}`)
  }
})

it('risk factors that are an object with a length are refused with their pointer, along with every other fault', async () => {
  const body = submission(newMint(), { score: 101 })
  const answer = await submit(server.client, key, {
    ...body,
    quant: { ...(body.quant as object), riskFactors: TRICK },
  })
  expectProblem(answer, 'validation_failed', '/quant/riskFactors')
  expectProblem(answer, 'validation_failed', '/score')
})

it('a record made to mislead the validator is rejected, and the records around it are accepted', async () => {
  const [mint, ts] = [newMint(), Date.now()]
  const trade = { type: 'trade', mint, ts, side: 'buy', tokenAmount: 5, priceUsd: 0.25 }
  const record = { type: 'patch', mint, ts, fields: { topHolders: TRICK } }
  const answer = await push([trade, record, trade].map((line) => JSON.stringify(line)).join('\n'))
  expect(answer.body).toMatchObject({
    ok: true,
    accepted: 2,
    rejected: 1,
    errors: [{ index: 1, code: 'invalid_type', message: expect.stringMatching(/^fields\.topHolders: /) }],
  })
})

it.each([
  ['/api/v1/keys/register', PROFILES, ''],
  ['/api/v1/agent/profile', PROFILES, 'agent'],
  ['/api/v1/analysis/submit', SUBMISSIONS, 'agent'],
  ['/api/v1/datapoint/batch', [{ mints: [newMint(), newMint()] }], ''],
  ['/api/v1/admin/keys', PROFILES, ADMIN_KEY],
  ['/api/v1/admin/ban', [{ agentId: 'ag_1', untilMs: 1, reason: 'r' }], ADMIN_KEY],
  ['/api/v1/admin/xp', [{ agentId: 'ag_1', kind: 'milestone', times: 1, note: 'n' }], ADMIN_KEY],
  ['/api/v1/admin/revoke', [{ agentId: 'ag_1', prefix: 'p' }], ADMIN_KEY],
])('a hostile body for %s is accepted or refused with a 4xx status', async (path, templates, access) => {
  const mutator = new Mutator(7)
  for (let at = 0; at < CASES_EACH; at++) {
    const body = mutator.json(mutator.pick<object>(templates))
    const { status, text } = await server.client.post(path, body, access === 'agent' ? key : access)
    expect(status < 500, `${body.slice(0, 500)}: ${text}`).toBe(true)
  }
})

it('a push of hostile records counts every line as accepted or rejected', async () => {
  const mutator = new Mutator(11)
  const lines = Array.from({ length: 400 }, () => mutator.json(mutator.pick([...RECORDS, ...FRAMES])))
  const { status, body } = await push(lines.join('\n'))
  expect(status).toBe(200)
  expect(body.accepted + body.rejected).toBe(400)
})
