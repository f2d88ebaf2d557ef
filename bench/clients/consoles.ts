// node bench/clients/consoles.ts PORT CONSOLES SECONDS PID
// Opens WebSockets as the console does, and only counts what comes. Prints one line of JSON: the CPU that the process PID, the
// server, takes of one core meanwhile, the bytes, and those of a console's first rows.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { LISTED_FIELDS } from '../../src/web/listed-fields.ts'
import { cpuSeconds } from '../harness.ts'

const SETTLE_SHARE = 0.5
const [port, consoles, seconds, pid] = process.argv.slice(2).map(Number)
/** The rows in sight with their margin, as src/web/live.ts asks for them. */
const SUBSCRIBE = JSON.stringify({
  ...{ op: 'subscribe', id: 'window 1', topic: 'window' },
  ...{ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 30, fields: LISTED_FIELDS },
})

/** A text frame of a client of 126 bytes or more: masked, here with zeros. */
function frame(text: string): Buffer {
  const body = Buffer.from(text)
  const head = Buffer.from([0x81, 0x80 | 126, 0, 0, 0, 0, 0, 0])
  head.writeUInt16BE(body.length, 2)
  return Buffer.concat([head, body])
}

let bytes = 0
/** @returns its socket, and how many bytes it had got when the order of its first rows was told, which comes last. */
async function open(): Promise<{ socket: Socket; firstBytes: number }> {
  const socket = connect(port, '127.0.0.1')
  const headers = [
    'GET /api/v1/stream HTTP/1.1',
    ...[`Host: 127.0.0.1:${port}`, 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'],
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Protocol: mintlake.json',
  ]
  socket.write(`${headers.join('\r\n')}\r\n\r\n`)
  const [answer] = await once(socket, 'data')
  if (!String(answer).startsWith('HTTP/1.1 101')) throw new Error(String(answer).slice(0, 200))
  const { promise: first, resolve } = Promise.withResolvers<number>()
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (text.includes('"order"')) return
    text += chunk.toString('latin1')
    if (text.includes('"order"')) resolve(text.length)
  })
  socket.write(frame(SUBSCRIBE))
  return { socket, firstBytes: await first }
}

const opened = await Promise.all(Array.from({ length: consoles }, open))
await delay(seconds * 1_000 * SETTLE_SHARE)
bytes = 0
const before = cpuSeconds(pid)
await delay(seconds * 1_000)
const cpu = cpuSeconds(pid) - before
const firstBytes = Math.max(0, ...opened.map((each) => each.firstBytes))
const cpuShare = Math.max(0.001, cpu / seconds)
console.log(JSON.stringify({ cpuShare, bytesPerSecond: bytes / seconds, firstBytes }))
for (const { socket } of opened) socket.destroy()
