// @module-tag drill
// A writer and two readers: what a client of a reader sees of its own writes.
import { Kvm } from '@nats-io/kv'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { decodeAccount, entryKey } from '../../../src/cluster/accounts/account-entry.ts'
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { type ReaderApp, startReader } from '../../../src/cluster/reader/reader-app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { seedToken, submission, submit } from '../../support/submission.ts'
import { Client, openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'
import { busSettings } from './support.ts'

const log = createLog('warn')

let nats: Nats
let writer: TestServer
let bus: Bus
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
    '--log-level',
    'warn',
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
  bus = await connectBus(busSettings(nats.url), 'test')
  readers = [await openReader(), await openReader()]
}, 60_000)

afterAll(async () => {
  for (const { app } of readers) await app.stop()
  await bus?.close()
  await writer?.remove()
  await nats?.remove()
})

describe.skipIf(!hasNats)(`nodes of a cluster${skipped}`, () => {
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

  it('tell the writer that a new key was used: the one that it replaced rotates no more', async () => {
    const { client } = readers[0]!
    const read = (key: string) =>
      readers[1]!.client.get('/api/v1/market?limit=1', { Authorization: `Bearer ${key}` })
    const { key: old, agentId } = (await client.post('/api/v1/keys/register', { name: 'rotated' })).body.data
    const { key: lost } = (await client.post('/api/v1/keys/rotate', {}, old)).body.data
    const { key } = (await client.post('/api/v1/keys/rotate', {}, old)).body.data
    expect((await client.get('/api/v1/market?limit=1', { Authorization: `Bearer ${lost}` })).status).toBe(401)
    await expect.poll(async () => (await read(key)).status).toBe(200)
    const accounts = await new Kvm(bus.client).open(bus.names.accounts)
    await vi.waitFor(async () => {
      const entry = await accounts.get(entryKey(agentId))
      expect(decodeAccount(entry!.value)!.keys.map(({ isUsed }) => isUsed)).toEqual([true, false, true])
    })
    const refused = await client.post('/api/v1/keys/rotate', {}, old)
    expect(refused.body.code).toBe('key_not_allowed')
  })

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
