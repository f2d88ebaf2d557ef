// A writer and two readers: cursors that a load balancer brings to another node, and what a client of a reader sees of its own writes.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type ReaderApp, startReader } from '../../../src/cluster/reader/reader-app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { expectProblem, seedToken, submission, submit } from '../../support/submission.ts'
import { Client, openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'

const log = createLog({ format: 'text', quiet: true })
const LIST = '/api/v1/market?tab=all&sort=created_timestamp&limit=10'

let nats: Nats
let writer: TestServer
let readers: { app: ReaderApp; client: Client }[] = []

async function openReader() {
  const flags = [
    '--role',
    'reader',
    '--bus',
    nats.url,
    '--port',
    '0',
    '--page-age-ms',
    '0',
    '--quiet',
    'true',
  ]
  const unlimited = ['--read-limit-anonymous', '0', '--read-limit-keyed', '0']
  const app = await startReader(readConfig([...flags, ...unlimited], {}), { log })
  await app.ready
  return { app, client: new Client(app.url) }
}

beforeAll(async () => {
  if (!hasNats) return
  nats = await startNats()
  writer = await openTestServer({ role: 'writer', bus: nats.url })
  const now = Date.now()
  const tokens = Array.from({ length: 40 }, (_, index) => ({
    ...{ type: 'token', mint: mintOfSymbol(`paged ${index}`), ts: now - index * 1_000 },
    ...{ name: `paged ${index}`, symbol: 'P' },
  }))
  await writer.client.push(...tokens)
  readers = [await openReader(), await openReader()]
}, 60_000)

afterAll(async () => {
  for (const { app } of readers) await app.stop()
  await writer?.remove()
  await nats?.remove()
})

const mintsOf = (answer: { body: { data: { mint: string }[] } }) => answer.body.data.map(({ mint }) => mint)

describe.skipIf(!hasNats)(`nodes of a cluster${skipped}`, () => {
  it('answer for the cursors of each other', async () => {
    const clients = [writer.client, readers[0]!.client, readers[1]!.client]
    for (const first of clients) {
      const seen: string[] = []
      let answer = await first.get(LIST)
      for (let turn = 1; ; turn++) {
        seen.push(...mintsOf(answer))
        const cursor = answer.body.meta.nextCursor
        if (cursor === null) break
        answer = await clients[turn % 3]!.get(`/api/v1/market?cursor=${cursor}&limit=10`)
        expect(answer.status, answer.text.slice(0, 300)).toBe(200)
      }
      expect(seen).toHaveLength(40)
      expect(new Set(seen).size).toBe(40)
    }
  })

  it('tell at once that a cursor is gone with its node', async () => {
    const third = await openReader()
    const cursor = (await third.client.get(LIST)).body.meta.nextCursor
    expect((await readers[0]!.client.get(`/api/v1/market?cursor=${cursor}&limit=10`)).status).toBe(200)
    await third.app.stop()
    const startedAtMs = performance.now()
    for (const client of [writer.client, readers[0]!.client])
      expectProblem(await client.get(`/api/v1/market?cursor=${cursor}&limit=10`), 'cursor_expired')
    expect(performance.now() - startedAtMs).toBeLessThan(1_000)
    const stream = await fetch(`${readers[0]!.app.url}/api/v1/market?follow=1&cursor=${cursor}`)
    expect(stream.status).toBe(200)
    await stream.body?.cancel()
  }, 20_000)

  it('show a client what it has just written', async () => {
    const { client } = readers[0]!
    for (let round = 0; round < 5; round++) {
      const key = await client.register(`agent ${round}`)
      // Known here: a read with the key is local.
      expect((await client.get('/api/v1/market?limit=1', { Authorization: `Bearer ${key}` })).status).toBe(
        200,
      )
      const mint = await seedToken(writer.client, Date.now())
      const made = await submit(client, key, submission(mint))
      expect(made.status, made.text).toBe(201)
      const list = await client.get('/api/v1/market?limit=100')
      const row = list.body.data.find((each: { mint: string }) => each.mint === mint)
      expect(row).toMatchObject({ mint, analysis_count: 1 })
    }
  }, 20_000)

  it('refuse a revoked key within a second', async () => {
    const key = await readers[0]!.client.register()
    const headers = { Authorization: `Bearer ${key}` }
    const all = [writer.client, readers[0]!.client, readers[1]!.client]
    await vi.waitFor(async () => {
      for (const each of all) expect((await each.get('/api/v1/market?limit=1', headers)).status).toBe(200)
    }, 2_000)
    expect(
      (await readers[0]!.client.request('DELETE', '/api/v1/keys/current', undefined, headers)).status,
    ).toBe(200)
    await vi.waitFor(
      async () => {
        for (const each of all) expect((await each.get('/api/v1/market?limit=1', headers)).status).toBe(401)
      },
      { timeout: 1_000, interval: 20 },
    )
  })
})
