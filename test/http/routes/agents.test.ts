// Keys, profiles and the operator's requests over real HTTP and the real store, on a clock that the test sets. One server for
// all tests but those that need other settings or a server without other agents.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { LEADERBOARD_LIMIT_MAX } from '../../../src/schema/api/submissions.ts'
import { writeEvent } from '../../../src/submissions/accounts/agent-events.ts'
import { makeAgentKey } from '../../../src/submissions/accounts/key-table.ts'
import { clockOf } from '../../support/clock.ts'
import { expectProblem, seedToken, submission, submit } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type Settings, type TestServer } from '../../support/test-server.ts'

const DAY_MS = 86_400_000
let nowMs = 1_795_000_000_000
let server: TestServer

const open = (settings: Settings = {}) => openTestServer(settings, { clock: clockOf(() => nowMs) })
beforeAll(async () => {
  server = await open()
})
afterAll(() => server.remove())

/** Runs `work` on a separate server. */
async function alone(settings: Settings, work: () => Promise<void>): Promise<void> {
  const shared = server
  server = await open(settings)
  try {
    await work()
  } finally {
    await server.remove()
    server = shared
  }
}

const { get, post } = {
  get: (path: string, key = '') =>
    server.client.get(path, key === '' ? {} : { Authorization: `Bearer ${key}` }),
  post: (path: string, body: unknown, key = '') => server.client.post(path, body, key),
}
const revoke = (key: string) =>
  server.client.request('DELETE', '/api/v1/keys/current', undefined, { Authorization: `Bearer ${key}` })

function filesUnder(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesUnder(path) : [path]
  })
}

