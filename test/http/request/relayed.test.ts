// Requests that say that another node of a cluster has passed them on, sent to a server that has no cluster.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const PATH = '/api/v1/market?limit=1'
const RELAYED = { 'X-Mintlake-Relay': 'node secret', 'X-Forwarded-For': '9.9.9.9' }

let server: TestServer
beforeAll(async () => {
  server = await openTestServer({ 'page-age-ms': '1000', 'register-limit': '1' })
})
afterAll(() => server.remove())

/** Not held to the API description: it is for clients. */
async function sent(path: string, init: RequestInit = {}) {
  const answer = await fetch(server.url + path, { ...init, headers: { ...RELAYED, ...init.headers } })
  const { code } = (await answer.json()) as { code?: string }
  return { status: answer.status, code, node: answer.headers.get('x-mintlake-node') }
}

it('they are refused, and the asking node can tell that nothing was done', async () => {
  const refused = { status: 400, code: 'invalid_parameter', node: 'another' }
  expect((await server.client.get(PATH)).status).toBe(200)
  // Also where the same answer is cached for others.
  expect(await sent(PATH)).toEqual(refused)
  const body = JSON.stringify({ name: 'agent' })
  const headers = { 'Content-Type': 'application/json' }
  expect(await sent('/api/v1/keys/register', { method: 'POST', headers, body })).toEqual(refused)
  expect((await server.client.post('/api/v1/keys/register', { name: 'agent' })).status).toBe(201)
})
