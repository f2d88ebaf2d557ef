// GET /api/v1/agent/profile: where an agent stands, over real HTTP and the real store, across restarts.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { profileAnswerSchema } from '../../../src/schema/api/accounts.ts'
import { TIME_MS_MAX } from '../../../src/schema/bounds.ts'
import { COOLDOWNS_LISTED_MAX, SUBMIT_JITTER_MS } from '../../../src/submissions/limits.ts'
import { SteppedClock } from '../../support/clock.ts'
import { expectProblem, seedToken, submission, submit, VALUES } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type Settings, type TestServer } from '../../support/test-server.ts'

const START_MS = 1_795_000_000_000
let clock: SteppedClock
let server: TestServer
const open = async (settings: Settings = {}) => {
  server = await openTestServer(settings, { clock })
}

beforeEach(() => {
  clock = new SteppedClock(START_MS)
})
afterEach(() => server.remove())

const standing = async (key: string) => {
  const { body } = await server.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })
  expect(profileAnswerSchema.parse(body)).toEqual(body)
  return body.standing
}
const send = async (key: string, mint: string, priceUsd = VALUES.priceUsd) =>
  submit(server.client, key, submission(mint, { snapshot: { ...VALUES, priceUsd, snapshotAt: clock.now() } }))
const seed = () => seedToken(server.client, clock.now())
const agentIdOf = async (key: string): Promise<string> => (await standing(key)).agentId

