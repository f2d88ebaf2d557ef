// In: a port, trades in a POST, trades a second, seconds (`node bench/pushers.ts PORT PER_POST RATE SECONDS`). Out: one JSON
// line: trades accepted. Pushes as a feed does, on tokens that the server lists, half of them on the hundred hottest;
// whatever is not accepted ends the run.
import { Agent, request } from 'node:http'
import { random } from './random.ts'

const CONNECTIONS = 4
const HOT_TOKENS = 100
const [port, perPost, rate, seconds] = process.argv.slice(2).map(Number)
const next = random(2)

interface Listed {
  mint: string
  priceUsd: number | null
}

const list = await fetch(`http://127.0.0.1:${port}/api/v1/market?format=ndjson&sort=hot&limit=2000000`)
const tokens = (await list.text())
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Listed)
  .map(({ mint, priceUsd }) => ({ mint, price: priceUsd ?? 1e-5 }))

function post(): string {
  const ts = Date.now()
  let lines = ''
  for (let count = 0; count < perPost; count++) {
    const token =
      tokens[Math.floor(next() * (next() < 0.5 ? Math.min(HOT_TOKENS, tokens.length) : tokens.length))]
    token.price *= 1 + (next() - 0.5) / 100
    const side = next() < 0.5 ? 'buy' : 'sell'
    const tokenAmount = Math.round(1e5 * next() + 1) / 10
    lines += `{"type":"trade","mint":"${token.mint}","ts":${ts},"side":"${side}","tokenAmount":${tokenAmount},"priceUsd":${token.price}}\n`
  }
  return lines
}

const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
const headers = { 'Content-Type': 'application/x-ndjson', Authorization: 'Bearer bench' }

function push(): Promise<number> {
  return new Promise((resolve, reject) => {
    const body = post()
    const pushed = request(
      {
        agent,
        host: '127.0.0.1',
        port,
        path: '/api/v1/ingest',
        method: 'POST',
        headers: { ...headers, 'Content-Length': body.length },
      },
      (response) => {
        let text = ''
        response.setEncoding('latin1').on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => {
          const { accepted = 0 } = JSON.parse(text) as { accepted?: number }
          if (accepted === perPost) resolve(accepted)
          else reject(new Error(text.slice(0, 1_000)))
        })
      },
    )
    pushed.on('error', reject).end(body)
  })
}

const started = performance.now()
const until = started + seconds * 1_000
let begun = 0
let accepted = 0

/** One push after another, none before its time. */
async function connection(): Promise<void> {
  for (;;) {
    const dueMs = started + (begun++ * perPost * 1_000) / rate
    if (dueMs >= until || performance.now() >= until) return
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    accepted += await push()
  }
}

await Promise.all(Array.from({ length: CONNECTIONS }, connection))
agent.destroy()
console.log(JSON.stringify({ accepted }))
