// In: a port, connections, seconds and, where they are not to submit as fast as they can, how often each does, ms (`node
// bench/clients/submitters.ts PORT CONNECTIONS SECONDS [EVERY_MS]`). Out: one JSON line: submissions accepted a second, and their
// latencies. One agent a connection, one submission in flight each; whatever is not accepted
// ends the run.
import { connect } from 'node:net'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { submissionOf } from '../datasets/submission.ts'
import { quantile } from '../harness.ts'

const [port, connections, seconds, everyMs = 0] = process.argv.slice(2).map(Number)
const url = `http://127.0.0.1:${port}`
const mints = Array.from({ length: 1_000 }, (_, index) => mintOfSymbol(`token ${index}`))

async function registered(name: string): Promise<string> {
  const answer = await fetch(`${url}/api/v1/keys/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ name }),
  })
  return ((await answer.json()) as { data: { key: string } }).data.key
}

const keys = await Promise.all(
  Array.from({ length: connections }, (_, index) => registered(`agent ${index}`)),
)
const latenciesMs: number[] = []
const started = performance.now()
const until = started + seconds * 1_000
let next = 0

function submitFor(key: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setNoDelay(true)
    let answer = ''
    let sentAt = 0
    const submit = () => {
      const text = JSON.stringify(submissionOf(mints[next++ % mints.length]))
      sentAt = performance.now()
      socket.write(
        `POST /api/v1/analysis/submit HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${key}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      )
    }
    socket.on('connect', submit)
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
      const end = answer.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = Number(/content-length: (\d+)/i.exec(answer)?.[1])
      if (answer.length < end + 4 + length) return
      if (!answer.startsWith('HTTP/1.1 201')) return reject(new Error(answer.slice(0, 1_000)))
      answer = ''
      latenciesMs.push(performance.now() - sentAt)
      if (performance.now() >= until) socket.end(() => resolve())
      else if (everyMs === 0) submit()
      else setTimeout(submit, Math.max(0, sentAt + everyMs - performance.now()))
    })
  })
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
