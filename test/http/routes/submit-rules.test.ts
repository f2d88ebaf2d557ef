// The rules of submissions over real HTTP and the real store, on a clock that the test sets: sections 2.5 to 2.7, 3, 7
// and 8 of the specification, sections 3 to 5 of the contract. All tests share one server: each
// has its own agents and tokens, and time only moves forward.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { clockOf } from '../../support/clock.ts'
import { expectProblem, newMint, seedToken, submission, submit, VALUES } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type Settings, type TestServer } from '../../support/test-server.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

let nowMs = 1_795_000_000_000
let server: TestServer
const clock = clockOf(() => nowMs)

beforeAll(async () => {
  server = await openTestServer({}, { clock })
})
afterAll(() => server.remove())

/** Runs `work` on a separate server, with other settings or without other agents. */
async function alone(settings: Settings, work: () => Promise<void>): Promise<void> {
  const shared = server
  server = await openTestServer(settings, { clock })
  try {
    await work()
  } finally {
    await server.remove()
    server = shared
  }
}

/** Advances the clock and the market. */
function pass(ms: number): void {
  nowMs += ms
  server.market.advanceTo(nowMs)
}

const token = (values?: object) => seedToken(server.client, nowMs, values)
const register = (name?: string) => server.client.register(name)
const agentIdOf = async (name: string): Promise<string> => {
  const headers = { Authorization: `Bearer ${ADMIN_KEY}` }
  const { data } = (await server.client.get('/api/v1/admin/agents', headers)).body
  return data.find((agent: { name: string }) => agent.name === name).agentId
}
const totalAnalyses = async (): Promise<number> =>
  (await server.client.get('/api/v1/analysis')).body.totalAnalyses
const send = (key: string, body: unknown, headers?: Record<string, string>) =>
  submit(server.client, key, body, headers)
const snapshotOf = (more: object = {}) => ({ ...VALUES, snapshotAt: nowMs, ...more })

