// node bench/servers/follow-server.ts KIND TOKENS FLUSH_MS
// Prints its port, the port of its feed and the size of a row. `mintlake` is the whole server without limits, fed through its
// WebSocket; `node-http` is what a user would write with node:http: each row is stringified once and written to every follower.
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createFeed } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { Market } from '../../src/market/market.ts'
import type { MarketItem } from '../../src/schema/market-item.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

/** Stops the server. */
let stop = async (): Promise<void> => {}
const [kind, tokens, flushMs] = process.argv.slice(2)
const rowBytes = (market: Market): number =>
  market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 1 }).ndjson.length
const mints = Array.from({ length: Number(tokens) }, (_, index) => mintOfSymbol(`token ${index}`))

function fill(market: Market): void {
  const ts = Date.now()
  for (const [index, mint] of mints.entries()) {
    market.apply(
      { type: 'token', mint, ts, name: `Token ${index}`, symbol: `T${index}`, totalSupply: 1e9 },
      ts,
    )
    market.apply({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 }, ts)
  }
}

async function mintlake(): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const app = await startApp(
    readConfig(
      [
        ...['--port', '0', '--data-dir', folder, '--feed', 'none', '--log-level', 'warn'],
        ...['--read-limit-anonymous', '0', '--tokens-max', tokens],
      ],
      { MINTLAKE_FEED_KEY: 'bench' },
    ),
    { tuning: { follow: { flushMs: Number(flushMs) } } },
  )
  stop = app.stop
  await app.ready
  fill(app.market)
  // Recording thousands of new token profiles is not part of the measurement, so wait until that is done.
  await app.recorded()
  await app.store.flushLake()
  return [app.port, app.port, rowBytes(app.market)]
}

async function nodeHttp(): Promise<number[]> {
  const market = new Market({ tokensMax: mints.length })
  fill(market)
  const rows = new Map(
    mints.map((mint) => [mint, { ...market.item(mint)!, seq: 0 } as MarketItem & { seq: number }]),
  )
  const followers = new Set<ServerResponse>()
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    response.flushHeaders()
    followers.add(response)
    response.on('close', () => followers.delete(response))
  })
  let seq = 0
  const apply = (line: string): string => {
    const { mint, priceUsd, ts } = JSON.parse(line)
    const row = rows.get(mint)!
    row.priceUsd = priceUsd
    row.usd_market_cap = priceUsd * 1e9
    row.last_trade_timestamp = ts
    row.seq = ++seq
    return `${JSON.stringify(row)}\n`
  }
  const feed = createFeed((socket) => {
    let rest = ''
    socket.setEncoding('latin1').on('data', (text) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      const chunk = Buffer.from(lines.map(apply).join(''))
      if (chunk.length > 0) for (const follower of followers) follower.write(chunk)
    })
  })
  const listen = (one: typeof server | typeof feed): Promise<number> =>
    new Promise((resolve) => one.listen(0, '127.0.0.1', () => resolve((one.address() as AddressInfo).port)))
  return [await listen(server), await listen(feed), rowBytes(market)]
}

process.once('SIGTERM', () => void stop().then(() => process.exit(0)))
console.log((await (kind === 'mintlake' ? mintlake() : nodeHttp())).join(' '))
