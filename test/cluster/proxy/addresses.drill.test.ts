// @module-tag drill
// Where nodes find one another: what the bus tells, what a setting says instead, and addresses that lead nowhere or to the wrong process.
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { seedToken, submission, submit } from '../../support/submission.ts'
import { type Client, type ServerProcess, type Settings, temporaryFolder } from '../../support/test-server.ts'
import { hasOpenssl, makeAuthority, makeCertificate } from '../access/certificates.ts'
import { freeze, hasNats, skipped, TestCluster } from '../support.ts'

const WAIT = { timeout: 20_000 }
let cluster: TestCluster
beforeEach(async () => {
  if (hasNats) cluster = await TestCluster.start()
})
afterEach(() => (hasNats ? cluster.remove() : undefined))

const healthOf = async ({ client }: { client: Client }): Promise<string> =>
  (await client.get('/health')).body.reasons.join('\n')
const register = ({ client }: { client: Client }) => client.post('/api/v1/keys/register', { name: 'agent' })

/** A submission that is stored through a node. */
async function expectPassedOn(node: ServerProcess, writer: ServerProcess): Promise<void> {
  const key = await node.client.register()
  const mint = await seedToken(writer.client, Date.now())
  const made = await submit(node.client, key, submission(mint))
  expect(made.status, made.text).toBe(201)
  expect(await healthOf(node)).not.toContain('what writes')
}

const isUnreached = async ({ client }: { client: Client }): Promise<boolean> =>
  /^mintlake_cluster_unreached 1$/m.test((await client.get('/metrics')).text)

/** Nothing is carried out, and the operator is told why. */
async function expectTold(reader: ServerProcess, reason: RegExp): Promise<void> {
  const startedAtMs = performance.now()
  const { body } = await register(reader)
  expect(body).toMatchObject({ code: 'store_unavailable', status: 503 })
  expect(body).not.toHaveProperty('mayBeStored')
  expect(performance.now() - startedAtMs).toBeLessThan(5_000)
  await expect.poll(() => healthOf(reader), WAIT).toMatch(reason)
  expect(await isUnreached(reader)).toBe(true)
  expect((await reader.client.get('/api/v1/market')).status).toBe(200)
}

