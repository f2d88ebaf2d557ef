// node bench/servers/server.ts KIND JSON
// Serves on a free port and prints it. `mintlake` is the whole server without limits, with a filled market and trades running
// in the same process, or the default market; the other kinds send the same bytes the way their users would.
import { App, us_socket_local_port } from 'uWebSockets.js'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from '../datasets/random.ts'
import { tellPauses } from './pauses.ts'

export interface ServerOptions {
  tokens: number
  ticksPerSecond: number
  /** Overrides the default. */
  pageAgeMs?: number
  /** What the constant responses of the peers contain. */
  body: 'page' | 'datapoint' | 'hello'
  /** A file that is sent instead of `body`. */
  bodyFile?: string
  /** `default`: the market that `npm start` serves, instead of tokens with one trade each; `empty`: none. */
  market?: 'default' | 'empty'
  /** An RPC node that the market comes from, with no bound on requests. */
  solanaRpc?: string
  /** Whether pushed events are recorded; by default as the server does. */
  record?: boolean
  /** Whether SIGUSR2 prints the pauses of the collector. */
  tellsPauses?: boolean
}

/** Stops the server. */
let stop = async (): Promise<void> => {}

const HOT_TOKENS = 100
const TICK_EVERY_MS = 5
const [kind, json] = process.argv.slice(2)
const options = JSON.parse(json) as ServerOptions
const next = random(1)
const mints = Array.from({ length: options.tokens }, (_, index) => mintOfSymbol(`token ${index}`))
const price = Float64Array.from(mints, () => 1e-5 * Math.exp(6 * next()))

function trade(market: Market, token: number): void {
  const ts = Date.now()
  price[token] *= 1 + (next() - 0.5) / 100
  market.apply(
    {
      type: 'trade',
      mint: mints[token],
      ts,
      side: next() < 0.5 ? 'buy' : 'sell',
      tokenAmount: Math.round(1e5 * next()) / 10,
      priceUsd: price[token],
    },
    ts,
  )
}

function fill(market: Market): void {
  for (const [index, mint] of mints.entries()) {
    const ts = Date.now()
    market.apply(
      { type: 'token', mint, ts, name: `Token ${index}`, symbol: `T${index}`, totalSupply: 1e9 },
      ts,
    )
    trade(market, index)
  }
}

function runTicks(market: Market): void {
  let due = 0
  setInterval(() => {
    due += (options.ticksPerSecond * TICK_EVERY_MS) / 1_000
    for (; due >= 1; due--)
      trade(market, Math.floor(next() * (next() < 0.5 ? Math.min(HOT_TOKENS, mints.length) : mints.length)))
  }, TICK_EVERY_MS)
}

/** The bytes that the peers send, which are those that Mintlake would send. */
function constantBody(): { buffer: Buffer; value: unknown; contentType: string } {
  if (options.bodyFile !== undefined) {
    const buffer = readFileSync(options.bodyFile)
    return { buffer, value: null, contentType: 'application/x-ndjson; charset=utf-8' }
  }
  if (options.body === 'hello')
    return { buffer: Buffer.from('hello'), value: 'hello', contentType: 'text/plain' }
  const market = new Market({ tokensMax: mints.length })
  fill(market)
  if (options.body === 'datapoint') {
    const value = { ok: true, data: market.datapoint(mints[7]) }
    return {
      buffer: Buffer.from(JSON.stringify(value)),
      value,
      contentType: 'application/json; charset=utf-8',
    }
  }
  const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 100 })
  const value = page.ndjson
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  return { buffer: page.ndjson, value, contentType: 'application/x-ndjson; charset=utf-8' }
}

async function mintlake(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
  const isDefault = options.market === 'default'
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const app = await startApp(
    readConfig(
      [
        ...['--port', '0', '--data-dir', folder, '--log-level', 'error'],
        ...(isDefault
          ? ['--simulator', `tokens=${options.tokens},trades-per-second=300`]
          : [
              '--feed',
              options.solanaRpc === undefined ? 'none' : 'solana',
              '--tokens-max',
              `${options.tokens}`,
            ]),
        ...(options.solanaRpc === undefined
          ? []
          : ['--solana-rpc', options.solanaRpc, '--solana-rps', '10000']),
        ...['--read-limit-anonymous', '0', '--read-limit-keyed', '0', '--register-limit', '0'],
        ...['--submit-limits', 'rate=0,cooldown-ms=0'],
        ...(options.record === undefined
          ? []
          : ['--record', `${options.record}`, '--lake-tidy', 'every-ms=20000']),
        ...(options.pageAgeMs === undefined ? [] : ['--page-age-ms', `${options.pageAgeMs}`]),
      ],
      { MINTLAKE_FEED_KEY: 'bench' },
    ),
  )
  stop = app.stop
  await app.ready
  if (options.market === undefined) fill(app.market)
  // Recording thousands of new token profiles is not part of the measurement, so wait until that is done.
  await app.recorded()
  await app.store.flushLake()
  if (options.ticksPerSecond > 0) runTicks(app.market)
  return app.port
}

async function uws(): Promise<number> {
  const { buffer, contentType } = constantBody()
  return new Promise((resolve) => {
    App()
      .get('/*', (res) => {
        res.writeHeader('Content-Type', contentType)
        res.end(buffer)
      })
      .listen('127.0.0.1', 0, (socket) => resolve(us_socket_local_port(socket as never)))
  })
}

async function fastifyWith(isStringified: boolean): Promise<number> {
  const { buffer, value, contentType } = constantBody()
  const { fastify } = await import('fastify')
  const app = fastify()
  const isList = Array.isArray(value)
  app.get('/*', (_, reply) => {
    reply.header('Content-Type', contentType)
    if (!isStringified) return reply.send(buffer)
    return reply.send(
      isList ? `${value.map((row) => JSON.stringify(row)).join('\n')}\n` : JSON.stringify(value),
    )
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as { port: number }).port
}

const KINDS: Record<string, () => Promise<number>> = {
  mintlake,
  uws,
  'fastify-buffer': () => fastifyWith(false),
  'fastify-stringify': () => fastifyWith(true),
}

if (options.tellsPauses) tellPauses()
process.once('SIGTERM', () => void stop().then(() => process.exit(0)))
console.log(await KINDS[kind]())
