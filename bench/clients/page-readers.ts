// node bench/clients/page-readers.ts PORT SECONDS
// Measures how long readers wait for a page of 100 rows. Each sends fifty requests a second on a fixed schedule, whether or
// not earlier ones were answered, so that slow answers do not reduce the load. Prints one line of JSON.
import { Agent, get } from 'node:http'
import { quantile } from '../harness.ts'

const READERS = 8
const EVERY_MS = 20
const [port, seconds] = process.argv.slice(2).map(Number)
const path = '/api/v1/market?format=ndjson&limit=100'
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

function ask(): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ agent, host: '127.0.0.1', port, path }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${answer.statusCode}`))
      answer.resume().on('end', resolve)
    }).on('error', reject)
  })
}

const waits: number[] = []
const started = performance.now()
const warmMs = Math.min(1, seconds) * 1_000
const asksOf = Math.floor((warmMs + seconds * 1_000) / EVERY_MS)
async function reader(index: number): Promise<void> {
  const asked: Promise<void>[] = []
  for (let turn = 0; turn < asksOf; turn++) {
    const dueMs = started + turn * EVERY_MS + (index / READERS) * EVERY_MS
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    asked.push(
      ask().then(() => {
        if (dueMs - started > warmMs) waits.push(performance.now() - dueMs)
      }),
    )
  }
  await Promise.all(asked)
}
await Promise.all(Array.from({ length: READERS }, (_, index) => reader(index)))
agent.destroy()
waits.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    metrics: { p50Ms: quantile(waits, 0.5), p99Ms: quantile(waits, 0.99) },
    checksum: `${waits.length > 0}`,
  }),
)
