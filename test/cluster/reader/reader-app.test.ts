// A reader as its clients see it, on the real nats-server, beside a writer that does what the test tells it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AccountPublisher } from '../../../src/cluster/accounts/account-publisher.ts'
import { type ReaderApp, startReader } from '../../../src/cluster/reader/reader-app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { MINTS } from '../../checkpoint/support.ts'
import { Client } from '../../support/test-server.ts'
import { type BusProxy, hasNats, type Nats, skipped, startNats, startProxy } from '../support.ts'
import { ScriptedWriter } from './scripted-writer.ts'

const WAIT = { timeout: 20_000 }
const log = createLog('warn')
log.level = 'silent'

describe.skipIf(!hasNats)(`a reader${skipped}`, () => {
  let nats: Nats
  let proxy: BusProxy
  let writer: ScriptedWriter
  let accounts: AccountPublisher
  let ticking: NodeJS.Timeout | null
  const readers: ReaderApp[] = []

  beforeEach(async () => {
    nats = await startNats()
    proxy = await startProxy(nats.port)
    writer = await ScriptedWriter.connect(nats.url)
    accounts = new AccountPublisher(writer.bus, { agentIds: () => [], account: () => null }, 1, log)
    writer.begin('empty')
    writer.some(3)
    await writer.publish()
    ticking = null
  })
  afterEach(async () => {
    stopTicking()
    await Promise.all(readers.splice(0).map((reader) => reader.stop()))
    await accounts.stop()
    await writer.bus.close()
    await proxy.close()
    await nats.remove()
  })

  /** The writer tells the time, as it does in service. */
  function startTicking(forMs = 1): void {
    ticking ??= setInterval(() => void writer.tick(forMs).catch(() => undefined), 50)
  }
  function stopTicking(): void {
    if (ticking !== null) clearInterval(ticking)
    ticking = null
  }

  async function startTestReader(
    settings: Record<string, string> = {},
  ): Promise<ReaderApp & { client: Client }> {
    const all = {
      ...{
        role: 'reader',
        bus: proxy.url,
        'bus-name': 'test',
        port: '0',
        reader: 'lag-max-ms=1000',
        'log-level': 'warn',
      },
      ...{ 'read-limit-anonymous': '0', 'page-age-ms': '0', 'drain-notice-ms': '0', ...settings },
    }
    const flags = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])
    const reader = await startReader(readConfig(flags, {}), { log })
    readers.push(reader)
    return { ...reader, client: new Client(reader.url) }
  }

  const lagOf = async (client: Client): Promise<number> =>
    Number((await client.get(`/api/v1/datapoint?mint=${MINTS[0]}`)).headers.get('x-lag-ms'))
  const ready = async (client: Client) => (await client.get('/readyz')).status

  it('listens at once, says why it is not ready, and then serves what the writer has', async () => {
    await nats.kill()
    const { client, ready: whenReady } = await startTestReader()
    expect((await client.get('/api/v1/market')).body).toMatchObject({ code: 'warming_up', status: 503 })
    expect((await client.get('/readyz')).body.error).toMatch(/^This reader is not connected/)
    await nats.start()
    await whenReady
    const page = await client.get('/api/v1/market?format=ndjson')
    expect(page.text).toBe(
      writer.market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 50 }).ndjson.toString(),
    )
    const { cluster, status } = (await client.get('/health')).body
    expect(cluster).toMatchObject({
      role: 'reader',
      state: 'following',
      eventNo: writer.eventNo,
      connected: true,
    })
    expect(['ready', 'degraded']).toContain(status)
    expect((await client.get('/metrics')).text).toMatch(/mintlake_cluster_event_no [1-9]/)
  })

  it('that has never had a market says that it shows none, not an older one', async () => {
    await nats.start({ keepData: false })
    const { client } = await startTestReader()
    const reasonsOf = async (): Promise<string[]> => (await client.get('/health')).body.reasons
    await expect
      .poll(reasonsOf, WAIT)
      .toEqual([
        'NATS has no events: no writer has begun since it has none',
        'this reader has no market to show yet',
      ])
    proxy.cut()
    await expect
      .poll(reasonsOf, WAIT)
      .toEqual(['the connection to the bus is lost: this reader has no market to show yet'])
    expect(await ready(client)).toBe(503)
  })

  it('that never reaches the bus says so, and stops at once', { tags: 'drill' }, async () => {
    await nats.kill()
    const reader = await startTestReader()
    const { status, body } = await reader.client.get('/readyz')
    expect(status).toBe(503)
    expect(JSON.stringify(body)).toContain('not connected')
    const startedMs = performance.now()
    await reader.stop()
    expect(performance.now() - startedMs).toBeLessThan(10_000)
  })

  it('says that the market is made up where the writer says so', async () => {
    writer.simulated = true
    writer.some(1)
    await writer.publish()
    startTicking()
    const reader = await startTestReader()
    await reader.ready
    await expect.poll(async () => (await reader.client.get('/health')).body.simulated, WAIT).toBe(true)
  })

  it('two of them give the same bytes, ETags and positions; cached answers tell the lag too', {
    tags: 'drill',
  }, async () => {
    startTicking()
    const [a, b] = await Promise.all([startTestReader({ 'page-age-ms': '200' }), startTestReader()])
    await Promise.all([a.ready, b.ready])
    stopTicking()
    await expect
      .poll(() => [a.market.timeMs, b.market.timeMs], WAIT)
      .toEqual([writer.market.timeMs, writer.market.timeMs])
    for (const path of [
      '/api/v1/market?limit=3&sort=market_cap',
      '/api/v1/market?format=ndjson',
      '/api/v1/market?format=msgpack&tab=live',
      `/api/v1/datapoint?mint=${MINTS[1]}`,
      `/api/v1/ohlc?mint=${MINTS[1]}&tf=1s`,
      `/api/v1/ohlc?mint=${MINTS[1]}&tf=1m&format=arrow`,
    ]) {
      const [one, again, other] = [
        await a.client.get(path),
        await a.client.get(path),
        await b.client.get(path),
      ]
      expect(one.text).toBe(other.text)
      for (const header of ['etag', 'x-list-version', 'content-type'])
        expect(one.headers.get(header), `${header} of ${path}`).toBe(other.headers.get(header))
      for (const { headers } of [one, again, other]) expect(headers.get('x-lag-ms')).toMatch(/^\d+$/)
      const etag = one.headers.get('etag')!
      expect((await b.client.get(path, { 'If-None-Match': etag })).status).toBe(304)
    }
  })

  it('stays ready while the writer is silent or cannot record, says so, and tells a growing lag', {
    tags: 'drill',
  }, async () => {
    startTicking()
    const { client, ready: whenReady } = await startTestReader()
    await whenReady
    expect(await lagOf(client)).toBeLessThan(1_000)
    stopTicking()
    await expect
      .poll(async () => (await client.get('/health')).body.reasons.join(), WAIT)
      .toContain('the writer is silent since')
    await expect.poll(() => lagOf(client), WAIT).toBeGreaterThan(3_000)
    expect(await ready(client)).toBe(200)
    // It is there, and tells the time of the last event that it could record.
    startTicking(0)
    await expect
      .poll(async () => (await client.get('/health')).body.reasons.join(), WAIT)
      .toMatch(/^the writer tells nothing new since .*: the market stands still$/)
    expect(await lagOf(client)).toBeGreaterThan(3_000)
    expect(await ready(client)).toBe(200)
    // One that begins only now knows from the stream since when.
    const later = await startTestReader()
    await later.ready
    expect(await lagOf(later.client)).toBeGreaterThan(3_000)
    expect((await later.client.get('/health')).body.reasons.join()).toContain('tells nothing new since')
    stopTicking()
    startTicking()
    await expect.poll(async () => (await client.get('/health')).body.status, WAIT).toBe('ready')
    expect(await lagOf(client)).toBeLessThan(1_000)
  })

  it('says that the bus has no events where those were lost and no writer has begun since', {
    tags: 'drill',
  }, async () => {
    const { client, ready: whenReady } = await startTestReader()
    await whenReady
    const { manager, names } = writer.bus
    await manager.streams.delete(names.stream)
    await expect
      .poll(async () => (await client.get('/readyz')).body.error, WAIT)
      .toMatch(/^This reader is .* behind the writer: NATS has no events/)
    expect((await client.get('/health')).body.reasons.join()).toContain('NATS has no events')
  })

  it.each(['cut', 'swallow'] as const)(
    'refuses reads and ends streams where the network is %s, then goes on',
    { tags: 'drill' },
    async (how) => {
      startTicking()
      const { client, ready: whenReady, url } = await startTestReader()
      await whenReady
      const following = await fetch(`${url}/api/v1/market?format=ndjson&follow=1&limit=1`)
      const lines = following.text()
      proxy[how]()
      await expect.poll(() => ready(client), WAIT).toBe(503)
      const refused = await client.get('/api/v1/market')
      expect(refused.body).toMatchObject({ code: 'warming_up', status: 503 })
      expect(refused.body.error).toMatch(/cut off from the bus|behind the writer/)
      expect((await lines).trimEnd().split('\n').at(-1)).toContain('"event":"bye","reason":"behind"')
      writer.some(2)
      await writer.publish()
      proxy.heal()
      await expect.poll(() => ready(client), WAIT).toBe(200)
      expect((await client.get('/health')).body.cluster).toMatchObject({ restored: 0, state: 'following' })
      expect(await lagOf(client)).toBeLessThan(1_000)
    },
  )

  it('a follower through a restored checkpoint gets resync, and cursors of before have expired', {
    tags: 'drill',
  }, async () => {
    startTicking()
    const { ready: whenReady, url, client } = await startTestReader({ reader: 'lag-max-ms=60000' })
    await whenReady
    const { body } = await fetch(`${url}/api/v1/market?format=ndjson&follow=1&limit=1`)
    const lines: string[] = []
    void (async () => {
      for await (const chunk of body!.pipeThrough(new TextDecoderStream())) lines.push(...chunk.split('\n'))
    })().catch(() => undefined)
    await expect.poll(() => lines.join()).toContain('heartbeat')
    const page = (await client.get('/api/v1/market?limit=3')).body
    const next = `/api/v1/market?limit=3&cursor=${page.meta.nextCursor}`
    expect((await client.get(next)).status).toBe(200)
    proxy.cut()
    stopTicking()
    writer.some(2)
    await writer.publish()
    await writer.bus.manager.streams.purge(writer.bus.names.stream)
    await writer.upload()
    writer.some(1)
    await writer.publish()
    proxy.heal()
    startTicking()
    await expect.poll(() => lines.join(), WAIT).toContain('{"event":"resync"}')
    await expect
      .poll(() => lines.filter((line) => line.startsWith('{"mint"')).length)
      .toBeGreaterThan(MINTS.length)
    expect((await client.get('/health')).body.cluster.restored).toBe(1)
    expect((await client.get(next)).body.code).toBe('cursor_expired')
  })

  it('waits for a position that a client has from another node, else says 503', {
    tags: 'drill',
  }, async () => {
    startTicking()
    const { ready: whenReady, client, url } = await startTestReader()
    await whenReady
    const path = '/api/v1/market?format=ndjson&follow=1&since='
    const refused = await client.get(`${path}${writer.market.seq + 1_000}`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    stopTicking()
    writer.some(1)
    const messages = writer.take()
    const since = writer.market.seq
    const following = fetch(`${url}${path}${since}`)
    await new Promise((resolve) => setTimeout(resolve, 300))
    await writer.send(messages)
    const { body, status } = await following
    expect(status).toBe(200)
    const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
    expect(JSON.parse((await reader.read()).value!)).toMatchObject({ event: 'heartbeat', seq: since })
    await reader.cancel()
  })

  it('a subscription to a position ahead begins once it is reached, and one too far ahead is refused', {
    tags: 'drill',
  }, async () => {
    startTicking()
    const { ready: whenReady, url } = await startTestReader()
    await whenReady
    stopTicking()
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/stream`)
    const messages: { event: string; seq?: number; status?: number; id?: string }[] = []
    socket.addEventListener('message', ({ data }) => messages.push(JSON.parse(data)))
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    writer.some(1)
    const sent = writer.take()
    const since = writer.market.seq
    const subscribe = (id: string, from: number) =>
      socket.send(JSON.stringify({ op: 'subscribe', topic: 'market', tab: 'all', since: from, id }))
    subscribe('far', since + 1_000)
    subscribe('near', since)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(messages).toEqual([])
    await writer.send(sent)
    await expect.poll(() => messages.length, WAIT).toBe(2)
    expect(messages[0]).toMatchObject({ event: 'subscribed', id: 'near', seq: since })
    expect(messages[1]).toMatchObject({ event: 'error', id: 'far', status: 503 })
    socket.close()
  })

  it('without a writer what it forwards is 503, and reads go on', { tags: 'drill' }, async () => {
    const { ready: whenReady, client } = await startTestReader()
    await whenReady
    const answer = await client.post('/api/v1/keys/register', { name: 'me' })
    expect(answer.body).toMatchObject({ code: 'store_unavailable', status: 503 })
    expect((await client.get('/api/v1/market')).status).toBe(200)
    expect((await client.get('/openapi.json')).status).toBe(200)
  })
})
