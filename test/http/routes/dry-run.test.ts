// POST /api/v1/analysis/submit?dryRun=1 over real HTTP and the real store: the verdict of a submission, and nothing of its
// effects but the attempt.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { clockOf } from '../../support/clock.ts'
import { newMint, seedToken, submission, submit, VALUES } from '../../support/submission.ts'
import { type Answer, openTestServer, type TestServer } from '../../support/test-server.ts'

let nowMs = 1_795_000_000_000
let server: TestServer
let key: string

beforeAll(async () => {
  server = await openTestServer({}, { clock: clockOf(() => nowMs) })
})
afterAll(() => server.remove())
beforeEach(async () => {
  nowMs += 120_000
  key = await server.client.register()
})

const tryOut = (body: unknown, query = 'dryRun=1', headers: Record<string, string> = {}): Promise<Answer> =>
  server.client.post(`/api/v1/analysis/submit?${query}`, body, key, headers)
const send = (body: unknown, headers: Record<string, string> = {}) =>
  submit(server.client, key, body, headers)
const standing = async () =>
  (await server.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).body.standing
const withPrice = (mint: string, priceUsd: number) =>
  submission(mint, { snapshot: { ...VALUES, priceUsd, snapshotAt: nowMs } })
/** What an answer says, without the ids and times of one request. */
const verdictOf = ({ body }: Answer): Record<string, unknown> => {
  const { analysisId: _, nextAllowedAt: __, dryRun: ___, requestId: ____, ...verdict } = body
  return verdict
}

