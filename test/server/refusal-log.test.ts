// The log lines of what clients are refused, of bans and of slow queries.

import { pino } from 'pino'
import { afterEach, expect, it } from 'vitest'
import type { AppOptions } from '../../src/app.ts'
import { REFUSAL_LOG_MS } from '../../src/server/refusal-log.ts'
import { SteppedClock } from '../support/clock.ts'
import { seedToken, submission, submit, VALUES } from '../support/submission.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../support/test-server.ts'

interface Line {
  level: number
  msg: string
  [field: string]: unknown
}

let server: TestServer | null = null
afterEach(async () => {
  await server?.remove()
  server = null
})

/** A server whose log is kept. */
async function logged(flags: Record<string, string> = {}, level = 'info', options: AppOptions = {}) {
  const lines: Line[] = []
  const log = pino({ level }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const opened = await openTestServer(flags, { ...options, log })
  server = opened
  const of = (sentence: string) => lines.filter(({ msg }) => msg === sentence)
  return { server: opened, of }
}

it('a refused submission is told with its agent and why, once in a while, and how many were left out', async () => {
  const clock = new SteppedClock(Date.now())
  const { server: opened, of } = await logged({}, 'info', { clock })
  const { client } = opened
  const key = await client.register()
  for (let count = 0; count < 4; count++) await submit(client, key, { mint: 'x' })
  const [first, ...others] = of('a submission was refused')
  expect(first).toMatchObject({
    level: 30,
    code: 'validation_failed',
    agentId: expect.stringMatching(/^ag_/),
  })
  expect(others).toEqual([])
  clock.pass(REFUSAL_LOG_MS)
  await submit(client, key, { mint: 'x' })
  expect(of('a submission was refused')[1]).toMatchObject({ code: 'validation_failed', suppressed: 3 })
  // Another kind has lines of its own.
  await submit(client, 'ps_wrong', { mint: 'x' })
  expect(of('a submission was refused')[2]).toMatchObject({
    code: 'invalid_key',
    requestId: expect.any(String),
  })
})

it('a limit that is reached is told with who met it', async () => {
  const { server: opened, of } = await logged({ 'read-limit-anonymous': '1', 'submit-limits': 'rate=1' })
  const { client } = opened
  for (let count = 0; count < 3; count++) await client.get('/api/v1/xp')
  expect(of('a limit was reached')).toMatchObject([
    { code: 'read_rate_limited', path: '/api/v1/xp', address: expect.stringContaining('127.0.0.1') },
  ])
  const key = await client.register()
  for (let count = 0; count < 2; count++) await submit(client, key, { mint: 'x' })
  expect(of('a limit was reached')[1]).toMatchObject({
    code: 'submit_rate_limited',
    agentId: expect.any(String),
  })
})

it('cooldowns are told with --log-level debug only', { tags: 'drill' }, async () => {
  for (const level of ['debug', 'info']) {
    const { server: opened, of } = await logged({ 'submit-limits': 'cooldown-ms=60000' }, level)
    const key = await opened.client.register()
    const body = submission(await seedToken(opened.client, Date.now()))
    for (let count = 0; count < 2; count++) await submit(opened.client, key, body)
    expect(of('a submission was refused').map(({ code }) => code)).toEqual(
      level === 'debug' ? ['mint_cooldown'] : [],
    )
    await opened.remove()
    server = null
  }
})

it('suspensions, and bans of the operator, are warnings', async () => {
  const { server: opened, of } = await logged({ 'submit-limits': 'strikes=1' })
  const { client } = opened
  const key = await client.register()
  const snapshot = { ...VALUES, priceUsd: VALUES.priceUsd * 9, snapshotAt: Date.now() }
  const refused = await submit(client, key, submission(await seedToken(client, Date.now()), { snapshot }))
  expect(refused.status).toBe(403)
  const [suspended] = of('an agent was suspended from submitting')
  expect(suspended).toMatchObject({ level: 40, strikes: 1, bannedUntil: refused.body.bannedUntil })
  const admin = { Authorization: `Bearer ${ADMIN_KEY}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ agentId: suspended?.agentId, reason: 'spam' })
  const answer = await client.request('POST', '/api/v1/admin/ban', body, admin)
  expect(answer.status, answer.text).toBe(200)
  expect(of('an agent was banned or unbanned')).toMatchObject([
    { level: 40, agentId: suspended?.agentId, kind: 'banned', reason: 'spam' },
  ])
})

it('a query that took long is told with its text', async () => {
  const { server: opened, of } = await logged({}, 'info', { tuning: { queries: { slowMs: 0 } } })
  const admin = { Authorization: `Bearer ${ADMIN_KEY}`, 'Content-Type': 'application/json' }
  const sql = `SELECT  1\n AS ${'x'.repeat(1_000)}`
  const answer = await opened.client.request('POST', '/api/v1/query', JSON.stringify({ sql }), admin)
  expect(answer.status, answer.text).toBe(200)
  const [line] = of('a query took long')
  expect(line).toMatchObject({
    level: 40,
    ms: expect.any(Number),
    sql: expect.stringMatching(/^SELECT 1 AS x{10}/),
  })
  expect(String(line?.sql)).toHaveLength(500)
})
