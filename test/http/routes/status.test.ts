// Requests for /health and /metrics have no limit: many of them must not slow down reads and submissions.
import http from 'node:http'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, spawnServer, type TestServer } from '../../support/test-server.ts'

const CONNECTIONS = 300
const REQUESTS_EACH = 5

/** Sends requests one after another on each of several connections. Returns their statuses. */
async function flood(url: string, path: string): Promise<number[]> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      const request = http.get(url + path, { agent }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode!))
      })
      request.on('error', reject)
    })
  const connection = async () => {
    const statuses: number[] = []
    for (let count = 0; count < REQUESTS_EACH; count++) statuses.push(await ask())
    return statuses
  }
  try {
    return (await Promise.all(Array.from({ length: CONNECTIONS }, connection))).flat()
  } finally {
    agent.destroy()
  }
}

describe('one server', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await openTestServer()
  })
  afterAll(() => server.remove())

  it('asks its store once for all concurrent requests for /health, and answers each with its state', async () => {
    const status = vi.spyOn(server.store, 'status')
    const answers = await Promise.all(Array.from({ length: 100 }, () => server.client.get('/health')))
    // It can be two if the requests span two seconds.
    expect(status.mock.calls.length).toBeLessThanOrEqual(2)
    for (const { body } of answers)
      expect(body).toMatchObject({ ok: true, status: 'ready', store: { healthy: true } })
  })
})

it('look-ups and submissions are answered while 300 connections request /health and /metrics', {
  tags: 'drill',
}, async () => {
  const spawned = await spawnServer({ 'submit-limits': 'cooldown-ms=0' })
  try {
    const { client } = spawned
    const key = await client.register()
    const mint = await seedToken(client, Date.now())
    const { analysisId } = (await submit(client, key, submission(mint))).body
    for (const path of ['/health', '/metrics']) {
      const flooded = flood(client.url, path)
      let isOver = false
      const over = flooded.finally(() => {
        isOver = true
      })
      for (let asked = 0; asked === 0 || !isOver; asked++) {
        const found = await client.get(`/api/v1/analysis/${analysisId}`)
        expect(found.status, found.text).toBe(200)
        if (asked > 0) continue
        expect((await submit(client, key, submission(mint))).status).toBe(201)
      }
      expect(new Set(await over)).toEqual(new Set([200]))
    }
  } finally {
    await spawned.terminate()
  }
})