describe('a key', () => {
  it('is shown once, in the documented format, and only its hash is written to disk', async () => {
    const answer = await post('/api/v1/keys/register', { name: 'Ada', description: 'reads', extra: 1 })
    expect(answer.status).toBe(201)
    const { key } = answer.body.data
    expect(answer.body).toMatchObject({ ok: true, data: { type: 'agent', rateLimit: 10 } })
    expect(typeof answer.body.important).toBe('string')
    expect(key).toMatch(/^ps_[a-z0-9]{48}$/)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect((await get('/api/v1/agent/profile', key)).status).toBe(200)
    await server.stop()
    for (const file of filesUnder(server.dataDir)) expect(readFileSync(file).includes(key), file).toBe(false)
    server = await server.restart()
  })

  it.each([
    ['3', 3],
    ['0', null],
  ])(
    'is registered with the configured submit rate, which the documents state too: %s becomes %s',
    async (rate, rateLimit) => {
      await alone({ 'submit-limits': `rate=${rate}` }, async () => {
        const { body } = await post('/api/v1/keys/register', { name: 'Ada' })
        expect(body.data.rateLimit).toBe(rateLimit)
        expect((await post('/api/v1/keys/rotate', {}, body.data.key)).body.data.rateLimit).toBe(rateLimit)
        const told =
          rateLimit === null ? '| Submissions of an agent | no limit |' : `agent | ${rateLimit} in 60 s`
        expect((await get('/skill.md')).text).toContain(told)
      })
    },
  )

  it('can be rotated ten times a day, each key until the next one is used', async () => {
    let key = await server.client.register()
    nowMs += 2 * DAY_MS
    const keys = [key]
    for (let count = 0; count < 10; count++) {
      const old = key
      key = (await post('/api/v1/keys/rotate', {}, old)).body.data.key
      keys.push(key)
      expect((await get('/api/v1/xp', key)).status).toBe(200)
      expectProblem(await post('/api/v1/keys/rotate', {}, old), 'key_not_allowed')
    }
    const refused = await post('/api/v1/keys/rotate', {}, key)
    expectProblem(refused, 'register_rate_limited')
    expect(refused.headers.get('retry-after')).toBe('86400')
    expect(refused.body).toMatchObject({ limit: 10, retryAfterMs: DAY_MS })
    expect(new Set(keys).size).toBe(11)
  })

  it('is rotated again where its answer was lost, also after a restart; the key that nobody has used ends', async () => {
    const old = await server.client.register()
    const { key: lost, oldKeyExpiresAt } = (await post('/api/v1/keys/rotate', {}, old)).body.data
    nowMs += 60_000
    server = await server.restart()
    expectProblem(await post('/api/v1/agent/profile', { name: 'Ada' }, old), 'key_not_allowed')
    const again = await post('/api/v1/keys/rotate', {}, old)
    expect(again.status, again.text).toBe(201)
    expect(again.body.data.oldKeyExpiresAt).toBe(oldKeyExpiresAt)
    const { key } = (await post('/api/v1/keys/rotate', {}, old)).body.data
    nowMs += DAY_MS
    for (let run = 0; run < 2; run++) {
      for (const ended of [old, lost, again.body.data.key])
        expectProblem(await get('/api/v1/xp', ended), 'revoked_key')
      expect((await get('/api/v1/xp', key)).status).toBe(200)
      if (run === 0) server = await server.restart()
    }
  })

  it('that was rotated does not outlive it: it is not rotated again, uses no rotation, changes no profile', async () => {
    const leaked = await server.client.register('Ada')
    const { key } = (await post('/api/v1/keys/rotate', {}, leaked)).body.data
    expect((await get('/api/v1/xp', key)).status).toBe(200)
    for (let run = 0; run < 2; run++) {
      for (let count = 0; count < 11; count++) {
        const refused = await post('/api/v1/keys/rotate', {}, leaked)
        expectProblem(refused, 'key_not_allowed')
        expect(refused.body.error).toMatch(/was rotated and ends at 20.*: use the key that replaced it/)
      }
      expectProblem(await post('/api/v1/agent/profile', { name: 'Mallory' }, leaked), 'key_not_allowed')
      if (run === 0) server = await server.restart()
    }
    expect((await post('/api/v1/agent/profile', { website: 'https://example.org' }, key)).status).toBe(200)
    expect((await get('/api/v1/agent/profile', leaked)).body.profile.name).toBe('Ada')
    expect((await post('/api/v1/keys/rotate', {}, key)).status).toBe(201)
    expect((await revoke(leaked)).status).toBe(200)
    expectProblem(await get('/api/v1/xp', leaked), 'revoked_key')
  })

  it('that an earlier version rotated is not rotated again: that did not tell whether the new key is used', async () => {
    const leaked = await server.client.register()
    const { agent, keyHash } = server.agents.authenticate(leaked)
    const { text, write } = makeAgentKey(agent, nowMs, randomBytes)
    const data = { keyHash, atMs: nowMs + DAY_MS }
    await server.store.commit([write, writeEvent(agent.agentId, { kind: 'key_expires', data }, nowMs)])
    for (let run = 0; run < 2; run++) {
      server = await server.restart()
      expectProblem(await post('/api/v1/keys/rotate', {}, leaked), 'key_not_allowed')
    }
    expect((await post('/api/v1/keys/rotate', {}, text)).status).toBe(201)
  })

  it('needs a name of 1 to 64 characters', async () => {
    for (const body of [
      {},
      { name: '' },
      { name: '   ' },
      { name: 7 },
      { name: 'x'.repeat(65) },
      { name: null },
    ])
      expectProblem(await post('/api/v1/keys/register', body), 'validation_failed', '/name')
  })

  it('stays valid for 24 hours after its rotation', async () => {
    const old = await server.client.register()
    const answer = await server.client.request('POST', '/api/v1/keys/rotate', undefined, {
      Authorization: `Bearer ${old}`,
      'Content-Type': '',
    })
    expect(answer.status, answer.text).toBe(201)
    const { key, oldKeyExpiresAt } = answer.body.data
    expect(oldKeyExpiresAt).toBe(nowMs + DAY_MS)
    nowMs += DAY_MS - 1
    expect((await get('/api/v1/agent/profile', old)).status).toBe(200)
    nowMs += 1
    expectProblem(await get('/api/v1/agent/profile', old), 'revoked_key')
    expectProblem(await get('/api/v1/market', old), 'revoked_key')
    expect((await get('/api/v1/agent/profile', key)).status).toBe(200)
  })

  it('is refused with 401 once it is revoked, also after a restart; other keys of the agent stay valid', async () => {
    const old = await server.client.register()
    const { key } = (await post('/api/v1/keys/rotate', {}, old)).body.data
    expect((await revoke(old)).body.ok).toBe(true)
    for (let run = 0; run < 2; run++) {
      const refused = await get('/api/v1/xp', old)
      expectProblem(refused, 'revoked_key')
      expect(refused.headers.get('www-authenticate')).toContain('Bearer')
      expect((await get('/api/v1/xp', key)).status).toBe(200)
      if (run === 0) server = await server.restart()
    }
  })

  it('earns XP for the same agent after a rotation', async () => {
    const old = await server.client.register()
    const { key } = (await post('/api/v1/keys/rotate', {}, old)).body.data
    const [one, two] = [await seedToken(server.client, nowMs), await seedToken(server.client, nowMs)]
    expect((await submit(server.client, old, submission(one))).body.xpTotal).toBe(50)
    expect((await submit(server.client, key, submission(two))).body.xpTotal).toBe(100)
  })
})

