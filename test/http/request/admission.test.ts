// What a request can cost before its client is known: headers decide, and bodies are bounded in memory and time.
import { rmSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import {
  BODIES_BYTES_MAX,
  BODY_BYTES_CHARGED_MIN,
  BODY_BYTES_MAX,
  CLIENT_BODIES_BYTES_MAX,
  OPERATOR_BODIES_BYTES_MAX,
} from '../../../src/http/limits.ts'
import { INGEST_BODY_BYTES_MAX } from '../../../src/schema/media-types.ts'
import { RawSocket } from '../../support/raw-socket.ts'
import { newMint, seedToken, submission } from '../../support/submission.ts'
import {
  ADMIN_KEY,
  FEED_KEY,
  openTestServer,
  type TestServer,
  temporaryFolder,
} from '../../support/test-server.ts'

let server: TestServer
const sockets: RawSocket[] = []
beforeAll(async () => {
  server = await openTestServer({ 'trusted-proxies': '127.0.0.1' })
})
afterAll(() => server.remove())
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.close()
  await untilHeld(0)
})

function open(): RawSocket {
  const socket = new RawSocket(server.url)
  sockets.push(socket)
  return socket
}

const headOf = (path: string, headers: Record<string, string | number>, method = 'POST'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
const JSON_BODY = { 'Content-Type': 'application/json' }
const NDJSON_BODY = { 'Content-Type': 'application/x-ndjson' }
const CHUNKED = { 'Transfer-Encoding': 'chunked' }
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
const from = (address: string) => ({ 'X-Forwarded-For': address })

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5))
}
const untilHeld = (bytes: number) => until(() => server.http.bodyBytes() === bytes)
const untilFull = (bytes: number) => until(() => server.http.bodyBytes() > bytes - BODY_BYTES_CHARGED_MIN)

describe('a request whose headers have arrived', () => {
  it.each([
    ['a push without a key', '/api/v1/ingest', NDJSON_BODY, 401],
    ['a push with another key', '/api/v1/ingest', { ...NDJSON_BODY, ...bearer('no') }, 401],
    ['a push of a type that is not taken', '/api/v1/ingest', { 'Content-Type': 'text/plain' }, 415],
    ['a submission without a key', '/api/v1/analysis/submit', JSON_BODY, 401],
    ['an operator’s request without a key', '/api/v1/admin/ban', JSON_BODY, 401],
    ['a request to an unknown path', '/api/v1/nothing', JSON_BODY, 404],
  ])(
    'is refused before its body if it is %s, and the next request is answered',
    async (_, path, headers, status) => {
      const socket = open()
      await socket.write(headOf(path, { ...headers, 'Content-Length': 50_000 }))
      expect(await socket.answers(1)).toEqual([status])
      expect(server.http.bodyBytes()).toBe(0)
      await socket.write('x'.repeat(50_000) + headOf('/api/v1/xp', {}, 'GET'))
      expect(await socket.answers(2)).toEqual([status, 200])
    },
  )

  it.each([
    ['/api/v1/ingest', { ...NDJSON_BODY, ...bearer(FEED_KEY) }, INGEST_BODY_BYTES_MAX],
    ['/api/v1/datapoint/batch', JSON_BODY, BODY_BYTES_MAX],
  ])('is refused if it announces a body for %s above the maximum', async (path, headers, bytesMax) => {
    const socket = open()
    await socket.write(headOf(path, { ...headers, 'Content-Length': bytesMax + 1 }))
    expect(await socket.answers(1)).toEqual([413])
  })

  it('is refused if it is a push and pushing is disabled', async () => {
    const dataDir = temporaryFolder()
    const words = ['--port', '0', '--feed', 'none', '--log-level', 'warn', '--drain-notice-ms', '0']
    const closed = await startApp(readConfig([...words, '--data-dir', dataDir], {}))
    const socket = new RawSocket(closed.url)
    await socket.write(headOf('/api/v1/ingest', { ...NDJSON_BODY, ...CHUNKED }))
    expect(await socket.answers(1)).toEqual([404])
    socket.close()
    await closed.stop()
    rmSync(dataDir, { recursive: true })
  })

  it('counts against the limits of registrations and reads before its body has arrived', async () => {
    const limited = await openTestServer({ 'register-limit': '1', 'read-limit-anonymous': '1' })
    for (const path of ['/api/v1/keys/register', '/api/v1/datapoint/batch']) {
      const [first, second] = [new RawSocket(limited.url), new RawSocket(limited.url)]
      await first.write(headOf(path, { ...JSON_BODY, 'Content-Length': 10 }))
      await until(() => limited.http.bodyBytes() > 0)
      await second.write(headOf(path, { ...JSON_BODY, 'Content-Length': 10 }))
      expect(await second.answers(1)).toEqual([429])
      first.close()
      second.close()
      await until(() => limited.http.bodyBytes() === 0)
    }
    await limited.remove()
  })

  it('is answered only after its body if the client asked to close the connection', async () => {
    for (const framing of [{ 'Content-Length': 9 }, CHUNKED]) {
      const socket = open()
      await socket.write(headOf('/api/v1/analysis/submit', { ...JSON_BODY, ...framing, Connection: 'close' }))
      await socket.write('Content-Length' in framing ? '{"a":' : '5\r\n{"a":\r\n')
      await server.client.get('/readyz')
      expect(socket.text).toBe('')
      await socket.write('Content-Length' in framing ? '123}' : '4\r\n123}\r\n0\r\n\r\n')
      await socket.until(() => false)
      expect([socket.statuses, socket.ended]).toEqual([[401], 'end'])
    }
  })
})

