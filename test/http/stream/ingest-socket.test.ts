// A feed that pushes over a WebSocket: the same records and authentication as over HTTP, and an answer to each frame.
import { Packr, unpack } from 'msgpackr'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { RawSocket } from '../../support/raw-socket.ts'
import { newMint } from '../../support/submission.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())

/** Node's WebSocket accepts headers in addition to the standard arguments. */
const Socket = WebSocket as unknown as new (
  url: string,
  options: { headers: Record<string, string> },
) => WebSocket
const open = (key: string): WebSocket =>
  new Socket(`${server.url.replace('http', 'ws')}/api/v1/ingest`, {
    headers: { Authorization: `Bearer ${key}` },
  })
const next = (socket: WebSocket, type: 'open' | 'message' | 'error'): Promise<MessageEvent> =>
  new Promise((resolve) =>
    socket.addEventListener(type, (event) => resolve(event as MessageEvent), { once: true }),
  )

it('accepts JSON and msgpack frames, and answers each in its format', async () => {
  const socket = open(FEED_KEY)
  socket.binaryType = 'arraybuffer'
  await next(socket, 'open')
  const record = (name: string) => ({ type: 'token', mint: newMint(), ts: Date.now(), name, symbol: 'S' })
  const [one, two, three] = ['one', 'two', 'three'].map(record)
  socket.send(JSON.stringify(one))
  expect(JSON.parse((await next(socket, 'message')).data)).toEqual({
    ok: true,
    accepted: 1,
    rejected: 0,
    errors: [],
  })
  socket.send(new Packr({ useRecords: false }).pack([two, three, { type: 'nonsense' }]))
  expect(unpack(new Uint8Array((await next(socket, 'message')).data))).toMatchObject({
    ok: true,
    accepted: 2,
    rejected: 1,
  })
  for (const { mint, name } of [one, two, three]) expect(server.market.item(mint)?.name).toBe(name)
  socket.close()
})

it('opens only with the feed key', async () => {
  await next(open('wrong'), 'error')
})

it('selects none of the subprotocols that a client offers', async () => {
  const socket = new RawSocket(server.url)
  await socket.write(
    `GET /api/v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${FEED_KEY}\r\nUpgrade: websocket\r\n` +
      'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
      'Sec-WebSocket-Protocol: soap, wamp\r\n\r\n',
  )
  expect(await socket.answers(1)).toEqual([101])
  expect(socket.text.toLowerCase()).not.toContain('sec-websocket-protocol')
  socket.close()
})