describe('the deviation', () => {
  const OUTCOMES: [string, object, number, string, number][] = [
    ['nothing', {}, 0, 'validated', 50],
    ['exactly 15 % up', { volume24h: 23_000 }, 15, 'validated', 50],
    ['exactly 15 % down', { priceUsd: 0.00085 }, 15, 'validated', 50],
    ['just above 15 %', { volume24h: 23_000.01 }, 15.00005, 'unvalidated', 25],
    ['exactly 50 %', { liquidity: 15_000 }, 50, 'unvalidated', 25],
    ['exactly 50 % of a percentage', { bondingProgress: 60 }, 50, 'unvalidated', 25],
  ]
  it.each(OUTCOMES)('of %s decides outcome and XP', async (_, changes, deviationPct, outcome, xpEarned) => {
    const answer = await send(await register(), submission(await token(), { snapshot: snapshotOf(changes) }))
    expect(answer.status, answer.text).toBe(201)
    expect(answer.body).toMatchObject({
      ok: true,
      outcome,
      validated: outcome === 'validated',
      xpEarned,
      xpTotal: xpEarned,
      snapshotSource: 'client',
    })
    expect(answer.body.deviationPct).toBeCloseTo(deviationPct, 6)
    expect(Object.keys(answer.body.deviations)).toHaveLength(9)
    expect(answer.body.xpBreakdown).toEqual({
      base: 10,
      firstBonus: 25,
      lowCoverageBonus: 15,
      multiplier: outcome === 'validated' ? 1 : 0.5,
    })
    if (deviationPct > 0) expect(answer.body.worstField).toBe(Object.keys(changes)[0])
    expect(typeof answer.body.warning).toBe(outcome === 'validated' ? 'undefined' : 'string')
    expect(answer.body.nextAllowedAt - answer.body.createdAt).toBe(MINUTE_MS)
    expect(answer.headers.get('location')).toBe(`/api/v1/analysis/${answer.body.analysisId}`)
  })

  it('above 50 % is rejected with a ban warning, and never gets into the training set', async () => {
    const before = await totalAnalyses()
    const answer = await send(
      await register(),
      submission(await token(), { snapshot: snapshotOf({ liquidity: 15_000.1 }) }),
    )
    expectProblem(answer, 'snapshot_rejected')
    expect(answer.body).toMatchObject({
      outcome: 'rejected',
      validated: false,
      worstField: 'liquidity',
      strikes: 1,
    })
    expect(answer.body.deviationPct).toBeCloseTo(50.001, 3)
    expect(answer.body.warning).toContain('Strike 1')
    expect(await totalAnalyses()).toBe(before)
  })

  it('far above 50 % is shown with few digits', async () => {
    const errorOf = async (changes: object): Promise<string> => {
      const mint = await token()
      // Later than what was served in the millisecond of the patch, which is compared too.
      pass(1_000)
      return (await send(await register(), submission(mint, { snapshot: snapshotOf(changes) }))).body.error
    }
    expect(await errorOf({ liquidity: 692_310_000 })).toContain(' 6,923,000% (liquidity)')
    expect(await errorOf({ liquidity: 1e13 })).toContain(' more than 1,000,000,000% (liquidity)')
    expect(await errorOf({ liquidity: 15_000.1 })).toContain(' just over 50% (liquidity)')
  })

  it('has a minimum divisor of 1 for percentages and counts, and none for the price', async () => {
    const mint = await token({ ...VALUES, priceUsd: 4e-9, holderCount: 0, bondingProgress: 0.2 })
    const values = { ...VALUES, priceUsd: 4e-9, holderCount: 0, bondingProgress: 0.2, snapshotAt: nowMs }
    const sendFirst = async (changes: object) =>
      send(await register(), submission(mint, { snapshot: { ...values, ...changes } }))
    const floored = await sendFirst({ bondingProgress: 0.3 })
    expect(floored.body.deviations.bondingProgress).toBeCloseTo(10, 6)
    const priced = await sendFirst({ priceUsd: 5e-9 })
    expect(priced.body.deviations.priceUsd).toBeCloseTo(25, 6)
    expectProblem(await sendFirst({ holderCount: 1 }), 'snapshot_rejected')
  })

  it('skips values that the server does not know or the client does not send', async () => {
    const mint = await token({ priceUsd: 1, holderCount: 10 })
    const answer = await send(
      await register(),
      submission(mint, { snapshot: { priceUsd: 1.1, liquidity: 1e9, snapshotAt: nowMs } }),
    )
    expect(answer.body).toMatchObject({ outcome: 'validated', worstField: 'priceUsd' })
    expect(Object.keys(answer.body.deviations)).toEqual(['priceUsd'])
  })

  it('is computed against the version in effect at snapshotAt, or against the current one if that is nearer', async () => {
    const mint = await token()
    const before = snapshotOf()
    const sendOf = async (changes: object) =>
      send(await register(), submission(mint, { snapshot: { ...before, ...changes } }))
    pass(1_000)
    await server.client.push({ type: 'patch', mint, ts: nowMs, fields: { priceUsd: 0.01, marketCap: 1e7 } })
    pass(4 * MINUTE_MS)
    const then = await sendOf({})
    expect(then.body).toMatchObject({ outcome: 'validated', deviationPct: 0 })
    const now = await sendOf({ priceUsd: 0.01, marketCap: 1e7 })
    expect(now.body).toMatchObject({ outcome: 'validated', deviationPct: 0 })
    expectProblem(await sendOf({ priceUsd: 0.01 }), 'snapshot_rejected')
  })

  it('is 0 when the snapshot is omitted, as the server then uses its own', async () => {
    const answer = await send(await register(), submission(await token()))
    expect(answer.body).toMatchObject({
      deviationPct: 0,
      snapshotSource: 'server',
      outcome: 'validated',
      deviations: {},
    })
    const stored = await server.client.get(`/api/v1/analysis/${answer.body.analysisId}`)
    expect(stored.body.data.snapshot).toEqual({ ...VALUES, snapshotAt: nowMs })
  })
})

