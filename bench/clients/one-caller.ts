// node bench/clients/one-caller.ts PORT WARM_SECONDS SECONDS
// Measures how long one caller waits for a submission, for a plain request, and for 2 KB to be appended to a file and
// synced, in turns, so that whatever else the machine does affects all three alike. Prints one line of JSON.
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { quantile } from '../harness.ts'
import { HttpConnection, registerAgent, submitRequest } from './http-connection.ts'

const RECORD = Buffer.alloc(2_048, 'record ')
const [port, warmSeconds, seconds] = process.argv.slice(2).map(Number)
const key = await registerAgent(port, 'one caller')
const connection = await HttpConnection.open(port)

let next = 0
const mint = (): string => mintOfSymbol(`token ${next++ % 1_000}`)
const submit = () => connection.request(submitRequest(key, mint()), 201)
const read = () =>
  connection.request(`GET /api/v1/datapoint?mint=${mint()} HTTP/1.1\r\nHost: bench\r\n\r\n`, 200)

const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
const file = openSync(join(folder, 'probe'), 'w')
function sync(): void {
  writeSync(file, RECORD)
  fdatasyncSync(file)
}

async function timed(work: () => unknown, into: number[]): Promise<void> {
  const began = performance.now()
  await work()
  into.push(performance.now() - began)
}

const [submits, reads, syncs]: number[][] = [[], [], []]
const warmUntil = performance.now() + warmSeconds * 1_000
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
connection.close()
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
      readP99Ms: readOnly.p99,
      syncP50Ms: synced.p50,
      syncP99Ms: synced.p99,
      syncsBeyondRead: (submitted.p50 - readOnly.p50) / synced.p50,
      p99InSyncs: submitted.p99 / synced.p99,
    },
    checksum: `${submits.length > 0}`,
  }),
)
