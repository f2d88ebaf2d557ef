// One connection: requests sent before earlier ones are answered, requests that can be read in two ways, errors
// of the HTTP engine itself, and the end of the server.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawSocket } from '../../support/raw-socket.ts'
import { newMint, seedToken, submission } from '../../support/submission.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

const requestOf = (method: string, path: string, headers: Record<string, string>, body = ''): string => {
  const lines = Object.entries({ Host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}
const get = (path: string, headers: Record<string, string> = {}) => requestOf('GET', path, headers)
function post(path: string, body: string, key = '', headers: Record<string, string> = {}): string {
  return requestOf(
    'POST',
    path,
    {
      'Content-Type': 'application/json',
      'Content-Length': `${Buffer.byteLength(body)}`,
      ...(key !== '' && { Authorization: `Bearer ${key}` }),
      ...headers,
    },
    body,
  )
}

describe('on a connection', () => {
  let server: TestServer
  let key: string
  beforeAll(async () => {
    server = await openTestServer()
    key = await server.client.register()
  })
  afterAll(() => server.remove())

  /** Sends packets over a new connection, one after another. */
  async function say(...packets: string[]): Promise<RawSocket> {
    const socket = new RawSocket(server.url)
    for (const packet of packets) await socket.write(packet)
    return socket
  }
  const analysesOf = async (mint: string): Promise<number> =>
    (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).status === 200
      ? ((server.market.item(mint)?.analysis_count as number) ?? 0)
      : Number.NaN

  it('several requests in one packet are answered if each can be answered at once', async () => {
    const socket = await say(get('/api/v1/xp') + get('/api/v1/market') + get('/api/v1/nothing'))
    expect(await socket.answers(3)).toEqual([200, 200, 404])
    socket.close()
  })

  it('a request that arrives while a submission is being stored is answered after it', async () => {
    const mint = await seedToken(server.client, Date.now())
    const body = JSON.stringify(submission(mint))
    const socket = await say(post('/api/v1/analysis/submit', body, key))
    // The server has read the first packet, so the next write is another one.
    while (server.http.inFlight() === 0) await new Promise((resolve) => setImmediate(resolve))
    await socket.write(get('/api/v1/xp'))
    await socket.write(post('/api/v1/analysis/submit', body, key))
    expect(await socket.answers(3)).toEqual([201, 200, 429])
    expect(await analysesOf(mint)).toBe(1)
    socket.close()
  })

  it.each([
    ['a stream', '/api/v1/market?format=ndjson&follow=1', [200]],
    ['a wait for a time', `/api/v1/time?until=${Date.now() + 3_600_000}`, []],
  ])('a request that is sent after %s ends it, and the connection', async (_, path, statuses) => {
    const socket = await say(get(path))
    while (server.http.inFlight() === 0 && socket.statuses.length === 0)
      await new Promise((resolve) => setImmediate(resolve))
    await socket.write(get('/readyz'))
    await socket.until(() => false)
    expect(socket.statuses).toEqual(statuses)
  })

  it.each([
    ['another submission', (body: string) => post('/api/v1/analysis/submit', body, key)],
    ['a read', () => get('/api/v1/xp')],
  ])('a submission in one packet with %s is dropped, and the connection closed', async (_, second) => {
    const mint = await seedToken(server.client, Date.now())
    const body = JSON.stringify(submission(mint))
    const socket = await say(post('/api/v1/analysis/submit', body, key) + second(body))
    await socket.until(() => false)
    expect(socket.statuses).toEqual([])
    expect(await analysesOf(mint)).toBe(0)
    expect((await server.client.post('/api/v1/analysis/submit', body, key)).status).toBe(201)
  })

  it('a submission in one packet with the beginning of another request is answered, and so is that request when its rest arrives', async () => {
    const mint = await seedToken(server.client, Date.now())
    const second = get('/api/v1/xp')
    const first = post(
      '/api/v1/analysis/submit',
      JSON.stringify(submission(mint)),
      await server.client.register(),
    )
    const socket = await say(first + second.slice(0, 30))
    expect(await socket.answers(1)).toEqual([201])
    await socket.write(second.slice(30))
    expect(await socket.answers(2)).toEqual([201, 200])
    socket.close()
  })

  it('the deletion of a key in one packet with another request is not carried out', async () => {
    const own = await server.client.register()
    const headers = { Authorization: `Bearer ${own}` }
    const socket = await say(requestOf('DELETE', '/api/v1/keys/current', headers) + get('/api/v1/xp'))
    await socket.until(() => false)
    expect(socket.statuses).toEqual([])
    expect((await server.client.get('/api/v1/agent/profile', headers)).status).toBe(200)
  })

  const smuggled = () => requestOf('DELETE', '/api/v1/keys/current', { Authorization: `Bearer ${key}` })
  it.each([
    ['two lengths that differ', 'Content-Length: 2\r\nContent-Length: 200\r\n', '{}', 'Content-Length'],
    ['an empty length', 'Content-Length: \r\nContent-Length: 2\r\n', '{}', 'Content-Length'],
    ['an empty length alone', 'Content-Length: \r\n', '', 'Content-Length'],
    ['an encoding that is not chunked', 'Transfer-Encoding: gzip\r\n', '0\r\n\r\n', 'Transfer-Encoding'],
    [
      'two encodings',
      'Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n',
      '0\r\n\r\n',
      'Transfer-Encoding',
    ],
    ['two hosts', 'Host: y\r\nContent-Length: 2\r\n', '{}', 'Host'],
  ])(
    'a request with %s is refused, and the bytes after it are not read as another request',
    async (_, headers, body, name) => {
      const request = `POST /api/v1/datapoint/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n`
      const alone = await say(request + body)
      await alone.until(() => false)
      expect(alone.statuses).toEqual([400])
      expect(alone.text).toContain(`"pointer":"/${name}"`)
      expect(alone.text).toContain('Connection: close')
      const followed = await say(request + body + smuggled())
      await followed.until(() => false)
      expect([[], [400]]).toContainEqual(followed.statuses)
      const later = await say(request + body, smuggled())
      await later.until(() => false)
      expect([[], [400]]).toContainEqual(later.statuses)
      expect(
        (await server.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).status,
      ).toBe(200)
    },
  )

  it('a Content-Length that is repeated with the same value is accepted', async () => {
    const body = JSON.stringify({ mints: [newMint()] })
    const socket = await say(
      `POST /api/v1/datapoint/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    expect(await socket.answers(1)).toEqual([200])
    socket.close()
  })

  it.each([
    [505, 'HTTP/1.0', 'GET /health HTTP/1.0\r\nHost: x\r\n\r\n'],
    [431, 'a head over 16 KiB', get('/health', { 'X-Pad': 'y'.repeat(20_000) })],
    [
      400,
      'a length that is not a number',
      post('/api/v1/datapoint/batch', '{}', '', { 'Content-Length': '0x2' }),
    ],
    [
      400,
      'a length and an encoding',
      post('/api/v1/datapoint/batch', '{}', '', { 'Transfer-Encoding': 'chunked' }),
    ],
  ])(
    'the HTTP engine itself answers %i to %s, in HTML, and closes the connection',
    async (status, _, request) => {
      const socket = await say(request)
      await socket.until(() => false)
      expect(socket.statuses).toEqual([status])
      expect(socket.text).toContain('Connection: close')
      expect(socket.text).toContain('<h1>')
    },
  )
})

describe('a server that is shutting down', () => {
  it('sends Connection: close with every answer, so that clients that obey it lose no request', async () => {
    const server = await openTestServer({ 'drain-notice-ms': '150' })
    let answered = 0
    /** Sends the next request as soon as the last one is answered, until the server closes the connection. */
    const loop = async (socket: RawSocket): Promise<number> => {
      for (let sent = 1; ; sent++) {
        await socket.write(sent % 2 === 0 ? get('/api/v1/xp') : post('/api/v1/analysis/submit', '{}'))
        if ((await socket.answers(sent)).length < sent) return sent
        answered++
        if (socket.text.includes('Connection: close')) return sent
      }
    }
    const sockets = Array.from({ length: 8 }, () => new RawSocket(server.url))
    const loops = sockets.map(loop)
    while (answered < 100) await new Promise((resolve) => setTimeout(resolve, 5))
    const stopped = server.stop()
    const sent = await Promise.all(loops)
    expect(sockets.map(({ statuses }) => statuses.length)).toEqual(sent)
    // It is answered as any other.
    expect(sockets.every(({ statuses }) => [200, 401].includes(statuses.at(-1) ?? 0))).toBe(true)
    for (const socket of sockets) socket.close()
    await stopped
    await server.remove()
  })

  it('answers a late request on an idle connection, and closes silent connections without a reset', async () => {
    const server = await openTestServer({ 'drain-notice-ms': '100' })
    const [silent, late] = [new RawSocket(server.url), new RawSocket(server.url)]
    for (const socket of [silent, late]) {
      await socket.write(get('/api/v1/xp'))
      await socket.answers(1)
    }
    const stopped = server.stop()
    await new Promise((resolve) => setTimeout(resolve, 120))
    await late.write(get('/api/v1/xp'))
    // Answered as ever, or refused once the notice is over and the lake has everything.
    expect([
      [200, 200],
      [200, 503],
    ]).toContainEqual(await late.answers(2))
    expect(late.text).toContain('Connection: close')
    await Promise.all([silent, late].map((socket) => socket.until(() => false)))
    expect([silent.ended, late.ended]).toEqual(['end', 'end'])
    await stopped
    await server.remove()
  })

  it('sends a page in full to a slow reader', { tags: 'drill' }, async () => {
    const server = await openTestServer({ 'tokens-max': '5000' })
    const slow: RawSocket[] = []
    const mints = Array.from({ length: 5_000 }, newMint)
    const text = { name: 'N', symbol: 'S' }
    const description = () => randomBytes(1_000).toString('base64')
    for (let at = 0; at < mints.length; at += 500) {
      const tokens = mints
        .slice(at, at + 500)
        .map((mint) => ({ type: 'token', mint, ts: Date.now(), ...text, description: description() }))
      await server.client.push(...tokens)
    }
    for (const coding of ['identity', 'gzip']) {
      const socket = new RawSocket(server.url)
      socket.socket.pause()
      await socket.write(get('/api/v1/market?format=ndjson&limit=5000', { 'Accept-Encoding': coding }))
      slow.push(socket)
    }
    while (server.http.inFlight() < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    const stopped = server.stop()
    await new Promise((resolve) => setTimeout(resolve, 50))
    const missing = (socket: RawSocket): number => {
      const [head] = socket.text.split('\r\n\r\n', 1)
      const bytes = Number(/Content-Length: (\d+)/.exec(head)?.[1])
      return bytes - (socket.socket.bytesRead - head.length - 4)
    }
    for (const socket of slow) socket.socket.resume()
    await Promise.all(slow.map((socket) => socket.until(() => missing(socket) === 0)))
    expect(slow.map(missing)).toEqual([0, 0])
    for (const socket of slow) socket.close()
    await stopped
    await server.remove()
  })

  it('closes the connections of feeds with the code for going away', async () => {
    const server = await openTestServer()
    const Socket = WebSocket as unknown as new (url: string, options: object) => WebSocket
    const socket = new Socket(`${server.url.replace('http', 'ws')}/api/v1/ingest`, {
      headers: { Authorization: `Bearer ${FEED_KEY}` },
    })
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))
    const closed = new Promise<Event>((resolve) => socket.addEventListener('close', resolve, { once: true }))
    await server.stop()
    expect(await closed).toMatchObject({ code: 1001, reason: 'draining' })
    await server.remove()
  })
})
