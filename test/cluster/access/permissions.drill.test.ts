// @module-tag drill
// The configuration of NATS that the operations page gives, as it stands there: what nodes need is permitted, and no more.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PermissionViolationError } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { submission } from '../../support/submission.ts'
import { type Client, type ServerProcess, type Settings, temporaryFolder } from '../../support/test-server.ts'
import { rowsOf } from '../faults/equality.ts'
import { untilHealth } from '../faults/run.ts'
import { fillers } from '../faults/trades.ts'
import { busSettingsOf, hasNats, TestCluster } from '../support.ts'
import { hasOpenssl, makeAuthority, makeCertificate } from './certificates.ts'

const canRun = hasNats && hasOpenssl
const skipped = canRun ? '' : ' (needs nats-server and openssl)'
const PAGE = readFileSync(new URL('../../../scripts/README.md', import.meta.url), 'utf8')
const SAMPLE = /```\n(# \/etc\/nats-server\.conf\n[\s\S]*?)```/.exec(PAGE)?.[1] ?? ''
const PASSWORDS = { writer: 'the password of the writer', reader: 'the password of the readers' }

const dir = temporaryFolder()
/** The sample, with the files of this test. Where it listens and stores is said by who starts it here. */
const config = SAMPLE.replaceAll('/etc/nats/', `${dir}/`).replace(/^(listen|jetstream) .*|^listen: .*/gm, '')

let cluster: TestCluster
let natsLines: string
beforeAll(() => {
  if (!canRun) return
  makeAuthority(dir, 'ca')
  makeCertificate(dir, 'server', 'ca')
})
beforeEach(async () => {
  natsLines = ''
  if (canRun) await startCluster(config)
})
afterEach(() => (canRun ? cluster.remove() : undefined))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

async function startCluster(natsConfig: string): Promise<void> {
  cluster = await TestCluster.start({ config: natsConfig })
  cluster.nats.server.child.stderr?.on('data', (bytes) => {
    natsLines += `${bytes}`
  })
}

type User = keyof typeof PASSWORDS

const settingsOf = (user: User): Settings => ({
  'bus-login': `user=${user},ca=${join(dir, 'ca.crt')}`,
})
const envOf = (user: User) => ({ MINTLAKE_BUS_PASSWORD: PASSWORDS[user] })

const startWriter = (more: Settings = {}): Promise<ServerProcess> =>
  cluster.writer({ ...settingsOf('writer'), ...more }, { env: envOf('writer') })
const startReader = (): Promise<ServerProcess> =>
  cluster.reader(settingsOf('reader'), { env: envOf('reader') })
const launchReader = (env: Record<string, string>) =>
  cluster.launch({ role: 'reader', ...settingsOf('reader') }, { env })

/** A client of NATS with the rights of a user. */
const connectedAs = (user: User): Promise<Bus> => {
  const settings = busSettingsOf(cluster.nats.url)
  const login = { ...settings.login, user, ca: join(dir, 'ca.crt') }
  return connectBus({ ...settings, login, password: PASSWORDS[user] }, 'test')
}

