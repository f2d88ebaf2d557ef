// node bench/clients/pushers.ts PORT TRADES_PER_POST TRADES_PER_SECOND SECONDS [TOKENS]
// Pushes trades as a feed does, on tokens that the server lists, half of them on the hundred hottest; or, with TOKENS, trades with wallet
// and transaction on so many tokens. Prints one line of JSON: trades accepted. Ends with an error where one is not.
import { random } from '../datasets/random.ts'
import { RecordedTrades } from '../datasets/recorded-trades.ts'
import { HttpConnection } from './http-connection.ts'

const CONNECTIONS = 4
const HOT_TOKENS = 100
const [port, perPost, rate, seconds, tokenCount] = process.argv.slice(2).map(Number)
const next = random(2)

interface Listed {
  mint: string
  priceUsd: number | null
}

async function listTokens() {
  const list = await fetch(`http://127.0.0.1:${port}/api/v1/market?format=ndjson&sort=hot&limit=2000000`)
  return (await list.text())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Listed)
    .map(({ mint, priceUsd }) => ({ mint, price: priceUsd ?? 1e-5 }))
}

const recorded = tokenCount === undefined ? null : new RecordedTrades(tokenCount)
const tokens = recorded === null ? await listTokens() : []

/** One line of NDJSON. */
function trade(ts: number): string {
  if (recorded !== null) return `${JSON.stringify(recorded.next(ts))}\n`
  const token =
    tokens[Math.floor(next() * (next() < 0.5 ? Math.min(HOT_TOKENS, tokens.length) : tokens.length))]
  token.price *= 1 + (next() - 0.5) / 100
  const side = next() < 0.5 ? 'buy' : 'sell'
  const tokenAmount = Math.round(1e5 * next() + 1) / 10
  return `{"type":"trade","mint":"${token.mint}","ts":${ts},"side":"${side}","tokenAmount":${tokenAmount},"priceUsd":${token.price}}\n`
}

function post(): string {
  const ts = Date.now()
  let lines = ''
  for (let count = 0; count < perPost; count++) lines += trade(ts)
  return (
    `POST /api/v1/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer bench\r\n` +
    `Content-Type: application/x-ndjson\r\nContent-Length: ${lines.length}\r\n\r\n${lines}`
  )
}

if (recorded !== null) {
  const body = JSON.stringify({ type: 'solPrice', ts: Date.now(), usd: 150 })
  const headers = { Authorization: 'Bearer bench', 'Content-Type': 'application/x-ndjson' }
  await fetch(`http://127.0.0.1:${port}/api/v1/ingest`, { method: 'POST', headers, body })
}
const started = performance.now()
const until = started + seconds * 1_000
let begun = 0
let accepted = 0

/** Pushes one batch after another, each at its scheduled time. */
async function push(): Promise<void> {
  const connection = await HttpConnection.open(port)
  for (;;) {
    const dueMs = started + (begun++ * perPost * 1_000) / rate
    if (dueMs >= until || performance.now() >= until) break
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    const answer = await connection.request(post(), 200)
    if (!answer.includes(`"accepted":${perPost},`)) throw new Error(answer.slice(0, 2_000))
    accepted += perPost
  }
  connection.close()
}

await Promise.all(Array.from({ length: CONNECTIONS }, push))
console.log(JSON.stringify({ accepted }))
