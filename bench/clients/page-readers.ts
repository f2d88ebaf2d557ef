// node bench/clients/page-readers.ts PORT WARM_SECONDS SECONDS
// Measures how long readers wait for a page of 100 rows. Each asks fifty times a second on a fixed schedule. A request that
// the answer before it held up counts from the moment that was planned, so that slow answers do not hide the waits behind them.
// Prints one line of JSON.
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '../harness.ts'
import { HttpConnection } from './http-connection.ts'

const READERS = 8
const EVERY_MS = 20
const REQUEST = 'GET /api/v1/market?format=ndjson&limit=100 HTTP/1.1\r\nHost: bench\r\n\r\n'
const [port, warmSeconds, seconds] = process.argv.slice(2).map(Number)

const waits: number[] = []
const started = performance.now()
const warmMs = warmSeconds * 1_000
const asksOf = Math.floor((warmMs + seconds * 1_000) / EVERY_MS)

async function reader(index: number): Promise<void> {
  const connection = await HttpConnection.open(port)
  for (let turn = 0; turn < asksOf; turn++) {
    const dueMs = started + turn * EVERY_MS + (index / READERS) * EVERY_MS
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    // A timer may be late by a millisecond, which is not the server's.
    const fromMs = waitMs > 0 ? performance.now() : dueMs
    await connection.request(REQUEST, 200)
    if (dueMs - started > warmMs) waits.push(performance.now() - fromMs)
  }
  connection.close()
}

await Promise.all(Array.from({ length: READERS }, (_, index) => reader(index)))
waits.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    metrics: { p50Ms: quantile(waits, 0.5), p99Ms: quantile(waits, 0.99) },
    checksum: `${waits.length > 0}`,
  }),
)
