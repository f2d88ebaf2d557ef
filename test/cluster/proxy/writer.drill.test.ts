// @module-tag drill
// The writer as it runs: what it does for other nodes from its start to its end.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { AccountReplica } from '../../../src/cluster/accounts/account-replica.ts'
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLog } from '../../../src/lib/log.ts'
import { expectProblem, seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'
import { busSettings, type Forwarder, startForwarder } from './support.ts'

const log = createLog('warn')

let nats: Nats
let node: Forwarder
let bus: Bus
let writer: TestServer
let replica: AccountReplica

beforeAll(async () => {
  if (!hasNats) return
  nats = await startNats()
  node = await startForwarder(nats.url)
  bus = await connectBus(busSettings(nats.url), 'test')
  replica = new AccountReplica({ bus, clock: systemClock, log, tellUse: async () => {} })
  writer = await openTestServer({ role: 'writer', bus: nats.url })
}, 30_000)

afterAll(async () => {
  await replica?.stop()
  await bus?.close()
  await node?.close()
  await writer?.remove()
  await nats?.remove()
})

describe.skipIf(!hasNats)(`a writer on the bus${skipped}`, () => {
  it('carries out what others ask, and tells what they must have applied', async () => {
    await vi.waitFor(async () => expect((await node.client.get('/api/v1/xp')).status).toBe(200), 10_000)
    await vi.waitFor(() => expect(replica.isReady).toBe(true), 10_000)
    node.positions.length = 0
    const key = await node.client.register('reads its writes')
    const [made] = node.positions
    await replica.until(made!.accounts, 500)
    expect(replica.revision).toBeGreaterThanOrEqual(made!.accounts)
    expect(replica.authenticate(key).agent.name).toBe('reads its writes')
    const mint = await seedToken(writer.client, Date.now())
    const answer = await submit(node.client, key, submission(mint))
    expect(answer.status, answer.text).toBe(201)
    expect(node.positions.at(-1)!.eventNo).toBeGreaterThan(made!.eventNo)
    await node.passingOn.askCheckpoint()
  }, 20_000)

  it('refuses keys everywhere once they are revoked', async () => {
    const key = await node.client.register()
    await replica.until(node.positions.at(-1)!.accounts, 500)
    const headers = { Authorization: `Bearer ${key}` }
    expect((await node.client.request('DELETE', '/api/v1/keys/current', undefined, headers)).status).toBe(200)
    await replica.until(node.positions.at(-1)!.accounts, 500)
    expect(() => replica.authenticate(key)).toThrow('revoked')
  })

  it('goes on after the bus was restarted without its data', async () => {
    const key = await node.client.register()
    await nats.start({ keepData: false })
    await vi.waitFor(
      async () =>
        expect(
          (await node.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).status,
        ).toBe(200),
      { timeout: 15_000, interval: 200 },
    )
    const made = await node.client.register('after the loss')
    await vi.waitFor(() => expect(replica.authenticate(made).agent.name).toBe('after the loss'), 10_000)
  }, 40_000)

  it('that stops is gone at once, and comes back with all it had', async () => {
    const key = await node.client.register()
    await writer.stop()
    const startedAtMs = performance.now()
    expectProblem(
      await node.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` }),
      'store_unavailable',
    )
    expect(performance.now() - startedAtMs).toBeLessThan(500)
    writer = await writer.restart()
    await vi.waitFor(
      async () =>
        expect(
          (await node.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).status,
        ).toBe(200),
      { timeout: 10_000, interval: 100 },
    )
  }, 30_000)
})
