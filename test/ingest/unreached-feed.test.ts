// A server whose feed has never reached its source is up, and says everywhere that it has no market yet.
import { afterEach, expect, it } from 'vitest'
import { openTestServer, type TestServer } from '../support/test-server.ts'

let server: TestServer | null = null
afterEach(() => server?.remove())

// Nobody listens on port 1.
it.each([
  ['pumpportal', { providers: 'pumpportal-url=ws://127.0.0.1:1' }, 'PumpPortal has not been reached yet'],
  ['solana', { 'solana-rpc': 'http://127.0.0.1:1' }, 'No endpoint of Solana has been reached yet'],
])('/health and /readyz say the same of %s, with the reason', async (feed, settings, sentence) => {
  server = await openTestServer({ feed, ...settings })
  const { client } = server
  const reasons = async (): Promise<string[]> => (await client.get('/health')).body.reasons
  await expect.poll(reasons).toContainEqual(expect.stringContaining(`${sentence}: `))
  expect((await reasons()).join()).toMatch(/ECONNREFUSED|bad port/)
  expect((await client.get('/health')).body.status).toBe('degraded')
  expect(await client.get('/readyz')).toMatchObject({ status: 503, text: expect.stringContaining(sentence) })
})