describe('a profile', () => {
  it('is null until it is set, keeps the members that an update leaves out, and survives a restart', async () => {
    const madeMs = nowMs
    const key = await server.client.register('Grace')
    expect((await get('/api/v1/agent/profile', key)).body).toMatchObject({ ok: true, profile: null })
    const first = await post('/api/v1/agent/profile', { website: 'https://example.org', other: 1 }, key)
    const profile = {
      name: 'Grace',
      description: null,
      avatarUrl: null,
      twitterHandle: null,
      website: 'https://example.org',
      createdAt: madeMs,
      updatedAt: madeMs,
    }
    expect(first.body).toEqual({ ok: true, profile })
    nowMs += 1_000
    const second = await post('/api/v1/agent/profile', { name: 'Grace H.', twitterHandle: '@g' }, key)
    const changed = { ...profile, name: 'Grace H.', twitterHandle: '@g', updatedAt: madeMs + 1_000 }
    expect(second.body.profile).toEqual(changed)
    expectProblem(await post('/api/v1/agent/profile', { name: '' }, key), 'validation_failed', '/name')
    server = await server.restart()
    expect((await get('/api/v1/agent/profile', key)).body.profile).toEqual(changed)
  })

  it('has the registration’s description until that is cleared, and then stays without', async () => {
    const registration = { name: 'Ada', description: 'Looks at young curves.' }
    const { key } = (await post('/api/v1/keys/register', registration)).body.data
    const change = async (body: object) => (await post('/api/v1/agent/profile', body, key)).body.profile
    expect(await change({ website: 'https://example.org' })).toMatchObject(registration)
    expect((await change({ description: null })).description).toBe(null)
    expect(await change({ twitterHandle: '@ada' })).toMatchObject({
      description: null,
      twitterHandle: '@ada',
    })
  })
})

describe('agents and their analyses', () => {
  it('are published: a leaderboard by XP, the coverage of tokens and single analyses', async () => {
    await alone({}, async () => {
      const keys = [await server.client.register('first'), await server.client.register('second')]
      const mint = await seedToken(server.client, nowMs)
      const { analysisId } = (await submit(server.client, keys[0], submission(mint))).body
      await submit(server.client, keys[1], submission(mint))
      const agents = await get('/api/v1/agents/leaderboard')
      expect(agents.body.ok).toBe(true)
      expect(agents.body.data).toEqual(agents.body.leaderboard)
      expect(agents.body.data[0]).toMatchObject({ rank: 1, name: 'first' })
      const clamped = { clamped: { limit: LEADERBOARD_LIMIT_MAX } }
      for (const path of ['/api/v1/agents/leaderboard', '/api/v1/analysis'])
        expect((await get(`${path}?limit=99999`)).body.meta).toEqual(clamped)
      const named = JSON.stringify(agents.body)
      expect(named.indexOf('first')).toBeGreaterThan(0)
      expect(named.indexOf('first')).toBeLessThan(named.indexOf('second'))

      const board = (await get('/api/v1/analysis?limit=5')).body
      expect(board).toMatchObject({ ok: true, totalAnalyses: 2, uniqueTokens: 1 })
      expect(typeof board.goal).toBe('number')
      expect(typeof board.progress).toBe('number')
      expect(board.leaderboard).toEqual([
        {
          mint,
          name: 'Seed',
          symbol: 'SEED',
          image: null,
          count: 2,
          lastSentiment: 'bullish',
          lastScore: 70,
        },
      ])

      const one = await get(`/api/v1/analysis/${analysisId}`)
      expect(one.status, one.text).toBe(200)
      expect(one.text).toContain(mint)
      expectProblem(await get('/api/v1/analysis/an_nothing'), 'not_found')
      for (const key of keys)
        for (const answer of [agents, one, await get('/api/v1/analysis')])
          expect(answer.text).not.toContain(key)
    })
  })

  it('are not looked up in the store for a malformed id', async () => {
    const asked = vi.spyOn(server.store, 'analysis')
    const wellFormed = `an_${'0'.repeat(26)}`
    for (const id of ['x', 'an_nothing', `an_8${'0'.repeat(25)}`, `an_${'I'.repeat(26)}`, `${wellFormed}0`])
      expectProblem(await get(`/api/v1/analysis/${id}`), 'not_found')
    expect(asked).not.toHaveBeenCalled()
    expectProblem(await get(`/api/v1/analysis/${wellFormed}`), 'not_found')
    expect(asked).toHaveBeenCalledOnce()
  })

  it('earn XP by the table of the specification', async () => {
    const { data } = (await get('/api/v1/xp')).body
    expect(data.analysis).toMatchObject({ base: 10, firstBonus: 25, lowCoverageBonus: 15 })
  })
})

