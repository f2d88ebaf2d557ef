// @module-tag drill
// What a writer publishes when the bus, or the writer itself, ends in the middle.
import { once } from 'node:events'
import { cpSync, rmSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import type { BusMessage } from '../../../src/cluster/messages.ts'
import { MINTS } from '../../checkpoint/support.ts'
import {
  type Client,
  launchServer,
  openTestServer,
  type ServerProcess,
  type Settings,
  spawnServer,
  type TestServer,
  temporaryFolder,
} from '../../support/test-server.ts'
import { freeze, hasNats, type Nats, skipped, startNats, startProxy } from '../support.ts'
import { batchesOf, connect, eventNumbersOf, eventually, readStream } from './stream-log.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function natsServer(): Promise<Nats> {
  const nats = await startNats()
  cleanups.push(() => nats.remove())
  return nats
}

/** A writer in this process. */
async function writer(nats: Nats, options = {}): Promise<TestServer> {
  const server = await openTestServer({ role: 'writer', bus: nats.url }, options)
  cleanups.push(() => server.remove())
  return server
}

async function writerProcess(nats: Nats, dataDir = temporaryFolder()): Promise<ServerProcess> {
  const server = await spawnServer({ role: 'writer', bus: nats.url }, dataDir)
  cleanups.push(() => server.kill())
  return server
}

/** Pushes a token, and trades of it until it is ended. Each push is answered before the next. */
function pushing(client: Client): { end(): Promise<number> } {
  let isOver = false
  const work = (async () => {
    const mint = MINTS[0]
    await client.push({ type: 'token', mint, ts: Date.now(), name: 'One', symbol: 'ONE' })
    let count = 1
    while (!isOver) {
      const ts = Date.now()
      const trades = Array.from({ length: 20 }, (_, index) => ({
        ...{
          type: 'trade',
          mint,
          ts,
          side: 'buy',
          tokenAmount: 1,
          priceUsd: 1 + index,
          wallet: 'w'.repeat(40),
        },
      }))
      await client.push(...trades)
      count += trades.length
    }
    return count
  })()
  work.catch(() => {})
  return {
    end: () => {
      isOver = true
      return work
    },
  }
}

/** A copy of a folder whose server was killed or is frozen: as a moved disk has it. */
function copyOf(dataDir: string): string {
  const copy = temporaryFolder()
  cpSync(dataDir, copy, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('server.lock'),
  })
  cleanups.push(async () => rmSync(copy, { recursive: true, force: true }))
  return copy
}

/** Starts the program and waits for its end. */
async function endOf(settings: Settings, dataDir: string): Promise<{ code: number | null; errors: string }> {
  const { exited, errorLines } = launchServer(settings, dataDir)
  return { code: await exited, errors: errorLines.join('\n') }
}