describe('snapshotAt', () => {
  it('can be five minutes old and thirty seconds ahead, bounds included', async () => {
    const mint = await token()
    pass(6 * MINUTE_MS)
    const sendAt = async (snapshotAt: number) =>
      send(await register(), submission(mint, { snapshot: snapshotOf({ snapshotAt }) }))
    for (const age of [0, 300_000, -30_000]) {
      const answer = await sendAt(nowMs - age)
      expect(answer.status, answer.text).toBe(201)
    }
    const stale = await sendAt(nowMs - 300_001)
    expectProblem(stale, 'snapshot_stale', '/snapshot/snapshotAt')
    expect(stale.body.strikes).toBeUndefined()
    expectProblem(await sendAt(nowMs + 30_001), 'snapshot_in_future')
    const inSeconds = await sendAt(Math.floor(nowMs / 1_000))
    expectProblem(inSeconds, 'snapshot_stale')
    expect(inSeconds.body.error).toContain('seconds')
    const inNanoseconds = await sendAt(nowMs * 1e6)
    expectProblem(inNanoseconds, 'snapshot_in_future')
    expect(inNanoseconds.body.hint).toContain('nanoseconds')
    expect((await sendAt(1e300)).body.serverTime).toBe(nowMs)
    const missing = await send(await register(), submission(mint, { snapshot: VALUES }))
    expectProblem(missing, 'validation_failed', '/snapshot/snapshotAt')
  })
})

