// node bench/servers/week-stack.ts TOKENS FOLDER
// What a good engineer would put together in a week for the same job, from well-known parts: fastify, a Map of tokens with a B-tree by
// rank, rows stringified once until they change, better-sqlite3 with a sync for each commit, ws for followers. It checks less and
// records nothing but submissions: no journal, no lake, no bars beyond one minute, no verdict of a submission. Prints its port.
import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'
import BTreeModule from 'sorted-btree'
import { type WebSocket, WebSocketServer } from 'ws'
import { z } from 'zod'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { tellPauses } from './pauses.ts'
import { keepInSqlite, numbersOf, textsOf } from './peer-stores.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const FLUSH_MS = 50
/** A follower that is so far behind is dropped. */
const WAITING_BYTES_MAX = 4 << 20

const Trade = z.object({
  type: z.literal('trade'),
  mint: z.string(),
  ts: z.number(),
  side: z.enum(['buy', 'sell']),
  tokenAmount: z.number().positive(),
  priceUsd: z.number().positive(),
})
const Submission = z.object({
  mint: z.string(),
  sentiment: z.enum(['bullish', 'bearish', 'neutral']),
  score: z.number().min(0).max(100),
  summary: z.string().min(50).max(2_000),
  quant: z.record(z.string(), z.unknown()),
})

interface Token {
  mint: string
  name: string
  symbol: string
  priceUsd: number
  usd_market_cap: number
  volume24h: number
  buys: number
  sells: number
  last_trade_timestamp: number
  hot: number
  bar: { t: number; o: number; h: number; l: number; c: number; v: number }
  /** Null where the token has changed since. */
  row: string | null
}

const [tokenCount, folder] = process.argv.slice(2)
const tokens = new Map<string, Token>()
/** The package is CommonJS: Node imports its exports object, a bundler the class itself. */
const BTree = ('default' in BTreeModule ? BTreeModule.default : BTreeModule) as typeof BTreeModule.default
const byHot = new BTree<[number, string], Token>(undefined, ([hotA, a], [hotB, b]) =>
  hotA === hotB ? (a < b ? -1 : a > b ? 1 : 0) : hotB - hotA,
)
const changed = new Set<Token>()
const followers = new Set<WebSocket>()
const keep = keepInSqlite(folder)

const rowOf = (token: Token): string =>
  (token.row ??= JSON.stringify({ ...token, row: undefined, bar: undefined }))

function apply(value: unknown): void {
  const { mint, ts, side, tokenAmount, priceUsd } = Trade.parse(value)
  const token = tokens.get(mint)
  if (token === undefined) return
  const usd = tokenAmount * priceUsd
  const ageMs = Math.max(0, ts - token.last_trade_timestamp)
  byHot.delete([token.hot, mint])
  token.priceUsd = priceUsd
  token.usd_market_cap = priceUsd * 1e9
  token.volume24h = token.volume24h * Math.exp(-ageMs / DAY_MS) + usd
  token.hot = token.hot * Math.exp(-ageMs / MINUTE_MS) + usd
  token[side === 'buy' ? 'buys' : 'sells']++
  token.last_trade_timestamp = ts
  const t = ts - (ts % MINUTE_MS)
  if (token.bar.t !== t) token.bar = { t, o: priceUsd, h: priceUsd, l: priceUsd, c: priceUsd, v: 0 }
  const { bar } = token
  bar.h = Math.max(bar.h, priceUsd)
  bar.l = Math.min(bar.l, priceUsd)
  bar.c = priceUsd
  bar.v += usd
  token.row = null
  byHot.set([token.hot, mint], token)
  changed.add(token)
}

for (let index = 0; index < Number(tokenCount); index++) {
  const mint = mintOfSymbol(`token ${index}`)
  const figures = { priceUsd: 1e-5, usd_market_cap: 1e4, volume24h: 0, buys: 0, sells: 0 }
  const bar = { t: 0, o: 0, h: 0, l: 0, c: 0, v: 0 }
  const names = { mint, name: `Token ${index}`, symbol: `T${index}` }
  const token = { ...names, ...figures, last_trade_timestamp: Date.now(), hot: 0, bar, row: null }
  tokens.set(mint, token)
  byHot.set([0, mint], token)
}

const app = fastify({ bodyLimit: 8 << 20 })
app.addContentTypeParser('application/x-ndjson', { parseAs: 'string' }, (_, body, done) => done(null, body))

app.post('/api/v1/ingest', async (request) => {
  const lines = (request.body as string).split('\n').filter((line) => line !== '')
  for (const line of lines) apply(JSON.parse(line))
  return { ok: true, data: { accepted: lines.length } }
})

app.get('/api/v1/market', async (request, reply) => {
  const { limit = '100' } = request.query as { limit?: string }
  const rows: string[] = []
  for (const token of byHot.values()) {
    if (rows.push(rowOf(token)) >= Number(limit)) break
  }
  return reply.type('application/x-ndjson').send(`${rows.join('\n')}\n`)
})

app.get('/api/v1/datapoint', async (request, reply) => {
  const token = tokens.get((request.query as { mint: string }).mint)
  if (token === undefined) return reply.code(404).send({ ok: false })
  return reply.type('application/json').send(`{"ok":true,"data":${rowOf(token)}}`)
})

let submissions = 0
app.post('/api/v1/keys/register', async () => ({ ok: true, data: { key: 'peer' } }))
app.post('/api/v1/analysis/submit', async (request, reply) => {
  Submission.parse(request.body)
  const index = submissions++
  await keep([...textsOf(index), ...numbersOf(index)])
  return reply.code(201).send({ ok: true, data: { analysisId: `an_${index}`, xpEarned: 50 } })
})

const sockets = new WebSocketServer({ noServer: true })
app.server.on('upgrade', (request, socket, head) =>
  sockets.handleUpgrade(request, socket, head, (follower) => {
    followers.add(follower)
    follower.on('close', () => followers.delete(follower))
  }),
)
setInterval(() => {
  if (changed.size === 0) return
  const frame = Buffer.from(`${[...changed].map(rowOf).join('\n')}\n`)
  changed.clear()
  for (const follower of followers) {
    if (follower.bufferedAmount > WAITING_BYTES_MAX) follower.terminate()
    else follower.send(frame, { binary: false })
  }
}, FLUSH_MS)

tellPauses()
await app.listen({ port: 0, host: '127.0.0.1' })
process.once('SIGTERM', () => process.exit(0))
console.log((app.server.address() as AddressInfo).port)