describe('a body', () => {
  it('costs memory for its bytes only, even if each chunk holds a single byte', async () => {
    const socket = open()
    const bytes = 40_000
    await socket.write(headOf('/api/v1/datapoint/batch', { ...JSON_BODY, ...CHUNKED }))
    await socket.write('1\r\n \r\n'.repeat(bytes))
    await until(() => server.http.bodyBytes() >= bytes)
    expect(server.http.bodyBytes()).toBeLessThanOrEqual(2 * bytes)
    const text = JSON.stringify({ mints: [newMint()] })
    await socket.write(`${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`)
    expect(await socket.answers(1)).toEqual([200])
    await untilHeld(0)
  })

  it('is read the same however it is divided into chunks', async () => {
    const mint = await seedToken(server.client, Date.now())
    const body = Buffer.from(JSON.stringify(submission(mint, { pad: 'é'.repeat(9_000) })))
    for (const pieceBytes of [1_000, 4_096, 5_000, body.length]) {
      const key = await server.client.register()
      const socket = open()
      const framing = pieceBytes === 5_000 ? CHUNKED : { 'Content-Length': body.length }
      await socket.write(headOf('/api/v1/analysis/submit', { ...JSON_BODY, ...bearer(key), ...framing }))
      for (let at = 0; at < body.length; at += pieceBytes) {
        const piece = body.subarray(at, at + pieceBytes)
        if (framing === CHUNKED) await socket.write(`${piece.length.toString(16)}\r\n`)
        await socket.write(piece)
        if (framing === CHUNKED) await socket.write('\r\n')
      }
      if (framing === CHUNKED) await socket.write('0\r\n\r\n')
      expect(await socket.answers(1)).toEqual([201])
    }
  })

  it('times out when it stalls, and its memory is released', async () => {
    const hasty = await openTestServer({}, { tuning: { bodyMsMax: 300 } })
    for (const sent of ['', 'x'.repeat(20_000)]) {
      const socket = new RawSocket(hasty.url)
      await socket.write(headOf('/api/v1/keys/register', { ...JSON_BODY, 'Content-Length': 50_000 }) + sent)
      await socket.until(() => socket.text.includes('"code":"body_timeout"'))
      expect(socket.statuses).toEqual([408])
      expect(hasty.http.bodyBytes()).toBe(0)
      socket.close()
    }
    await hasty.remove()
  })

  it('releases its memory when its sender disconnects', async () => {
    const socket = open()
    await socket.write(headOf('/api/v1/keys/register', { ...JSON_BODY, 'Content-Length': 50_000 }))
    await untilHeld(BODY_BYTES_CHARGED_MIN)
    socket.close()
    await untilHeld(0)
  })
})

describe('the memory for bodies being received', () => {
  /** Connections that have each sent most of a body. */
  async function hold(count: number, path: string, headers: object, bytes: number) {
    const held = Array.from({ length: count }, open)
    await Promise.all(
      held.map((socket) =>
        socket.write(headOf(path, { ...headers, 'Content-Length': bytes }) + 'x'.repeat(bytes - 1)),
      ),
    )
    return held
  }
  const FULL = BODY_BYTES_MAX

  it('is bounded for each client, so that others are served', async () => {
    const room = CLIENT_BODIES_BYTES_MAX / FULL
    const held = await hold(room, '/api/v1/keys/register', { ...JSON_BODY, ...from('203.0.113.7') }, FULL)
    await untilFull(CLIENT_BODIES_BYTES_MAX)
    const more = open()
    await more.write(
      headOf('/api/v1/keys/register', { ...JSON_BODY, ...from('203.0.113.7'), 'Content-Length': 9 }),
    )
    expect(await more.answers(1)).toEqual([503])
    expect(more.text).toContain('"code":"overloaded"')
    expect(more.text).toContain('Retry-After: 1')
    expect((await server.client.post('/api/v1/keys/register', { name: 'other' })).status).toBe(201)
    expect(held.every(({ text }) => text === '')).toBe(true)
  })

  it('is bounded for all clients together, so that feeds and operators are served', async () => {
    const clients = BODIES_BYTES_MAX / CLIENT_BODIES_BYTES_MAX
    for (let client = 0; client < clients; client++) {
      const headers = { ...JSON_BODY, ...from(`203.0.113.${client}`) }
      await hold(CLIENT_BODIES_BYTES_MAX / FULL, '/api/v1/keys/register', headers, FULL)
    }
    await untilFull(BODIES_BYTES_MAX)
    const refused = await server.client.post('/api/v1/datapoint/batch', { mints: [newMint()] })
    expect([refused.status, refused.body.code]).toEqual([503, 'overloaded'])
    await server.client.push({ type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' })
    expect((await server.client.post('/api/v1/admin/keys', { name: 'n' }, ADMIN_KEY)).status).toBe(201)
  })

  it('is bounded for feeds, so that clients are served', async () => {
    const headers = { ...NDJSON_BODY, ...bearer(FEED_KEY) }
    await hold(
      OPERATOR_BODIES_BYTES_MAX / INGEST_BODY_BYTES_MAX,
      '/api/v1/ingest',
      headers,
      INGEST_BODY_BYTES_MAX,
    )
    await untilFull(OPERATOR_BODIES_BYTES_MAX)
    const more = open()
    await more.write(headOf('/api/v1/ingest', { ...headers, 'Content-Length': 9 }))
    expect(await more.answers(1)).toEqual([503])
    expect((await server.client.post('/api/v1/keys/register', { name: 'other' })).status).toBe(201)
  })
})
