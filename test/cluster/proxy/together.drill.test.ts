// @module-tag drill
// Submissions that come together: each has its own answer, and is seen where it was sent.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ReaderApp, startReader } from '../../../src/cluster/reader/reader-app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { expectProblem, newMint, submission, submit } from '../../support/submission.ts'
import { Client, openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'

const log = createLog('warn')
const UNLIMITED = { 'submit-limits': 'rate=0,cooldown-ms=0', 'register-limit': '0' }

const seed = async (client: Client, count: number): Promise<string[]> => {
  const mints = Array.from({ length: count }, newMint)
  const ts = Date.now()
  await client.push(
    ...mints.flatMap((mint) => [
      { type: 'token', mint, ts, name: 'Seed', symbol: 'SEED' },
      { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 },
    ]),
  )
  return mints
}

describe.skipIf(!hasNats)(`submissions through a reader${skipped}`, () => {
  let nats: Nats
  let writer: TestServer
  let reader: ReaderApp
  let client: Client

  beforeAll(async () => {
    if (!hasNats) return
    nats = await startNats()
    writer = await openTestServer({ role: 'writer', bus: nats.url, ...UNLIMITED })
    const flags = ['--role', 'reader', '--bus', nats.url, '--port', '0', '--page-age-ms', '0']
    const more = ['--log-level', 'warn', '--read-limit-anonymous', '0', '--read-limit-keyed', '0']
    reader = await startReader(readConfig([...flags, ...more], {}), { log })
    await reader.ready
    client = new Client(reader.url)
  }, 60_000)

  afterAll(async () => {
    await reader?.stop()
    await writer?.remove()
    await nats?.remove()
  })

  it('200 at once are seen there, each from its answer on, and have the answers that they would have got alone', {
    timeout: 60_000,
  }, async () => {
    const keys = await Promise.all(
      Array.from({ length: 20 }, (_, index) => client.register(`agent ${index}`)),
    )
    const mints = await seed(writer.client, 200)
    const ids = await Promise.all(
      mints.map(async (mint, index) => {
        const made = await submit(client, keys[index % keys.length]!, submission(mint), {
          'X-Request-Id': `request-${index}`,
        })
        expect(made.status, made.text).toBe(201)
        expect(made.headers.get('x-request-id')).toBe(`request-${index}`)
        const read = await client.get(`/api/v1/market?search=${mint}`)
        expect(read.body.data, read.text).toMatchObject([{ mint, analysis_count: 1 }])
        return made.body.analysisId as string
      }),
    )
    expect(new Set(ids).size).toBe(200)
  })

  it('that are refused in between are refused alone', { timeout: 30_000 }, async () => {
    const key = await client.register('mixed')
    const mints = await seed(writer.client, 20)
    const answers = await Promise.all(
      mints.flatMap((mint, index) => [
        submit(client, key, submission(mint), { 'Idempotency-Key': `mixed-${index}` }),
        submit(client, key, submission(mint), { 'Idempotency-Key': `mixed-${index}` }),
        submit(client, index % 2 === 0 ? 'no key' : '', submission(mint)),
        submit(client, key, submission(mint, { score: 700 })),
      ]),
    )
    for (let at = 0; at < answers.length; at += 4) {
      const [first, second, foreign, wrong] = answers.slice(at, at + 4)
      // Two with one key, at once: one is stored, and the other gets its answer or is told to wait for it.
      expect([first!.status, second!.status].sort()[0], first!.text).toBe(201)
      expect([201, 409]).toContain(Math.max(first!.status, second!.status))
      expectProblem(foreign!, at % 8 === 0 ? 'invalid_key' : 'missing_key')
      expect(wrong!.status).toBe(400)
    }
    const { standing } = (await client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).body
    expect(standing.analyses).toBe(20)
  })
})
