// A process with many followers on raw sockets, half over HTTP and half over WebSocket, some of which do not read until told to.
// Reports what they received. It is a separate process, so that reading takes no CPU time of the server.
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

export interface Orders {
  /** Opens followers; those that do not read ask for the whole list first. */
  open?: { port: number; reading: number; stalled: number }
  /** Reports once every reading follower has seen this name on this many tokens. */
  await?: { name: string; tokens: number }
  /** Lets the stalled followers read to the end. */
  resume?: true
}
export interface Report {
  opened?: number
  seen?: { name: string; worstMs: number; medianMs: number }
  /** The last message of each stalled follower, and the bytes that it received. */
  ended?: { last: string; bytes: number }[]
}

interface Follower {
  socket: Socket
  isWebSocket: boolean
  rest: Buffer
  bytes: number
  last: string
  /** The number of tokens on which each name was seen. */
  seen: Map<string, number>
  /** The frame to send after the WebSocket handshake. */
  subscription: Buffer
  isOpen: boolean
  onOpen: () => void
}

const reading: Follower[] = []
const stalled: Follower[] = []
const tell = (report: Report) => process.send!(report)

function follower(port: number, isWebSocket: boolean, tab: string, limit: number): Follower {
  const socket = connect(port, '127.0.0.1')
  const made: Follower = {
    socket,
    isWebSocket,
    rest: Buffer.alloc(0),
    bytes: 0,
    last: '',
    seen: new Map(),
    subscription: masked(JSON.stringify({ op: 'subscribe', topic: 'market', tab, limit })),
    isOpen: false,
    onOpen: () => {},
  }
  socket.on('data', (bytes) => read(made, bytes))
  const path = isWebSocket
    ? '/api/v1/stream'
    : `/api/v1/market?format=ndjson&follow=1&tab=${tab}&limit=${limit}`
  const upgrade = isWebSocket
    ? `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n`
    : ''
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${upgrade}\r\n`)
  return made
}

/** A short text frame of a client (RFC 6455, section 5.2) with a mask of zero. */
function masked(text: string): Buffer {
  const payload = Buffer.from(text)
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload])
}

function read(follower: Follower, bytes: Buffer): void {
  follower.bytes += bytes.length
  follower.rest = follower.rest.length === 0 ? bytes : Buffer.concat([follower.rest, bytes])
  for (const text of follower.isWebSocket ? frames(follower) : lines(follower)) {
    if (!follower.isOpen) {
      follower.isOpen = true
      follower.onOpen()
    }
    if (text.includes('"event":"bye"')) follower.last = text
    for (const [, name] of text.matchAll(/"name":"(round [^"]+)"/g))
      follower.seen.set(name, (follower.seen.get(name) ?? 0) + 1)
  }
  settle()
}

/** Rows and control lines. Other lines belong to HTTP. */
function lines(follower: Follower): string[] {
  const end = follower.rest.lastIndexOf(10) + 1
  const text = follower.rest.toString('utf8', 0, end)
  follower.rest = follower.rest.subarray(end)
  return text.split('\n').filter((line) => line.startsWith('{'))
}

/** Complete messages of the server after its answer to the upgrade. */
function frames(follower: Follower): string[] {
  const texts: string[] = []
  for (;;) {
    const { rest } = follower
    if (rest[0] === 0x48) {
      const end = rest.indexOf('\r\n\r\n')
      if (end === -1) return texts
      follower.rest = rest.subarray(end + 4)
      follower.socket.write(follower.subscription)
      continue
    }
    if (rest.length < 2) return texts
    const short = rest[1] & 127
    const head = short === 127 ? 10 : short === 126 ? 4 : 2
    if (rest.length < head) return texts
    const length =
      short === 127 ? Number(rest.readBigUInt64BE(2)) : short === 126 ? rest.readUInt16BE(2) : short
    if (rest.length < head + length) return texts
    texts.push(rest.toString('utf8', head, head + length))
    follower.rest = rest.subarray(head + length)
  }
}

let awaited: { name: string; tokens: number; delaysMs: Map<Follower, number> } | null = null

/** Reports once every reader has seen the awaited name. A name ends with the time at which it was sent. */
function settle(): void {
  if (awaited === null) return
  const { name, tokens, delaysMs } = awaited
  const sentMs = Number(name.split(' ').at(-1))
  for (const one of reading)
    if (!delaysMs.has(one) && (one.seen.get(name) ?? 0) >= tokens) delaysMs.set(one, Date.now() - sentMs)
  if (delaysMs.size < reading.length) return
  const sorted = [...delaysMs.values()].sort((a, b) => a - b)
  awaited = null
  tell({ seen: { name, worstMs: sorted.at(-1)!, medianMs: sorted[sorted.length >> 1] } })
}

async function obey(orders: Orders): Promise<void> {
  if (orders.open !== undefined) {
    const { port } = orders.open
    for (let index = 0; index < orders.open.stalled; index++) {
      const one = follower(port, index % 2 === 1, 'all', 1_000_000)
      stalled.push(one)
      one.onOpen = () => one.socket.pause()
    }
    const opened = Array.from({ length: orders.open.reading }, (_, index) =>
      follower(port, index % 2 === 1, 'live', 1),
    )
    reading.push(...opened)
    await Promise.all(
      opened.map((one) => {
        if (one.isOpen) return null
        return new Promise<void>((resolve) => {
          one.onOpen = resolve
        })
      }),
    )
    tell({ opened: reading.length + stalled.length })
  }
  if (orders.await !== undefined) {
    awaited = { ...orders.await, delaysMs: new Map() }
    settle()
  }
  if (orders.resume) {
    for (const { socket } of stalled) socket.resume()
    while (stalled.some(({ last, socket }) => last === '' && !socket.destroyed))
      await new Promise((resolve) => setTimeout(resolve, 20))
    tell({ ended: stalled.map(({ last, bytes }) => ({ last, bytes })) })
  }
}

process.on('message', (orders: Orders) => {
  obey(orders).catch((error) => {
    console.error(error)
    process.exit(1)
  })
})
process.on('disconnect', () => process.exit(0))