/** The folder of a writer that was given a wrong one. */
function strangersFolder(): string {
  const folder = temporaryFolder()
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const health = async (client: Client) => (await client.get('/health')).body

/** Waits until the bus has everything that is recorded. @returns the messages of the stream */
async function whenPublished(nats: Nats, client: Client): Promise<BusMessage[]> {
  // Batches of the journal are collected for 50 ms.
  await new Promise((resolve) => setTimeout(resolve, 200))
  await eventually(async () => {
    const { cluster } = await health(client)
    return cluster.reasons.length === 0 && cluster.behindEvents === 0 ? true : null
  })
  const bus = await connect(nats.url)
  try {
    return await readStream(bus)
  } finally {
    await bus.close()
  }
}

describe.skipIf(!hasNats)(`a writer on the bus, with faults${skipped}`, () => {
  it('begins the stream anew when NATS has lost its data, with a checkpoint before it', async () => {
    const nats = await natsServer()
    const server = await writer(nats)
    const { client } = server
    const load = pushing(client)
    await eventually(async () => ((await health(client)).cluster.publishedEventNo > 500 ? true : null))
    await server.checkpoint()
    await nats.start({ keepData: false })
    await eventually(async () => ((await health(client)).cluster.connects > 1 ? true : null))
    const pushed = await load.end()
    const { first, last } = eventNumbersOf(batchesOf(await whenPublished(nats, client)))
    const { checkpoints } = await eventually(async () => {
      const { cluster } = await health(client)
      return cluster.checkpoints.uploadedEventNo > 0 ? cluster : null
    })
    expect(last).toBe(pushed + 1)
    expect(first).toBeLessThanOrEqual(checkpoints.uploadedEventNo + 1)
  })

  it('reads back from the journal what did not fit into memory', async () => {
    const nats = await natsServer()
    const { client } = await writer(nats, { tuning: { busWaitingBytesMax: 10_000 } })
    await nats.kill()
    const load = pushing(client)
    await eventually(async () => ((await health(client)).cluster.writtenEventNo > 10_000 ? true : null))
    const { cluster, recording } = await health(client)
    expect(cluster.waitingBytes).toBeLessThan(recording.journal.bytes / 2)
    await nats.start()
    await eventually(async () => ((await health(client)).cluster.publishedEventNo > 10_000 ? true : null))
    const pushed = await load.end()
    const { first, last } = eventNumbersOf(batchesOf(await whenPublished(nats, client)))
    expect([first, last]).toEqual([1, pushed + 1])
  })

  it('cuts a large batch into parts', async () => {
    const nats = await natsServer()
    const { client } = await writer(nats)
    const [mint, ts] = [MINTS[0], Date.now()]
    await client.push({ type: 'token', mint, ts, name: 'One', symbol: 'ONE' })
    const trades = Array.from({ length: 4_000 }, (_, index) => ({
      ...{ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 + index },
      ...{ wallet: `${index}`.repeat(12), tx: 'tx'.repeat(100) },
    }))
    await client.push(...trades)
    const messages = await whenPublished(nats, client)
    expect(eventNumbersOf(batchesOf(messages))).toEqual({ first: 1, last: 4_002 })
    expect(Math.max(...messages.map(({ parts }) => parts))).toBeGreaterThan(1)
  })

  it('refuses to start beside a living writer, and one that returns is stopped by its successor', async () => {
    const nats = await natsServer()
    const first = await writerProcess(nats)
    const load = pushing(first.client)
    await eventually(async () => ((await health(first.client)).cluster.publishedEventNo > 200 ? true : null))
    await load.end()
    const folder = copyOf(first.dataDir)
    const ending = await endOf({ role: 'writer', bus: nats.url }, folder)
    expect(ending).toMatchObject({ code: 1 })
    expect(ending.errors).toContain('another writer publishes on the bus')
    expect((await health(first.client)).cluster.reasons).toEqual([])

    const thaw = freeze(first)
    // It reaches the frozen process before another one takes over, and must not be answered afterwards.
    const asked = first.client.post('/api/v1/keys/register', { name: 'late' }).catch(() => null)
    await new Promise((resolve) => setTimeout(resolve, 500))
    const second = await writerProcess(nats, copyOf(first.dataDir))
    const more = pushing(second.client)
    await eventually(async () => ((await health(second.client)).cluster.messages > 20 ? true : null))
    const exited = once(first.process, 'exit')
    thaw()
    expect((await exited)[0]).toBe(1)
    expect(await asked).toBe(null)
    await more.end()
    eventNumbersOf(batchesOf(await whenPublished(nats, second.client)))
  })

  it('refuses to start beside a living writer of another data folder', async () => {
    const nats = await natsServer()
    const first = await writerProcess(nats)
    const stranger = launchServer({ role: 'writer', bus: nats.url }, strangersFolder())
    const client = await stranger.listening
    // It may listen before it knows, and is not ready then and acknowledges nothing.
    const [ready, asked] = await Promise.all([
      client.get('/readyz').catch(() => null),
      client.post('/api/v1/keys/register', { name: 'lost' }).catch(() => null),
    ])
    expect([ready?.status ?? 503, asked?.status ?? 503]).toEqual([503, 503])
    expect(await stranger.exited).toBe(1)
    expect(stranger.errorLines.join('\n')).toContain('a writer with another data folder publishes on the bus')
    const messages = await whenPublished(nats, first.client)
    expect(new Set(messages.map(({ runId }) => runId)).size).toBe(1)
  })

  it('ends as soon as it reaches the bus, where a writer of another data folder publishes', async () => {
    const nats = await natsServer()
    await writerProcess(nats)
    const way = await startProxy(nats.port)
    cleanups.push(() => way.close())
    way.cut()
    const stranger = launchServer({ role: 'writer', bus: way.url }, strangersFolder())
    await (await stranger.listening).register('nobody else can be known')
    way.heal()
    expect(await stranger.exited).toBe(1)
  })

  it('publishes and acknowledges nothing where the stream is of another data folder, and says so', async () => {
    const nats = await natsServer()
    const first = await writerProcess(nats)
    const thaw = freeze(first)
    const stranger = launchServer({ role: 'writer', bus: nats.url }, strangersFolder())
    cleanups.push(() => stranger.kill())
    const client = await stranger.listening
    await eventually(async () => {
      const { reasons } = (await health(client)).cluster
      return reasons.join().includes('the stream on the bus belongs to another data folder') ? true : null
    })
    expect((await client.get('/api/v1/market')).status).toBe(200)
    const refused = await client.post('/api/v1/keys/register', { name: 'lost' })
    expect(refused.body).toMatchObject({ status: 503, code: 'store_unavailable' })
    expect(refused.body.detail).toContain('belongs to another writer')
    expect(refused.body).not.toHaveProperty('mayBeStored')
    expect((await health(client)).reasons.join()).toContain('submissions and changes of accounts are refused')
    thaw()
    expect(await stranger.exited).toBe(1)
    const messages = await whenPublished(nats, first.client)
    expect(new Set(messages.map(({ runId }) => runId)).size).toBe(1)
  })

  it('begins the stream anew where it has events that the journal lacks', async () => {
    const nats = await natsServer()
    const first = await writerProcess(nats)
    const load = pushing(first.client)
    await eventually(async () => ((await health(first.client)).cluster.publishedEventNo > 200 ? true : null))
    await load.end()
    const { publishedEventNo } = await eventually(async () => {
      const { cluster } = await health(first.client)
      return cluster.checkpoints.uploadedEventNo > 0 ? cluster : null
    })
    const older = copyOf(first.dataDir)
    const more = pushing(first.client)
    await eventually(async () =>
      (await health(first.client)).cluster.publishedEventNo > publishedEventNo + 2_000 ? true : null,
    )
    await more.end()
    await whenPublished(nats, first.client)
    const lost = (await health(first.client)).cluster.publishedEventNo
    await first.kill()
    const { client } = await writerProcess(nats, older)
    const messages = await whenPublished(nats, client)
    const { last } = eventNumbersOf(batchesOf(messages))
    expect(last).toBeLessThan(lost)
    // Readers that have events of the other run learn it from each message.
    expect(new Set(messages.map(({ runEventNo }) => runEventNo))).toEqual(new Set([1]))
    expect(new Set(messages.map(({ runId }) => runId)).size).toBe(1)
  })

  it('is followed by a standby when it ends, which acknowledges nothing without the bus', async () => {
    const nats = await natsServer()
    const first = await writerProcess(nats)
    const settings = { role: 'standby', bus: nats.url }
    const standby = launchServer(settings, first.dataDir, {})
    cleanups.push(() => standby.kill())
    const load = pushing(first.client)
    await eventually(async () => ((await health(first.client)).cluster.publishedEventNo > 200 ? true : null))
    await load.end()
    const key = await first.client.register('before')
    await first.kill()
    const client = await standby.listening
    await eventually(async () => ((await client.get('/readyz')).status === 200 ? true : null))
    const me = await client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })
    expect(me.status).toBe(200)
    const more = pushing(client)
    await eventually(async () => ((await health(client)).cluster.messages > 20 ? true : null))
    await more.end()
    expect(eventNumbersOf(batchesOf(await whenPublished(nats, client))).first).toBe(1)
    await client.register('after')

    await nats.kill()
    await eventually(async () => ((await health(client)).cluster.reasons.length > 0 ? true : null))
    // For a moment after the last message was taken no other writer can have begun.
    const refused = await eventually(async () => {
      const answer = await client.post('/api/v1/keys/register', { name: 'nobody knows' })
      return answer.status === 503 ? answer : null
    })
    expect(refused.body.mayBeStored).toBeUndefined()
    expect((await health(client)).reasons).toContain(
      'submissions and changes of accounts are refused, where that lasts for 5 s: the bus does not confirm this writer, and another one may have taken over',
    )
    // Reads are answered.
    expect((await client.get('/readyz')).status).toBe(200)
    await nats.start()
    await eventually(async () => ((await health(client)).cluster.reasons.length === 0 ? true : null))
    await client.register('again')
  })
})
