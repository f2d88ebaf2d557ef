// node bench/clients/submitters.ts PORT CONNECTIONS SECONDS [EVERY_MS]
// Submits analyses, one agent a connection and one submission at a time, as fast as they are answered or once in EVERY_MS, over
// which the agents are spread: they know nothing of each other. Prints one line of JSON: submissions accepted a second and their
// latencies. Ends with an error where one is refused.
import { setTimeout as sleep } from 'node:timers/promises'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { quantile } from '../harness.ts'
import { HttpConnection, registerAgent, submitRequest } from './http-connection.ts'

const [port, connections, seconds, everyMs = 0] = process.argv.slice(2).map(Number)
const mints = Array.from({ length: 1_000 }, (_, index) => mintOfSymbol(`token ${index}`))

const keys = await Promise.all(
  Array.from({ length: connections }, (_, index) => registerAgent(port, `agent ${index}`)),
)
const latenciesMs: number[] = []
const started = performance.now()
const until = started + seconds * 1_000
let next = 0

/**
 * One submission after another, as fast as they are answered or on a fixed schedule. Callers that waited from one submission to
 * their next can fall into step: timers of one millisecond fire together, and whoever is answered together asks together again.
 */
async function submitFor(key: string, index: number): Promise<void> {
  const connection = await HttpConnection.open(port)
  for (let turn = 0; performance.now() < until; turn++) {
    const waitMs = started + (turn + index / connections) * everyMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    const sentAtMs = performance.now()
    await connection.request(submitRequest(key, mints[next++ % mints.length]), 201)
    latenciesMs.push(performance.now() - sentAtMs)
  }
  connection.close()
}

await Promise.all(keys.map(submitFor))
const elapsed = (performance.now() - started) / 1_000
latenciesMs.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    metrics: {
      perSecond: latenciesMs.length / elapsed,
      p50Ms: quantile(latenciesMs, 0.5),
      p99Ms: quantile(latenciesMs, 0.99),
    },
    checksum: `${latenciesMs.length > 0}`,
  }),
)