describe('the operator', () => {
  it('sees that an agent can submit again once its ban is over', async () => {
    const key = await server.client.register('Eve')
    const find = async () =>
      (await get('/api/v1/admin/agents', ADMIN_KEY)).body.data.find(
        ({ name }: { name: string }) => name === 'Eve',
      )
    const { agentId } = await find()
    await post('/api/v1/admin/ban', { agentId, untilMs: nowMs + 1_000 }, ADMIN_KEY)
    expect(await find()).toMatchObject({ banned: true, bannedUntilMs: nowMs + 1_000 })
    nowMs += 1_000
    expect(await find()).toMatchObject({ banned: false, bannedUntilMs: null })
    const late = await post('/api/v1/admin/ban', { agentId, untilMs: 9e15 }, ADMIN_KEY)
    expectProblem(late, 'validation_failed', '/untilMs')
    expect((await submit(server.client, key, submission(await seedToken(server.client, nowMs)))).status).toBe(
      201,
    )
  })

  it('sees agents without their keys, bans and unbans one, and awards XP', async () => {
    const key = await server.client.register('Mallory')
    const mint = await seedToken(server.client, nowMs)
    const { data } = (await get('/api/v1/admin/agents', ADMIN_KEY)).body
    const agent = data.find(({ name }: { name: string }) => name === 'Mallory')
    expect(JSON.stringify(data)).not.toContain(key)
    const ban = { agentId: agent.agentId, untilMs: nowMs + 60_000, reason: 'spam' }
    expect((await post('/api/v1/admin/ban', ban, ADMIN_KEY)).body.ok).toBe(true)
    const refused = await submit(server.client, key, submission(mint))
    expectProblem(refused, 'agent_banned')
    expect(refused.body.bannedUntil).toBe(nowMs + 60_000)
    expect((await get('/api/v1/market', key)).status).toBe(200)
    await post('/api/v1/admin/unban', { agentId: agent.agentId }, ADMIN_KEY)
    expect((await submit(server.client, key, submission(mint))).status).toBe(201)
    expectProblem(await post('/api/v1/admin/ban', { agentId: 'ag_nobody' }, ADMIN_KEY), 'not_found')
    expectProblem(await post('/api/v1/admin/ban', {}, ADMIN_KEY), 'validation_failed', '/agentId')
    for (const untilMs of ['tomorrow', -1, 1.5, {}])
      expectProblem(
        await post('/api/v1/admin/ban', { agentId: 'ag_x', untilMs }, ADMIN_KEY),
        'validation_failed',
        '/untilMs',
      )
  })

  it('can make an agent a researcher, which no agent can do itself', async () => {
    const made = await post('/api/v1/admin/keys', { name: 'Rosalind', type: 'researcher' }, ADMIN_KEY)
    expect(made.status, made.text).toBe(201)
    expect(made.body.data.type).toBe('researcher')
    const rotated = await post('/api/v1/keys/rotate', undefined, made.body.data.key)
    expect(rotated.body.data.type).toBe('researcher')
    const typeOf = async (agentId: string) =>
      (await get('/api/v1/admin/agents', ADMIN_KEY)).body.data.find(
        (agent: { agentId: string }) => agent.agentId === agentId,
      ).type
    expect(await typeOf(made.body.data.agentId)).toBe('researcher')
    const mere = await post('/api/v1/keys/register', { name: 'Mallory', type: 'researcher' })
    expect(mere.body.data.type).toBe('agent')
    const wrong = await post('/api/v1/admin/keys', { name: 'x', type: 'reseacher' }, ADMIN_KEY)
    expectProblem(wrong, 'validation_failed', '/type')
    expect(wrong.body.errors[0].suggestion).toBe('researcher')
    server = await server.restart()
    expect(await typeOf(made.body.data.agentId)).toBe('researcher')
  })

  it('can create keys while registration is closed, and revoke one by its prefix or all of an agent', async () => {
    await alone({ registration: 'closed' }, async () => {
      expectProblem(await post('/api/v1/keys/register', { name: 'late' }), 'registration_closed')
      const made = await post('/api/v1/admin/keys', { name: 'invited' }, ADMIN_KEY)
      expect(made.status, made.text).toBe(201)
      const { key, agentId } = made.body.data
      const second = (await post('/api/v1/keys/rotate', undefined, key)).body.data.key
      const revokeBy = (body: object) => post('/api/v1/admin/revoke', body, ADMIN_KEY)
      expect((await revokeBy({ agentId, prefix: key.slice(0, 9) })).body.data).toEqual({ revoked: 1 })
      expectProblem(await get('/api/v1/agent/profile', key), 'revoked_key')
      expect((await get('/api/v1/agent/profile', second)).status).toBe(200)
      expect((await revokeBy({ agentId })).body.data).toEqual({ revoked: 1 })
      expect((await revokeBy({ agentId })).body.data).toEqual({ revoked: 0 })
      server = await server.restart()
      expectProblem(await get('/api/v1/agent/profile', second), 'revoked_key')
      expectProblem(await revokeBy({ agentId: 'ag_nobody' }), 'not_found')
      expectProblem(await revokeBy({ agentId, prefix: 7 }), 'validation_failed', '/prefix')
      expectProblem(await post('/api/v1/admin/revoke', { agentId }, key), 'invalid_key')
    })
  })
})
