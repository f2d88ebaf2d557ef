// permessage-deflate on the stream, negotiated by a real client: the same messages in fewer bytes, for a bounded number of sockets.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type ClientOptions, type RawData, WebSocket } from 'ws'
import {
  COMPRESSED_MESSAGE_BYTES_MIN,
  COMPRESSED_SOCKETS_MAX,
  STREAM_MESSAGE_BYTES_MAX,
} from '../../../src/http/limits.ts'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const TOKENS = 100
const mints = Array.from({ length: TOKENS }, newMint)
let server: TestServer

beforeAll(async () => {
  server = await openTestServer({ 'tokens-max': `${TOKENS}` })
  const ts = Date.now()
  await server.client.push(
    ...mints.map((mint, at) => ({ type: 'token', mint, ts, name: `Token number ${at}`, symbol: `T${at}` })),
  )
})
afterAll(() => server.remove())

interface Opened {
  socket: WebSocket
  /** What was received on the connection, with the answer to the upgrade. */
  bytesRead(): number
  /** The next message. */
  next(): Promise<Record<string, unknown>>
}

const opened: WebSocket[] = []
afterEach(() => {
  for (const socket of opened.splice(0)) socket.terminate()
})

async function open(options: ClientOptions): Promise<Opened> {
  const { hostname, port } = new URL(server.url)
  let connection: Socket | null = null
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/api/v1/stream`, {
    ...options,
    createConnection: () => {
      connection = connect({ host: hostname, port: Number(port) })
      return connection
    },
  })
  opened.push(socket)
  const [received, waiting]: [Record<string, unknown>[], ((message: Record<string, unknown>) => void)[]] = [
    [],
    [],
  ]
  socket.on('message', (data: RawData) => {
    const message = JSON.parse(data.toString())
    const resolve = waiting.shift()
    if (resolve) resolve(message)
    else received.push(message)
  })
  await once(socket, 'open')
  const next = async () =>
    received.shift() ?? new Promise<Record<string, unknown>>((resolve) => waiting.push(resolve))
  return { socket, bytesRead: () => connection?.bytesRead ?? 0, next }
}

const SUBSCRIBE = { op: 'subscribe', topic: 'market', tab: 'all', limit: TOKENS }
async function snapshotOf(options: ClientOptions) {
  const client = await open(options)
  client.socket.send(JSON.stringify(SUBSCRIBE))
  expect(await client.next()).toMatchObject({ event: 'subscribed' })
  const rows: unknown[] = []
  for (let isLast = false; !isLast; ) {
    const message = await client.next()
    expect(message).toMatchObject({ event: 'snapshot' })
    rows.push(...(message.rows as unknown[]))
    isLast = message.last === true
  }
  return { ...client, rows }
}

it.each<[string, ClientOptions['perMessageDeflate']]>([
  ['as clients offer it', true],
  ['without a context on either side', { serverNoContextTakeover: true, clientNoContextTakeover: true }],
  ['with a small window of the client', { clientMaxWindowBits: 9 }],
])('rows are the same, in a third of the bytes: %s', async (_, perMessageDeflate) => {
  const plain = await snapshotOf({ perMessageDeflate: false })
  const compressed = await snapshotOf({ perMessageDeflate })
  expect(plain.socket.extensions).toBe('')
  expect(compressed.socket.extensions).toContain('permessage-deflate')
  expect(compressed.rows).toEqual(plain.rows)
  expect(plain.rows).toHaveLength(TOKENS)
  expect(compressed.bytesRead()).toBeLessThan(plain.bytesRead() / 3)
  // Changes go to all: they come plain, and to both the same.
  const [mint] = mints
  const trade = {
    type: 'trade',
    mint,
    ts: Date.now(),
    side: 'buy',
    tokenAmount: 1_000,
    priceUsd: Math.random(),
  }
  await server.client.push(trade)
  const change = await compressed.next()
  expect(change).toMatchObject({ event: 'changes', rows: [{ mint, priceUsd: trade.priceUsd }] })
  expect(await plain.next()).toEqual(change)
})

it('a client may compress what it sends, and one that sends too much or no deflate is closed', async () => {
  const { socket, next } = await open({ perMessageDeflate: { threshold: 0 } })
  const id = 'i'.repeat(COMPRESSED_MESSAGE_BYTES_MIN)
  socket.send(JSON.stringify({ op: 'ping', id }))
  expect(await next()).toMatchObject({ event: 'pong', id })
  // A few kilobytes on the wire, eight megabytes when they are expanded.
  socket.send('x'.repeat(8 * 1024 * 1024))
  await once(socket, 'close')
  const { socket: other, next: nextOfOther } = await open({ perMessageDeflate: { threshold: 0 } })
  // The limit is that of the message, however small it came.
  other.send(JSON.stringify({ op: 'ping', id: 'i'.repeat(STREAM_MESSAGE_BYTES_MAX) }))
  await once(other, 'close')
  expect(await Promise.race([nextOfOther(), Promise.resolve(null)])).toBeNull()
  expect((await server.client.get('/readyz')).status).toBe(200)
})

it(`beyond ${COMPRESSED_SOCKETS_MAX} sockets one is plain, until another goes`, async () => {
  const first = await open({ perMessageDeflate: true })
  await Promise.all(
    Array.from({ length: COMPRESSED_SOCKETS_MAX - 1 }, () => open({ perMessageDeflate: true })),
  )
  const beyond = await snapshotOf({ perMessageDeflate: true })
  expect(beyond.socket.extensions).toBe('')
  expect(beyond.rows).toHaveLength(TOKENS)
  first.socket.close()
  await once(first.socket, 'close')
  expect((await open({ perMessageDeflate: true })).socket.extensions).toContain('permessage-deflate')
})
