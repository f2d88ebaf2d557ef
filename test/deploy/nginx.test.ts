// The shipped configuration of nginx, with Debian's nginx and real TLS before the real server.

import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { get as getPlain, type IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { hasNginx, type Nginx, PROXY_NAME, startNginx } from '../support/nginx.ts'
import { newMint, seedToken, submission } from '../support/submission.ts'
import {
  ADMIN_KEY,
  FEED_KEY,
  type ServerProcess,
  spawnServer,
  temporaryFolder,
} from '../support/test-server.ts'

const START = new URL('../../scripts/start.mjs', import.meta.url).pathname
const READS_MAX = 40
const admin = { Authorization: `Bearer ${ADMIN_KEY}` }

describe.skipIf(!hasNginx())('behind nginx (needs nginx and openssl)', () => {
  let server: ServerProcess
  let nginx: Nginx
  let agent: Agent
  const folder = temporaryFolder()

  beforeAll(async () => {
    server = await spawnServer(
      { 'trusted-proxies': '127.0.0.1,::1', 'read-limit-anonymous': `${READS_MAX}`, 'lake-flush-ms': '200' },
      join(folder, 'data'),
      {},
      [],
      [START],
    )
    nginx = await startNginx(folder, new URL(server.client.url).host)
    agent = new Agent({ ca: nginx.ca, keepAlive: true })
  })
  afterAll(async () => {
    agent?.destroy()
    await nginx?.stop()
    await server?.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  interface Sent {
    method?: string
    headers?: Record<string, string>
    body?: string | Buffer
    /** The client's own address: every address of 127.0.0.0/8 is this machine. */
    from?: string
  }

  /** Sends a request over TLS. Resolves with the answer once its headers are there. */
  async function open(
    path: string,
    { method = 'GET', headers = {}, body, from }: Sent = {},
  ): Promise<IncomingMessage> {
    const sent = request({
      host: '127.0.0.1',
      port: nginx.port,
      servername: PROXY_NAME,
      path,
      method,
      headers: { Host: PROXY_NAME, ...headers },
      agent: from === undefined ? agent : new Agent({ ca: nginx.ca }),
      ...(from !== undefined && { localAddress: from }),
    })
    sent.end(body)
    const [answer] = await once(sent, 'response')
    return answer
  }
  async function send(path: string, sent: Sent = {}) {
    const answer = await open(path, sent)
    const body = await text(answer)
    return { status: answer.statusCode, headers: answer.headers, text: body }
  }
  const post = (path: string, key: string, body: object, headers: Record<string, string> = {}) =>
    send(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}`, ...headers },
    })

  it('answers a page over HTTP/1.1 and HTTP/2, as the server itself does', async () => {
    const mint = await seedToken(server.client, Date.now())
    const page = await send(`/api/v1/datapoint?mint=${mint}`)
    expect(page.status, page.text).toBe(200)
    expect(JSON.parse(page.text).data.mint).toBe(mint)
    const current = await send(`/api/v1/datapoint?mint=${mint}`, {
      headers: { 'If-None-Match': String(page.headers.etag) },
    })
    expect(current.status).toBe(304)

    const session = connectHttp2(`https://127.0.0.1:${nginx.port}`, { ca: nginx.ca, servername: PROXY_NAME })
    try {
      const stream = session.request({ ':path': `/api/v1/datapoint?mint=${mint}` })
      const [headers] = await once(stream, 'response')
      expect(headers[':status']).toBe(200)
      expect(JSON.parse(await text(stream)).data.mint).toBe(mint)
    } finally {
      session.close()
    }
  })

  it('sends plain HTTP to HTTPS', async () => {
    const [answer] = await once(
      getPlain({
        host: '127.0.0.1',
        port: nginx.plainPort,
        path: '/health?a=1',
        headers: { Host: PROXY_NAME },
      }),
      'response',
    )
    answer.resume()
    expect(answer.statusCode).toBe(308)
    expect(answer.headers.location).toBe(`https://${PROXY_NAME}/health?a=1`)
  })

  it('passes each line of a follow stream on as it comes', async () => {
    const answer = await open('/api/v1/market?format=ndjson&follow=1&limit=1')
    const lines = createInterface({ input: answer })[Symbol.asyncIterator]()
    for (let round = 0; round < 3; round++) {
      const mint = await seedToken(server.client, Date.now())
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error('the stream ended')
        if (JSON.parse(value).mint === mint) break
      }
    }
    answer.destroy()
  })

  it('lets a WebSocket through', async () => {
    const socket = new WebSocket(`wss://127.0.0.1:${nginx.port}/api/v1/stream`, [], {
      agent,
      headers: { Host: PROXY_NAME },
    })
    try {
      await once(socket, 'open')
      const messages: string[] = []
      const { promise: arrived, resolve } = Promise.withResolvers<void>()
      const mint = newMint()
      socket.on('message', (data) => {
        messages.push(String(data))
        if (messages.some((message) => message.includes(mint))) resolve()
      })
      socket.send(JSON.stringify({ op: 'subscribe', topic: 'market', tab: 'all' }))
      await server.client.push({ type: 'token', mint, ts: Date.now(), name: 'Through', symbol: 'THROUGH' })
      await arrived
    } finally {
      socket.terminate()
    }
  })

  it('takes submissions, and bodies as large as a feed may send', async () => {
    const mint = await seedToken(server.client, Date.now())
    const key = await server.client.register()
    const first = await post('/api/v1/analysis/submit', key, submission(mint), { 'Idempotency-Key': 'one' })
    expect(first.status, first.text).toBe(201)
    const again = await post('/api/v1/analysis/submit', key, submission(mint), { 'Idempotency-Key': 'one' })
    expect(again.headers['idempotency-replayed'], again.text).toBe('true')
    expect(JSON.parse(again.text).analysisId).toBe(JSON.parse(first.text).analysisId)

    const line = JSON.stringify({ type: 'patch', mint, ts: Date.now(), fields: { holderCount: 200 } })
    const body = `${line}\n`.repeat(Math.ceil((3 * 1024 * 1024) / line.length))
    const pushed = await send('/api/v1/ingest', {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` },
    })
    expect(pushed.status, pushed.text).toBe(200)
  })

  it('passes large headers', async () => {
    const answer = await send('/api/v1/xp', { headers: { Cookie: `a=${'x'.repeat(12_000)}` } })
    expect(answer.status, answer.text).toBe(200)
  })

  it('counts each client by its own address, whatever the client says it is', async () => {
    const remaining = async (from: string, claimed?: string): Promise<number> => {
      const headers: Record<string, string> = claimed === undefined ? {} : { 'X-Forwarded-For': claimed }
      const answer = await send('/api/v1/market?limit=1', { from, headers })
      return Number(answer.headers['x-ratelimit-remaining'])
    }
    expect(await remaining('127.0.0.2')).toBe(READS_MAX - 1)
    expect(await remaining('127.0.0.2')).toBe(READS_MAX - 2)
    expect(await remaining('127.0.0.3')).toBe(READS_MAX - 1)
    expect(await remaining('127.0.0.2', '9.9.9.9')).toBe(READS_MAX - 3)
  })

  it('keeps the operator’s addresses for this machine', async () => {
    for (const path of ['/api/v1/admin/agents', '/metrics']) {
      expect((await send(path, { headers: admin })).status, path).toBe(200)
      expect((await send(path, { headers: admin, from: '127.0.0.2' })).status, path).toBe(403)
    }
  })

  it('passes ranges of the lake’s files', async ({ skip }) => {
    const catalog = await send('/api/v1/lake/catalog', { headers: admin })
    skip(catalog.status === 404, 'the server has no lake files to download')
    const [file] = JSON.parse(catalog.text).data.tables.flatMap(({ files }: { files: unknown[] }) => files)
    skip(file === undefined, 'the lake is empty')
    const part = await send(file.path, { headers: { ...admin, Range: 'bytes=0-3' } })
    expect(part.status).toBe(206)
    expect(part.headers['content-range']).toBe(`bytes 0-3/${file.bytes}`)
    expect(part.text).toBe('PAR1')
  })

  it('answers for a server that is away with an error that agents understand', async () => {
    await server.kill()
    const answer = await post('/api/v1/analysis/submit', 'any', submission(newMint()))
    expect(answer.status).toBe(503)
    expect(answer.headers['content-type']).toBe('application/problem+json')
    expect(answer.headers['retry-after']).toBe('5')
    expect(JSON.parse(answer.text)).toMatchObject({ ok: false, code: 'store_unavailable', mayBeStored: true })
  })
})