/** Changes its configuration while it runs. */
function reload(natsConfig: string): void {
  const path = join(cluster.nats.server.dir, 'nats.conf')
  const [listen = '', rest = ''] = readFileSync(path, 'utf8').split(config, 2)
  // A port of 0 is another one at each reading.
  const kept = listen.replace(/:-1"/, `:${cluster.nats.port}"`)
  writeFileSync(path, `${kept}${natsConfig}${rest}`)
  cluster.nats.server.child.kill('SIGHUP')
}

const isHealthy = /"status":"ready"/

async function pagedThrough(clients: readonly Client[]): Promise<number> {
  let [rows, cursor] = [0, '']
  for (let turn = 0; turn === 0 || cursor !== ''; turn++) {
    const path = `/api/v1/market?limit=20&sort=created_timestamp${cursor && `&cursor=${cursor}`}`
    const { body, status, text } = await clients[turn % clients.length].get(path)
    expect(status, text).toBe(200)
    rows += body.data.length
    cursor = body.meta.nextCursor ?? ''
  }
  return rows
}

describe.skipIf(!canRun)(`the sample configuration of NATS${skipped}`, () => {
  test('permits all that a cluster does', { timeout: 120_000 }, async () => {
    const writer = await startWriter({ 'bus-stream': 'max-mb=1' })
    const launches = Array.from({ length: 50 }, (_, index) => ({
      ...{
        type: 'token',
        mint: mintOfSymbol(`token ${index}`),
        ts: Date.now(),
        name: `${index}`,
        symbol: 'S',
      },
    }))
    await writer.client.push(...launches)
    await writer.client.push(...fillers(100))
    const early = await startReader()
    // More than the stream keeps, so that the next reader begins with a checkpoint.
    for (let round = 0; round < 4; round++) await writer.client.push(...fillers(4_000))
    const late = await startReader()
    for (const { client } of [early, late])
      await expect.poll(() => rowsOf(client), { timeout: 20_000 }).toEqual(await rowsOf(writer.client))
    const key = await early.client.register('with permissions')
    const profile = await late.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })
    expect(profile.status).toBe(200)
    const [mint = ''] = (await rowsOf(late.client)).keys()
    expect((await late.client.post('/api/v1/analysis/submit', submission(mint), key)).status).toBe(201)
    expect(await pagedThrough([early.client, late.client, writer.client])).toBe(51)
    for (const { client } of [writer, early, late]) await untilHealth(client, isHealthy)
    expect(natsLines).not.toContain('Violation')
  })

  test('lets a reader write nothing and stand in for nobody', { timeout: 60_000 }, async () => {
    await startWriter()
    const reader = await connectedAs('reader')
    const { names, client, manager, connection } = reader
    const denied = async (act: Promise<unknown>) => {
      const error = await act.then(
        () => null,
        (thrown: Error) => thrown,
      )
      expect(
        [error, error?.cause].some((each) => each instanceof PermissionViolationError),
        `${error}`,
      ).toBe(true)
    }
    await denied(client.publish(names.subject, 'x'))
    await denied(client.publish(`$KV.${names.accounts}.x`, 'x'))
    await denied(client.publish(`$O.${names.checkpoints}.M.x`, 'x'))
    await denied(manager.streams.purge(names.stream))
    await denied(manager.streams.delete(names.stream))
    await denied(manager.streams.deleteMessage(names.stream, 1))
    for (const subject of [names.writer, '_INBOX.writer.>', '>']) {
      const error = await new Promise<unknown>((resolve) =>
        connection.subscribe(subject, { callback: (thrown) => resolve(thrown) }),
      )
      expect(error, subject).toBeInstanceOf(PermissionViolationError)
    }
    await reader.close()
  })

  test('a wrong password is told, and one that is changed in service until it is right again', {
    timeout: 120_000,
  }, async () => {
    const writer = await startWriter()
    const sentence = /NATS does not know the user reader \(--bus-login\), or the password is another/
    const wrong = launchReader({ MINTLAKE_BUS_PASSWORD: 'guessed' })
    await untilHealth(await wrong.listening, sentence)
    expect([...wrong.lines, ...wrong.errorLines].join('\n')).toMatch(sentence)
    await wrong.kill()

    const reader = await startReader()
    reload(config.replaceAll('the password of', 'another password of'))
    await untilHealth(reader.client, /NATS does not take the user of this process any more/)
    await untilHealth(writer.client, /NATS does not know the user writer/)
    reload(config)
    for (const { client } of [writer, reader]) await untilHealth(client, isHealthy)
    await reader.client.register('afterwards')
  })

  test('a permission that is missing is told, until it is given', { timeout: 120_000 }, async () => {
    const lacking = config
      .replace('subscribe: ["mintlake.>", ', 'subscribe: [')
      .replace('"$JS.API.STREAM.INFO.*", ', '')
    expect(lacking.length).toBeLessThan(config.length - 30)
    reload(lacking)
    const writer = await startWriter()
    const launched = launchReader(envOf('reader'))
    const reader = await launched.listening
    await untilHealth(writer.client, /NATS does not let this process subscribe to \\"mintlake\.writer\\"/)
    expect((await writer.client.get('/metrics')).text).toMatch(/^mintlake_cluster_refused [1-9]$/m)
    const sentence = 'NATS does not let this process publish to'
    await expect.poll(async () => (await reader.get('/health')).body.reasons.join('\n')).toContain(sentence)
    expect([...launched.lines, ...launched.errorLines].join('\n')).toContain(sentence)
    expect([...writer.lines, ...writer.errorLines].join('\n')).toContain(
      'does not let this process subscribe to',
    )
    reload(config)
    await expect.poll(async () => (await reader.get('/readyz')).status, { timeout: 30_000 }).toBe(200)
    await expect
      .poll(async () => (await reader.post('/api/v1/keys/register', { name: 'late' })).status, {
        timeout: 30_000,
      })
      .toBe(201)
  })
})
