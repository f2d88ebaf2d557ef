// The session key of a page of the console: reads of its own, and no more rights than a reader without a key.
import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import WebSocket from 'ws'
import { ConsoleSessions } from '../../../src/http/console-sessions.ts'
import { CONSOLE_SESSION_MS, CONSOLE_SESSIONS_PER_ADDRESS_MAX } from '../../../src/http/limits.ts'
import { SteppedClock } from '../../support/clock.ts'
import { expectProblem, submission } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type Settings, type TestServer } from '../../support/test-server.ts'

const SESSION = '/api/v1/session'
const LIMITS = { 'read-limit-anonymous': '2', 'read-limit-keyed': '5' }
let server: TestServer
const opened: TestServer[] = []
async function open(settings: Settings = {}): Promise<void> {
  server = await openTestServer(settings)
  opened.push(server)
}
afterEach(async () => {
  for (const each of opened.splice(0)) await each.remove()
})

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
const read = (key = '') => server.client.get('/api/v1/agents/leaderboard', key === '' ? {} : bearer(key))
async function openSession(known = ''): Promise<string> {
  const answer = await server.client.post(SESSION, undefined, known)
  expect(answer.status, answer.text).toBe(201)
  return answer.body.data.key
}

it('a session goes on reading where a script has used up the reads of the address', async () => {
  await open(LIMITS)
  const key = await openSession()
  for (let reads = 0; reads < 2; reads++) expect((await read()).status).toBe(200)
  expectProblem(await read(), 'read_rate_limited')
  for (let reads = 0; reads < 5; reads++) expect((await read(key)).status).toBe(200)
  expectProblem(await read(key), 'read_rate_limited')
  // All consoles of an address share what one key has: another session gives no more.
  expectProblem(await read(await openSession()), 'read_rate_limited')
})

it('a session may do nothing but read', async () => {
  await open()
  const key = await openSession()
  expectProblem(await server.client.get('/api/v1/agent/profile', bearer(key)), 'invalid_key')
  expectProblem(await server.client.post('/api/v1/analysis/submit', submission('x'), key), 'invalid_key')
  expectProblem(await server.client.post('/api/v1/query', { sql: 'SELECT 1' }, key), 'invalid_key')
  expectProblem(await server.client.get('/api/v1/analysis?agentId=me', bearer(key)), 'missing_key')
  expectProblem(await server.client.get('/api/v1/admin/agents', bearer(key)), 'invalid_key')
})

it('a session that was revoked, by its page or by the operator, counts as no key', async () => {
  await open({ ...LIMITS, 'read-limit-anonymous': '1' })
  const [mine, others] = [await openSession(), await openSession()]
  const ended = await server.client.request('DELETE', SESSION, undefined, bearer(mine))
  expect(ended.body.data).toEqual({ revoked: true })
  expect((await read(mine)).status).toBe(200)
  expectProblem(await read(mine), 'read_rate_limited')
  expect((await read(others)).status).toBe(200)
  const all = await server.client.post('/api/v1/admin/sessions/revoke', undefined, ADMIN_KEY)
  expect(all.body.data).toEqual({ revoked: 1 })
  expectProblem(await read(others), 'read_rate_limited')
  expectProblem(await server.client.post('/api/v1/admin/sessions/revoke', undefined), 'missing_key')
})

it('a WebSocket offers the key as a protocol, and asking again keeps the session', async () => {
  await open({ ...LIMITS, 'read-limit-anonymous': '1' })
  const key = await openSession()
  expect(await openSession(key)).toBe(key)
  expect((await read()).status).toBe(200)
  const url = `${server.url.replace('http', 'ws')}/api/v1/stream`
  const socket = new WebSocket(url, ['mintlake.json', `mintlake.session.${key}`])
  await once(socket, 'open')
  expect(socket.protocol).toBe('mintlake.json')
  socket.close()
  const refused = new WebSocket(url, ['mintlake.json'])
  await expect(once(refused, 'open')).rejects.toThrow('429')
})

it('sessions end by their time, and an address has a bounded number', () => {
  const clock = new SteppedClock(1_795_000_000_000)
  const sessions = new ConsoleSessions(clock)
  const first = sessions.open('a', '').key
  const other = sessions.open('b', '').key
  for (let opened = 0; opened < CONSOLE_SESSIONS_PER_ADDRESS_MAX; opened++) sessions.open('a', '')
  expect([first, other].map((key) => sessions.check(key))).toEqual(['unknown', 'open'])
  clock.pass(CONSOLE_SESSION_MS)
  expect(sessions.check(other)).toBe('unknown')
  expect(sessions.check('ps_of_an_agent')).toBe('no')
})