describe.skipIf(!hasNats)(`the address of a node${skipped}`, () => {
  it('that listens at every address is the one that NATS sees', { timeout: 60_000 }, async () => {
    const writer = await cluster.writer({ host: '0.0.0.0' })
    const reader = await cluster.reader({ host: '0.0.0.0' })
    await expectPassedOn(reader, writer)
  })

  it('of the writer that leads nowhere is told, before anybody writes too; writer-url of --reader takes its place', {
    timeout: 60_000,
  }, async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`
    const writer = await cluster.writer({ 'node-url': nowhere })
    const reader = await cluster.reader()
    const reason = /what writes is not passed on to the writer: http:\/\/127\.0\.0\.1:\d+ cannot be reached/
    await expect.poll(() => healthOf(reader), WAIT).toMatch(reason)
    await expectTold(reader, reason)
    await expectPassedOn(
      await cluster.reader({ reader: `lag-max-ms=1000,writer-url=${writer.client.url}` }),
      writer,
    )
  })

  it('that led nowhere is one that is reached once a writer is, not where there is none', {
    timeout: 60_000,
  }, async () => {
    const writer = await cluster.writer({ 'node-url': `http://127.0.0.1:${await freePort()}` })
    const reader = await cluster.reader({ 'log-level': 'info' })
    const recoveries = () => reader.lines.filter((line) => line.includes('the writer is reached'))
    await expect.poll(() => healthOf(reader), WAIT).toContain('what writes is not passed on')
    await writer.kill()
    await expect.poll(() => healthOf(reader), WAIT).not.toContain('what writes is not passed on')
    expect([recoveries().length, await isUnreached(reader)]).toEqual([0, true])
    await cluster.writer({}, { dataDir: writer.dataDir })
    await expect.poll(() => recoveries().length, WAIT).toBe(1)
    expect(await isUnreached(reader)).toBe(false)
  })

  it('that leads to a reader, or back to the same one, is told, and nothing goes round', {
    timeout: 60_000,
  }, async () => {
    await cluster.writer()
    const first = await cluster.reader()
    const port = `${await freePort()}`
    const lost: Settings[] = [
      { reader: `lag-max-ms=1000,writer-url=${first.client.url}` },
      { port, reader: `lag-max-ms=1000,writer-url=http://127.0.0.1:${port}` },
    ]
    for (const settings of lost)
      await expectTold(
        await cluster.reader(settings),
        /is the address of another process than the bus tells of/,
      )
    expect((await first.client.get('/metrics')).text).toMatch(/^mintlake_cluster_forwarded 0$/m)
  })

  it('where something else answers is told; whether that has done anything is not known', {
    timeout: 60_000,
  }, async () => {
    await cluster.writer()
    const other = createServer((_request, response) => response.writeHead(200).end('{}'))
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    const reader = await cluster.reader({
      reader: `lag-max-ms=1000,writer-url=http://127.0.0.1:${(other.address() as AddressInfo).port}`,
    })
    expect((await register(reader)).body).toMatchObject({ code: 'store_unavailable', mayBeStored: true })
    await expect.poll(() => healthOf(reader), WAIT).toContain('is no node of this cluster')
    other.closeAllConnections()
    other.close()
  })

  it('is still known while NATS is away', { timeout: 60_000 }, async () => {
    const writer = await cluster.writer()
    const reader = await cluster.reader()
    await expectPassedOn(reader, writer)
    await cluster.nats.kill()
    await expectPassedOn(reader, writer)
  })

  it('is still known while NATS is away and a writer beside a standby refuses what is sent, or cannot answer', {
    timeout: 90_000,
  }, async () => {
    const writer = await cluster.writer({ role: 'standby' })
    const reader = await cluster.reader()
    const key = await reader.client.register()
    const mint = await seedToken(writer.client, Date.now())
    const refusal = async (attempt: number): Promise<string> => {
      const answer = await submit(reader.client, key, submission(mint), {
        'Idempotency-Key': `key-${attempt}`,
      })
      expect(answer.body).toMatchObject({ code: 'store_unavailable', status: 503 })
      expect(answer.body).not.toHaveProperty('mayBeStored')
      return answer.body.detail
    }
    await cluster.nats.kill()
    // Its last message is of this moment: for a while no other writer can have begun.
    await expect.poll(async () => (await register(writer)).status, WAIT).toBe(503)
    expect(await refusal(1)).toContain('another one may have taken over')
    const thaw = freeze(writer)
    const late = await submit(reader.client, key, submission(mint))
    expect(late.body).toMatchObject({ code: 'store_unavailable', mayBeStored: true })
    const reasons = await healthOf(reader)
    expect(reasons).toContain('there was no answer in time')
    expect(reasons).not.toContain('--node-url')
    thaw()
    expect(await refusal(2)).toContain('another one may have taken over')
    await expect.poll(() => healthOf(reader), WAIT).not.toContain('what writes')
  })

  it('of a writer that ends in order is not to blame', { timeout: 60_000 }, async () => {
    const writer = await cluster.writer()
    const reader = await cluster.reader({ 'log-level': 'info' })
    await expectPassedOn(reader, writer)
    // What it passes on while the writer ends waits for the next one, or is told that there is none.
    let isOver = false
    const told: string[] = []
    const asking = async () => {
      while (!isOver) await reader.client.get('/api/v1/agents/leaderboard')
    }
    for (let client = 0; client < 4; client++) asking().catch(() => undefined)
    const looking = (async () => {
      while (!isOver) told.push(await healthOf(reader))
    })()
    expect(await writer.terminate()).toBe(0)
    await expect.poll(() => told.at(-1), WAIT).toContain('the writer is silent')
    isOver = true
    await looking
    expect(told.filter((reasons) => reasons.includes('what writes'))).toEqual([])
    expect(reader.lines.filter((line) => line.includes('is not reached'))).toEqual([])
  })

  it('is the new one where a writer comes back elsewhere', { timeout: 60_000 }, async () => {
    const writer = await cluster.writer()
    const reader = await cluster.reader()
    await expectPassedOn(reader, writer)
    await writer.terminate()
    const again = await cluster.writer({}, { dataDir: writer.dataDir })
    expect(again.client.url).not.toBe(writer.client.url)
    await expectPassedOn(reader, again)
  })
})

describe.skipIf(!hasNats || !hasOpenssl)(
  `a writer behind TLS${hasOpenssl ? skipped : ' (needs openssl)'}`,
  () => {
    it('is reached by who knows its authority', { timeout: 60_000 }, async () => {
      const dir = temporaryFolder()
      makeAuthority(dir, 'ca')
      makeCertificate(dir, 'server', 'ca')
      const file = (name: string) => readFileSync(join(dir, name))
      const port = await freePort()
      const ends = createTlsServer(
        { cert: file('server.crt'), key: file('server.key') },
        (socket: TLSSocket) => {
          const writer = connect(Number(new URL(url).port), '127.0.0.1')
          socket.pipe(writer).pipe(socket)
          for (const each of [socket, writer]) each.on('error', () => undefined)
        },
      )
      ends.listen(port, '127.0.0.1')
      const writer = await cluster.writer({ 'node-url': `https://localhost:${port}` })
      const { url } = writer.client
      const known = await cluster.reader({}, { env: { NODE_EXTRA_CA_CERTS: join(dir, 'ca.crt') } })
      await expectPassedOn(known, writer)
      await expectTold(await cluster.reader(), /https:\/\/localhost:\d+ cannot be reached/)
      ends.close()
      rmSync(dir, { recursive: true, force: true })
    })
  },
)
