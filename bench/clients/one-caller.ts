// In: a port and seconds (`node bench/clients/one-caller.ts PORT SECONDS`). Out: one JSON line: how long one caller waits for a
// submission, for a plain request, and for 2 KB to be appended to a file and synced, in turns: what the machine does
// meanwhile meets all three alike.
import { once } from 'node:events'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { submissionOf } from '../datasets/submission.ts'
import { quantile } from '../harness.ts'

const RECORD = Buffer.alloc(2_048, 'record ')
const [port, seconds] = process.argv.slice(2).map(Number)
const answer = await fetch(`http://127.0.0.1:${port}/api/v1/keys/register`, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ name: 'one caller' }),
})
const { data } = (await answer.json()) as { data: { key: string } }
const socket: Socket = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay(true)
await once(socket, 'connect')

/** Sends a request, and waits for the whole answer. */
async function ask(request: string, status: number): Promise<void> {
  socket.write(request)
  let text = ''
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [string]
    text += chunk
    const bodyAt = text.indexOf('\r\n\r\n') + 4
    const length = /\r\ncontent-length: (\d+)/i.exec(text)
    if (bodyAt > 3 && length !== null && text.length >= bodyAt + Number(length[1])) break
  }
  if (!text.startsWith(`HTTP/1.1 ${status}`)) throw new Error(text.slice(0, 1_000))
}

let next = 0
const mint = (): string => mintOfSymbol(`token ${next++ % 1_000}`)
function submit(): Promise<void> {
  const body = JSON.stringify(submissionOf(mint()))
  return ask(
    `POST /api/v1/analysis/submit HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${data.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    201,
  )
}
const read = (): Promise<void> =>
  ask(`GET /api/v1/datapoint?mint=${mint()} HTTP/1.1\r\nHost: bench\r\n\r\n`, 200)

const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
const file = openSync(join(folder, 'probe'), 'w')
function sync(): void {
  writeSync(file, RECORD)
  fdatasyncSync(file)
}

async function timed(work: () => Promise<void> | void, into: number[]): Promise<void> {
  const began = performance.now()
  await work()
  into.push(performance.now() - began)
}

const [submits, reads, syncs]: number[][] = [[], [], []]
const warmUntil = performance.now() + Math.min(1, seconds) * 1_000
const until = warmUntil + seconds * 1_000
for (let isWarm = false; performance.now() < until; ) {
  if (!isWarm && performance.now() > warmUntil) {
    isWarm = true
    for (const taken of [submits, reads, syncs]) taken.length = 0
  }
  await timed(submit, submits)
  await timed(read, reads)
  await timed(sync, syncs)
}
socket.destroy()
closeSync(file)
rmSync(folder, { recursive: true })

const figures = (taken: number[]) => {
  taken.sort((a, b) => a - b)
  return { p50: quantile(taken, 0.5), p99: quantile(taken, 0.99) }
}
const [submitted, readOnly, synced] = [submits, reads, syncs].map(figures)
console.log(
  JSON.stringify({
    metrics: {
      submitP50Ms: submitted.p50,
      submitP99Ms: submitted.p99,
      readP50Ms: readOnly.p50,
      syncP50Ms: synced.p50,
      syncP99Ms: synced.p99,
      syncsBeyondRead: (submitted.p50 - readOnly.p50) / synced.p50,
      p99InSyncs: submitted.p99 / synced.p99,
    },
    checksum: `${submits.length > 0}`,
  }),
)