describe('a dry run', () => {
  it.each(['1', 'true', 'TRUE'])(
    '(dryRun=%s) says what the submission gets, and does none of it',
    async (word) => {
      const mint = await seedToken(server.client, nowMs)
      const dry = await tryOut(submission(mint), `dryRun=${word}`)
      expect(dry.status).toBe(200)
      expect(dry.body).toMatchObject({ ok: true, dryRun: true, analysisId: null, xpEarned: 50, xpTotal: 50 })
      expect(dry.body.nextAllowedAt).toBe(nowMs)
      expect(dry.headers.get('location')).toBeNull()
      expect(await standing()).toMatchObject({ xp: 0, analyses: 0, validated: 0, limits: { cooldowns: [] } })
      const real = await send(submission(mint))
      expect(real.status).toBe(201)
      expect(verdictOf(dry)).toEqual(verdictOf(real))
    },
  )

  it.each(['0', 'false'])('is none with dryRun=%s', async (word) => {
    const mint = await seedToken(server.client, nowMs)
    expect((await tryOut(submission(mint), `dryRun=${word}`)).status).toBe(201)
  })

  // A name alone may be meant as either.
  it.each(['dryRun=yes', 'dryRun=', 'dryRun'])('refuses %s, before anything counts', async (query) => {
    const { status, body } = await tryOut({}, query)
    expect([status, body.code, body.errors[0].pointer]).toEqual([400, 'invalid_parameter', '/dryRun'])
    expect((await standing()).limits.submit.remaining).toBe(10)
  })

  it('foresees half the XP of an unvalidated submission, and its warning', async () => {
    const mint = await seedToken(server.client, nowMs)
    const dry = await tryOut(withPrice(mint, 0.0013))
    expect(dry.body).toMatchObject({ outcome: 'unvalidated', xpEarned: 25, worstField: 'priceUsd' })
    expect(verdictOf(dry)).toEqual(verdictOf(await send(withPrice(mint, 0.0013))))
  })

  it('answers a rejection with the same problem, and counts no strike', async () => {
    const mint = await seedToken(server.client, nowMs)
    const dry = await tryOut(withPrice(mint, 0.01))
    expect(dry.status).toBe(422)
    expect(dry.body).toMatchObject({ code: 'snapshot_rejected', dryRun: true, strikes: 1 })
    expect((await tryOut(withPrice(mint, 0.01))).body.strikes).toBe(1)
    expect(await standing()).toMatchObject({ strikes: 0, rejected: 0 })
    expect(verdictOf(dry)).toEqual(verdictOf(await send(withPrice(mint, 0.01))))
  })

  it('foresees a suspension, and suspends nobody', async () => {
    for (let strike = 0; strike < 2; strike++)
      await send(withPrice(await seedToken(server.client, nowMs), 0.01))
    const mint = await seedToken(server.client, nowMs)
    const dry = await tryOut(withPrice(mint, 0.01))
    expect([dry.status, dry.body.code, dry.body.dryRun]).toEqual([403, 'agent_banned', true])
    expect(await standing()).toMatchObject({ banned: false, bannedUntil: null, strikes: 2 })
    expect((await send(submission(mint))).status).toBe(201)
  })

  it.each([
    ['a body that is no JSON', '{', 'invalid_json'],
    ['a wrong field', { mint: 1 }, 'validation_failed'],
    ['an unknown token', submission(newMint()), 'token_not_found'],
  ])('refuses %s as a submission would', async (_, body, code) => {
    const dry = await tryOut(body)
    expect(dry.body).toMatchObject({ ok: false, code, dryRun: true })
    expect(verdictOf(dry)).toEqual(verdictOf(await send(body)))
  })

  it('is refused in the cooldown of the mint, and starts none', async () => {
    const mint = await seedToken(server.client, nowMs)
    await tryOut(submission(mint))
    await tryOut(submission(mint))
    expect((await send(submission(mint))).status).toBe(201)
    expect((await tryOut(submission(mint))).body).toMatchObject({ code: 'mint_cooldown', dryRun: true })
  })

  it('uses the rate, of which a restart forgets nothing', { tags: 'drill' }, async () => {
    const mint = await seedToken(server.client, nowMs)
    for (let left = 9; left >= 0; left--)
      expect((await tryOut(submission(mint))).headers.get('x-ratelimit-remaining')).toBe(`${left}`)
    const refused = await tryOut(submission(mint))
    expect(refused.body).toMatchObject({ code: 'submit_rate_limited', dryRun: true })
    expect(refused.headers.get('retry-after')).toBe('60')
    server = await server.restart()
    expect((await send(submission(mint))).body.code).toBe('submit_rate_limited')
  })

  it('is not remembered under an Idempotency-Key, and gets no remembered answer', async () => {
    const mint = await seedToken(server.client, nowMs)
    const header = { 'Idempotency-Key': 'once' }
    await tryOut(submission(mint), 'dryRun=1', header)
    const real = await send(submission(mint, { score: 71 }), header)
    expect([real.status, real.headers.get('idempotency-replayed')]).toEqual([201, null])
    const dry = await tryOut(submission(mint, { score: 71 }), 'dryRun=1', header)
    expect([dry.body.code, dry.headers.get('idempotency-replayed')]).toEqual(['mint_cooldown', null])
  })

  it('of two agents at once takes the first bonus from neither', async () => {
    const mint = await seedToken(server.client, nowMs)
    const other = await server.client.register('other')
    const answers = await Promise.all([
      tryOut(submission(mint)),
      server.client.post('/api/v1/analysis/submit?dryRun=1', submission(mint), other),
    ])
    expect(answers.map(({ body }) => body.xpEarned)).toEqual([50, 50])
    expect((await send(submission(mint))).body.xpEarned).toBe(50)
  })

  it('stores no row but the attempt', async () => {
    const mint = await seedToken(server.client, nowMs)
    const rowsOf = async () =>
      (await server.store.status()).lake
        .filter(({ table }) => ['training', 'rejections', 'xp_ledger'].includes(table))
        .map(({ rows, backlog }) => rows + backlog)
    const before = await rowsOf()
    await tryOut(submission(mint))
    await tryOut(withPrice(mint, 0.01))
    expect(await rowsOf()).toEqual(before)
    const listed = await server.client.get(`/api/v1/analysis?mint=${mint}`)
    expect(listed.body.data).toEqual([])
  })
})
