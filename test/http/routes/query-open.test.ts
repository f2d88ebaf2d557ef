// SQL without a key: for programs of this computer, where the server has no key for it; else two lines tell how one is made.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectProblem } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

const PATH = '/api/v1/query'
const NO_ADMIN = { MINTLAKE_ADMIN_KEY: '' }
const ask = (server: TestServer, sql: string, headers: Record<string, string> = {}) =>
  server.client.post(PATH, { sql }, '', headers)
const isOpen = async (server: TestServer) =>
  (await server.client.post('/api/v1/session', undefined)).body.data.queryOpen

const folderTold = async (server: TestServer, headers: Record<string, string> = {}) =>
  (await server.client.post('/api/v1/session', undefined, '', headers)).body.data.dataDir

let server: TestServer
beforeAll(async () => {
  server = await openTestServer({}, {}, undefined, NO_ADMIN)
})
afterAll(() => server.remove())

it('is open on loopback, read-only', async () => {
  expect((await ask(server, 'SELECT 41 + 1 AS n')).body.data.rows).toEqual([[42]])
  expect(await isOpen(server)).toBe(true)
  expectProblem(await ask(server, 'DELETE FROM training'), 'query_failed')
  expectProblem(await ask(server, "COPY (SELECT 1) TO '/tmp/mintlake-open.csv'"), 'query_failed')
  const origin = { Origin: server.url }
  expect((await ask(server, 'SELECT 1', origin)).status).toBe(200)
})

it('tells programs of this computer, and nobody else, which folder the lake is in', async () => {
  expect(await folderTold(server)).toBe(server.dataDir)
  expect(await folderTold(server, { Origin: server.url })).toBe(server.dataDir)
  expect(await folderTold(server, { Origin: 'https://evil.example' })).toBeNull()
})

/** What proxies add, each of them alone. */
const OF_PROXIES: Record<string, string>[] = [
  { 'X-Forwarded-For': '203.0.113.7' },
  { 'X-Forwarded-For': '' },
  { 'X-Forwarded-Host': 'market.example' },
  { 'X-Forwarded-Proto': 'https' },
  { 'X-Forwarded-Port': '443' },
  { Forwarded: 'for=203.0.113.7;proto=https' },
  { Via: '1.1 proxy' },
  { 'X-Real-IP': '203.0.113.7' },
  { 'X-Client-IP': '203.0.113.7' },
  { 'X-Original-Host': 'market.example' },
  { 'CF-Connecting-IP': '203.0.113.7' },
  { 'True-Client-IP': '203.0.113.7' },
]

it.each(OF_PROXIES)('is closed to what a proxy passed on: %o', async (headers) => {
  expectProblem(await ask(server, 'SELECT 1', headers), 'missing_key')
  const { data } = (await server.client.post('/api/v1/session', undefined, '', headers)).body
  expect(data).toMatchObject({ queryOpen: false, dataDir: null })
})

it('knows a proxy by the head of its request, whatever comes before its body', async () => {
  const socket = connect(server.port, '127.0.0.1')
  const head = ['POST /api/v1/session HTTP/1.1', `Host: 127.0.0.1:${server.port}`, 'X-Real-IP: 203.0.113.7']
  const body = ['Content-Type: application/json', 'Content-Length: 2', 'Connection: close']
  socket.write(`${[...head, ...body].join('\r\n')}\r\n\r\n{`)
  for (let round = 0; round < 3; round++) expect(await isOpen(server)).toBe(true)
  socket.write('}')
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toContain('"queryOpen":false,"dataDir":null')
  socket.destroy()
})

it.each([
  ['a page of another site', { Origin: 'https://evil.example' }],
  ['a page in a sandbox', { Origin: 'null' }],
])('is closed to %s', async (_, headers) => {
  expectProblem(await ask(server, 'SELECT 1', headers), 'missing_key')
})

it('is closed to another name of this address (DNS rebinding)', async () => {
  const { request } = await import('node:http')
  const { promise, resolve } = Promise.withResolvers<number>()
  const headers = { Host: `evil.example:${server.port}`, 'Content-Type': 'application/json' }
  const options = { port: server.port, host: '127.0.0.1', path: PATH, method: 'POST', headers }
  request(options, (response) => resolve(response.resume().statusCode ?? 0)).end('{"sql":"SELECT 1"}')
  expect(await promise).toBe(401)
})

async function expectClosed(other: TestServer): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${other.port}${PATH}`, {
    ...{ method: 'POST', body: '{"sql":"SELECT 1"}' },
    headers: { 'Content-Type': 'application/json' },
  })
  expect(answer.status).toBe(401)
  const { error } = (await answer.json()) as { error: string }
  expect(error).toMatch(
    /MINTLAKE_ADMIN_KEY=<secret> npm start .*npx mintlake keys make lab --type researcher /,
  )
}

it('is closed where the operator has a key, and once there is a researcher, and says how a key is made', async () => {
  let other = await openTestServer()
  await expectClosed(other)
  expect(await folderTold(other)).toBeNull()
  const made = await other.client.post('/api/v1/admin/keys', { name: 'lab', type: 'researcher' }, ADMIN_KEY)
  expect(made.status).toBe(201)
  await other.stop()
  other = await openTestServer({}, {}, other.dataDir, NO_ADMIN)
  expectProblem(await ask(other, 'SELECT 1'), 'missing_key')
  expect((await other.client.post(PATH, { sql: 'SELECT 1' }, made.body.data.key)).status).toBe(200)
  await other.remove()
}, 20_000)

it.each([
  ['is behind a proxy', { 'trusted-proxies': '10.0.0.1' }],
  ['has a public address', { 'public-url': 'https://market.example' }],
  ['listens at every address', { host: '0.0.0.0' }],
])('is closed where the server %s', { tags: 'drill' }, async (_, settings) => {
  const other = await openTestServer(settings, {}, undefined, NO_ADMIN)
  await expectClosed(other)
  await other.remove()
})