describe('the standing of an agent', () => {
  it('counts its outcomes, strikes and XP, and survives restarts, before and after a flush', {
    tags: 'drill',
  }, async () => {
    await open()
    const key = await server.client.register()
    expect(await standing(key)).toMatchObject({ xp: 0, rank: null, analyses: 0, strikes: 0 })
    for (const priceUsd of [0.001, 0.001, 0.0013, 0.01]) await send(key, await seed(), priceUsd)
    const counts = { xp: 125, rank: 1, analyses: 3, validated: 2, unvalidated: 1, rejected: 1, strikes: 1 }
    expect(await standing(key)).toMatchObject(counts)
    server = await server.restart()
    expect(await standing(key)).toMatchObject(counts)
    await send(key, await seed())
    const more = { ...counts, xp: 175, analyses: 4, validated: 3 }
    await server.store.flushLake()
    expect(await standing(key)).toMatchObject(more)
    server = await server.restart()
    expect(await standing(key)).toMatchObject(more)
    clock.pass(24 * 3_600_000)
    expect(await standing(key)).toMatchObject({ ...more, strikes: 0 })
  })

  it('has the rank of the leaderboard, equal XP included', async () => {
    await open({ 'submit-limits': 'rate=0' })
    const keys = await Promise.all(['a', 'b', 'c', 'd'].map((name) => server.client.register(name)))
    const mint = await seed()
    for (const key of [...keys, keys[2]]) {
      await send(key, key === keys[3] ? await seed() : mint)
      clock.pass(60_000)
    }
    const { data } = (await server.client.get('/api/v1/agents/leaderboard')).body
    expect(data).toHaveLength(4)
    for (const key of keys) {
      const { agentId, rank, xp } = await standing(key)
      expect(data[rank - 1]).toMatchObject({ agentId, rank, xp })
    }
    const [last] = data.slice(-1)
    await server.client.post(
      '/api/v1/admin/xp',
      { agentId: last.agentId, kind: 'trade', times: 1000 },
      ADMIN_KEY,
    )
    const ranks = await Promise.all(keys.map(async (key) => (await standing(key)).rank))
    expect(ranks.toSorted()).toEqual([1, 2, 3, 4])
    const agents = await Promise.all(keys.map(agentIdOf))
    expect(ranks[agents.indexOf(last.agentId)]).toBe(1)
  })

  it('tells what is left of the submit rate and of the reads, and when more is free', async () => {
    await open({ 'read-limit-keyed': '5' })
    const key = await server.client.register()
    expect((await standing(key)).limits).toEqual({
      submit: { limit: 10, remaining: 10, windowMs: 60_000, resetAt: START_MS },
      reads: { limit: 5, remaining: 5, windowMs: 60_000, resetAt: START_MS },
      cooldowns: [],
    })
    const mint = await seed()
    const headers = { Authorization: `Bearer ${key}` }
    await server.client.get(`/api/v1/datapoint?mint=${mint}`, headers)
    // A personal read counts as any other.
    await server.client.get('/api/v1/analysis?agentId=me', headers)
    await send(key, mint)
    clock.pass(1_000)
    expect((await standing(key)).limits).toEqual({
      submit: { limit: 10, remaining: 9, windowMs: 60_000, resetAt: START_MS + 60_000 - SUBMIT_JITTER_MS },
      reads: { limit: 5, remaining: 3, windowMs: 60_000, resetAt: START_MS + 60_000 },
      cooldowns: [{ mint, nextAllowedAt: START_MS + 60_000 }],
    })
    clock.pass(59_000)
    const { submit: rate, reads, cooldowns } = (await standing(key)).limits
    expect([rate.remaining, reads.remaining, cooldowns]).toEqual([10, 5, []])
  })

  it('says null for limits that are switched off', async () => {
    await open({ 'submit-limits': 'rate=0' })
    const key = await server.client.register()
    expect((await standing(key)).limits).toEqual({ submit: null, reads: null, cooldowns: [] })
  })

  it('lists the cooldowns that end first, rejected submissions included, also after a restart', {
    tags: 'drill',
  }, async () => {
    await open({ 'submit-limits': 'rate=0,strikes=0' })
    const key = await server.client.register()
    const mints: string[] = []
    for (let index = 0; index < COOLDOWNS_LISTED_MAX + 2; index++) {
      mints.push(await seed())
      await send(key, mints[index], index === 0 ? 0.01 : undefined)
      clock.pass(10)
    }
    const expected = mints
      .slice(0, COOLDOWNS_LISTED_MAX)
      .map((mint, index) => ({ mint, nextAllowedAt: START_MS + 60_000 + 10 * index }))
    expect((await standing(key)).limits.cooldowns).toEqual(expected)
    server = await server.restart()
    expect((await standing(key)).limits.cooldowns).toEqual(expected)
  })

  it('is not moved by a wall clock that is set, nor are times ahead', { tags: 'drill' }, async () => {
    await open()
    const key = await server.client.register()
    const mint = await seed()
    await send(key, mint)
    clock.pass(10_000)
    const atMs = clock.now() + 50_000
    clock.step(-3_600_000)
    const { limits } = await standing(key)
    expect(limits.cooldowns).toEqual([{ mint, nextAllowedAt: atMs }])
    expect(limits.submit.resetAt).toBe(atMs - SUBMIT_JITTER_MS)
  })

  it('of a ban to the end of time has an end, also where the clock is set ahead', async () => {
    await open()
    const key = await server.client.register()
    const ban = { agentId: await agentIdOf(key), untilMs: TIME_MS_MAX, reason: 'test' }
    expect((await server.client.post('/api/v1/admin/ban', ban, ADMIN_KEY)).status).toBe(200)
    clock.step(2_000)
    expectProblem(await submit(server.client, key, submission(await seed())), 'agent_banned')
    expect(await standing(key)).toMatchObject({ banned: true, bannedUntil: TIME_MS_MAX })
  })

  it('tells a ban for good from one that ends', { tags: 'drill' }, async () => {
    await open()
    const key = await server.client.register()
    const agentId = await agentIdOf(key)
    const ban = (untilMs: number | null) =>
      server.client.post(
        '/api/v1/admin/ban',
        { agentId, reason: 'test', ...(untilMs && { untilMs }) },
        ADMIN_KEY,
      )
    expect(await standing(key)).toMatchObject({ banned: false, bannedUntil: null })
    await ban(START_MS + 5_000)
    expect(await standing(key)).toMatchObject({ banned: true, bannedUntil: START_MS + 5_000 })
    await ban(null)
    expect(await standing(key)).toMatchObject({ banned: true, bannedUntil: null })
  })
})