describe('a token', () => {
  it('without a DataPoint is refused', async () => {
    expectProblem(await send(await register(), submission(newMint())), 'token_not_found')
  })

  it('is reported as unavailable if its DataPoint has no value to compare with', async () => {
    const mint = newMint()
    await server.client.push({
      type: 'patch',
      mint,
      ts: nowMs,
      fields: { volume24h: null, buys24h: null, sells24h: null },
    })
    const answer = await send(await register(), submission(mint))
    expectProblem(answer, 'datapoint_unavailable')
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe('XP', () => {
  it('is 50 for the first analysis of a token, 25 up to the fifth, then 10', async () => {
    const before = (await server.client.get('/api/v1/analysis')).body
    const mint = await token()
    const earned: number[] = []
    for (let count = 0; count < 7; count++)
      earned.push((await send(await register(), submission(mint))).body.xpEarned)
    expect(earned).toEqual([50, 25, 25, 25, 25, 10, 10])
    const board = (await server.client.get('/api/v1/analysis')).body
    expect(board).toMatchObject({
      ok: true,
      totalAnalyses: before.totalAnalyses + 7,
      uniqueTokens: before.uniqueTokens + 1,
    })
    expect(board.leaderboard.filter((row: { mint: string }) => row.mint === mint)).toEqual([
      { mint, name: 'Seed', symbol: 'SEED', image: null, count: 7, lastSentiment: 'bullish', lastScore: 70 },
    ])
    const rows = (await server.client.get('/api/v1/market?limit=1000&format=ndjson')).text.trim().split('\n')
    const row = rows.map((line) => JSON.parse(line)).find((row) => row.mint === mint)
    expect(row.analysis_count).toBe(7)
  })

  it('has one bonus for the first analysis, however many submissions race for it', async () => {
    const mint = await token()
    const keys = await Promise.all(Array.from({ length: 20 }, () => register()))
    const answers = await Promise.all(keys.map((key) => send(key, submission(mint))))
    expect(answers.map(({ body }) => body.xpEarned).sort((a, b) => b - a)).toEqual([
      50,
      25,
      25,
      25,
      25,
      ...new Array(15).fill(10),
    ])
  })

  it('is published as a table, and only the operator awards other kinds', async () => {
    expect((await server.client.get('/api/v1/xp')).body.data).toMatchObject({
      analysis: { base: 10, firstBonus: 25, lowCoverageBonus: 15 },
      trade: { perSwap: 10 },
      chat: { perQuery: 5 },
      social: { firstEnrichment: 3 },
      streaming: { perHour: 10 },
    })
    await alone({}, async () => {
      await register('Ada')
      const agentId = await agentIdOf('Ada')
      const award = { agentId, kind: 'chat', times: 3 }
      const awarded = await server.client.post('/api/v1/admin/xp', award, ADMIN_KEY)
      expect(awarded.body.data).toMatchObject({ xpEarned: 15, xpTotal: 15 })
      expectProblem(await server.client.post('/api/v1/admin/xp', award, await register()), 'invalid_key')
      const { leaderboard } = (await server.client.get('/api/v1/agents/leaderboard')).body
      expect(leaderboard[0]).toMatchObject({ agentId, rank: 1, xp: 15, analyses: 0 })
    })
  })
})

describe('the limits', () => {
  it('allow a key one submission of a mint in 60 seconds', async () => {
    const mint = await token()
    const key = await register()
    expect((await send(key, submission(mint))).status).toBe(201)
    pass(59_999)
    const early = await send(key, submission(mint))
    expectProblem(early, 'mint_cooldown')
    expect(early.body.error).toContain('cooldown')
    expect(early.body).toMatchObject({ limit: 1, retryAfterMs: 1 })
    expect(early.headers.get('retry-after')).toBe('1')
    expect((await send(await register(), submission(mint))).status).toBe(201)
    pass(1)
    expect((await send(key, submission(mint))).status).toBe(201)
  })

  it('accept exactly one of many racing submissions of a mint', async () => {
    await alone({ 'submit-limits': 'rate=0' }, async () => {
      const mint = await token()
      const key = await register()
      const answers = await Promise.all(Array.from({ length: 20 }, () => send(key, submission(mint))))
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
      for (const answer of answers) if (answer.status !== 201) expectProblem(answer, 'mint_cooldown')
    })
  })

  it('accept exactly ten submissions in a rolling minute, however they race', async () => {
    const mints = await Promise.all(Array.from({ length: 30 }, () => token()))
    const key = await register()
    const answers = await Promise.all(mints.map((mint) => send(key, submission(mint))))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10)
    const refused = answers.filter(({ status }) => status !== 201)
    for (const answer of refused) expectProblem(answer, 'submit_rate_limited')
    expect(refused[0].headers.get('ratelimit-policy')).toBe('"submit";q=10;w=60')
    expect(refused[0].headers.get('ratelimit')).toBe('"submit";r=0;t=60')
    expect(refused[0].headers.get('retry-after')).toBe('60')
    expect(refused[0].headers.get('x-ratelimit-limit')).toBe('10')
    expect(refused[0].headers.get('x-ratelimit-remaining')).toBe('0')
    expect(refused[0].body).toMatchObject({ limit: 10, retryAfterMs: MINUTE_MS - 100 })
    expect(answers.find(({ status }) => status === 201)?.headers.get('ratelimit-policy')).toBe(
      '"submit";q=10;w=60',
    )
  })

  it.each([[0], [99]])(
    'accept every submission of an agent that sends one every six seconds, some %i ms late, and none that comes sooner',
    async (lateMs) => {
      const key = await register()
      for (let count = 0; count < 25; count++) {
        if (count === 12) server = await server.restart()
        if (count % 10 === 0) pass(lateMs)
        const answer = await send(key, submission(await token()))
        expect(answer.status, answer.text).toBe(201)
        pass(6_000 - (count % 10 === 0 ? lateMs : 0))
      }
      pass(-102)
      const early = await send(key, submission(await token()))
      expectProblem(early, 'submit_rate_limited')
      expect(early.body.retryAfterMs).toBe(2)
    },
  )

  it('count an invalid body against the rate, and start no cooldown for it', async () => {
    const mint = await token()
    const key = await register()
    for (let count = 0; count < 9; count++)
      expectProblem(await send(key, submission(mint, { score: 101 })), 'validation_failed')
    expect((await send(key, submission(mint))).status).toBe(201)
    expectProblem(await send(key, submission(await token())), 'submit_rate_limited')
  })

  it('survive a restart: rate, cooldown, XP, coverage and strikes', async () => {
    const mint = await token()
    const key = await register()
    expect((await send(key, submission(mint))).status).toBe(201)
    const refused = submission(await token(), { snapshot: snapshotOf({ liquidity: 1 }) })
    expectProblem(await send(key, refused), 'snapshot_rejected')
    for (let count = 0; count < 3; count++) expectProblem(await send(key, '{'), 'invalid_json')
    server = await server.restart()
    const again = await token()
    for (const known of [mint, refused.mint])
      await server.client.push({ type: 'patch', mint: known, ts: nowMs, fields: VALUES })
    expectProblem(await send(key, submission(mint)), 'mint_cooldown')
    expectProblem(await send(key, refused), 'mint_cooldown')
    const rejected = await send(key, submission(again, { snapshot: snapshotOf({ liquidity: 1 }) }))
    expect(rejected.body.strikes).toBe(2)
    for (let count = 0; count < 2; count++) expectProblem(await send(key, '{'), 'invalid_json')
    expectProblem(await send(key, submission(again)), 'submit_rate_limited')
    pass(MINUTE_MS)
    await server.client.push({ type: 'patch', mint, ts: nowMs, fields: VALUES })
    expect((await send(key, submission(mint))).body).toMatchObject({ xpEarned: 25, xpTotal: 75 })
  })
})

describe('rejections', () => {
  const fabricate = async (key: string) =>
    send(key, submission(await token(), { snapshot: snapshotOf({ liquidity: 1 }) }))

  it('warn twice, and suspend at the third within a day; reads stay open', async () => {
    const key = await register()
    for (const strikes of [1, 2]) {
      const { body } = await fabricate(key)
      expect(body).toMatchObject({ status: 422, strikes })
      expect(body.warning).toMatch(/\bban\b/)
    }
    const third = await fabricate(key)
    expect(third.body.warning).toMatch(/\bban\b/)
    expectProblem(third, 'agent_banned')
    expect(third.body).toMatchObject({ outcome: 'rejected', strikes: 3, bannedUntil: nowMs + DAY_MS })
    const next = await send(key, submission(await token()))
    expectProblem(next, 'agent_banned')
    expect(next.body.bannedUntil).toBe(nowMs + DAY_MS)
    expect((await server.client.get('/api/v1/market', { Authorization: `Bearer ${key}` })).status).toBe(200)
    server = await server.restart()
    expectProblem(await send(key, '{}'), 'agent_banned')
    pass(DAY_MS)
    expect((await send(key, submission(await token()))).status).toBe(201)
  })

  it('ban for good at the third suspension within 30 days, and the operator can lift that', async () => {
    const key = await register('Mallory')
    for (let suspension = 1; suspension <= 3; suspension++) {
      for (let strike = 1; strike <= 3; strike++) await fabricate(key)
      const answer = await send(key, '{}')
      expectProblem(answer, 'agent_banned')
      expect(answer.body.bannedUntil).toBe(suspension < 3 ? nowMs + DAY_MS : null)
      pass(DAY_MS)
    }
    expectProblem(await send(key, '{}'), 'agent_banned')
    const agentId = await agentIdOf('Mallory')
    await server.client.post('/api/v1/admin/unban', { agentId }, ADMIN_KEY)
    expect((await send(key, submission(await token()))).status).toBe(201)
  })

  it('never suspend when automatic bans are disabled', async () => {
    await alone({ 'submit-limits': 'strikes=0' }, async () => {
      const key = await register()
      for (let count = 1; count <= 5; count++) {
        const rejected = await fabricate(key)
        expectProblem(rejected, 'snapshot_rejected')
        expect(rejected.body.warning).toMatch(/\bban\b/)
      }
    })
  })
})

describe('an Idempotency-Key', () => {
  it('returns the first answer to the same body again, refuses another body, and survives a restart', async () => {
    const before = await totalAnalyses()
    const mint = await token()
    const key = await register()
    const headers = { 'Idempotency-Key': 'one' }
    const body = submission(mint)
    const first = await send(key, body, headers)
    expect(first.status).toBe(201)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    const second = await send(key, body, headers)
    expect(second.status).toBe(201)
    expect(second.body).toEqual(first.body)
    expect(second.headers.get('location')).toBe(`/api/v1/analysis/${first.body.analysisId}`)
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    expectProblem(await send(key, submission(mint, { score: 1 }), headers), 'idempotency_mismatch')
    server = await server.restart()
    expect((await send(key, body, headers)).body).toEqual(first.body)
    expect(await totalAnalyses()).toBe(before + 1)
  })

  it('accepts one of two racing requests', async () => {
    const before = await totalAnalyses()
    const mint = await token()
    const key = await register()
    const answers = await Promise.all(
      [1, 2, 3].map(() => send(key, submission(mint), { 'Idempotency-Key': 'race' })),
    )
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses.filter((status) => status === 201).length).toBeGreaterThanOrEqual(1)
    expect(statuses.every((status) => status === 201 || status === 409)).toBe(true)
    expect(await totalAnalyses()).toBe(before + 1)
  })

  it('makes a retry safe where an error came after the submission was stored, which the answer tells', async () => {
    const before = await totalAnalyses()
    const mint = await token()
    const key = await register()
    const headers = { 'Idempotency-Key': 'late fault' }
    vi.spyOn(server.market, 'apply').mockImplementationOnce(() => {
      throw new Error('a fault that no code expected')
    })
    const failed = await send(key, submission(mint), headers)
    expectProblem(failed, 'internal')
    expect(failed.body.mayBeStored).toBe(true)
    const retried = await send(key, submission(mint), headers)
    expect([retried.status, retried.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
    expect(await totalAnalyses()).toBe(before + 1)
  })

  it('returns a rejection again without another strike', async () => {
    const mint = await token()
    const key = await register()
    const body = submission(mint, { snapshot: snapshotOf({ liquidity: 1 }) })
    for (const replayed of [null, 'true']) {
      const answer = await send(key, body, { 'Idempotency-Key': 'bad' })
      expectProblem(answer, 'snapshot_rejected')
      expect(answer.headers.get('idempotency-replayed')).toBe(replayed)
      expect(answer.body.strikes).toBe(1)
    }
  })

  it('returns a suspension again with the time that is left of it', async () => {
    const key = await register()
    const rejected = async () => submission(await token(), { snapshot: snapshotOf({ liquidity: 1 }) })
    for (let strike = 1; strike < 3; strike++) await send(key, await rejected())
    const body = await rejected()
    const suspended = await send(key, body, { 'Idempotency-Key': 'suspended' })
    expectProblem(suspended, 'agent_banned')
    expect(suspended.headers.get('retry-after')).toBe('86400')
    pass(MINUTE_MS)
    const again = await send(key, body, { 'Idempotency-Key': 'suspended' })
    expect([again.status, again.headers.get('retry-after')]).toEqual([403, '86340'])
  })
})

describe('keys', () => {
  it('are required, checked and can be revoked', async () => {
    const mint = await token()
    const key = await register()
    expect(key).toMatch(/^ps_[a-z0-9]{48}$/)
    const missing = await send('', submission(mint))
    expectProblem(missing, 'missing_key')
    expect(missing.headers.get('www-authenticate')).toBe('Bearer')
    const typo = key.slice(0, 10) + (key[10] === 'a' ? 'b' : 'a') + key.slice(11)
    for (const wrong of [typo, 'ps_short', `${key}x`])
      expectProblem(await send(wrong, submission(mint)), 'invalid_key')
    expect(
      (await server.client.request('POST', '/api/v1/analysis/submit', submission(mint), { 'X-API-Key': key }))
        .status,
    ).toBe(201)
    const rotated = await server.client.post('/api/v1/keys/rotate', {}, key)
    expect(rotated.status).toBe(201)
    expect(
      (await server.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).status,
    ).toBe(200)
    // The limits are the agent's, not the key's.
    expectProblem(await send(rotated.body.data.key, submission(mint)), 'mint_cooldown')
    pass(DAY_MS)
    expectProblem(await send(key, submission(mint)), 'revoked_key')
    await server.client.request('DELETE', '/api/v1/keys/current', undefined, {
      Authorization: `Bearer ${rotated.body.data.key}`,
    })
    expectProblem(await send(rotated.body.data.key, submission(mint)), 'revoked_key')
    server = await server.restart()
    expectProblem(await send(key, submission(mint)), 'revoked_key')
  })
})
