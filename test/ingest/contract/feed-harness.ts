// Each kind of feed with a source that a test controls: what the promises of feed.contract.test.ts need of it.
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { BirdeyeClient } from '../../../src/ingest/birdeye/birdeye-client.ts'
import { SecurityFeed } from '../../../src/ingest/birdeye/security-feed.ts'
import { SolPriceFeed } from '../../../src/ingest/birdeye/sol-price-feed.ts'
import { PumpPortal } from '../../../src/ingest/pumpportal/pumpportal.ts'
import { Replay } from '../../../src/ingest/replay/replay.ts'
import type { TradeBatch } from '../../../src/ingest/replay/trade-batch.ts'
import { Simulation } from '../../../src/ingest/simulator/simulation.ts'
import { SimulatorFeed } from '../../../src/ingest/simulator/simulator.ts'
import { IN_FLIGHT_MS } from '../../../src/ingest/solana/limits.ts'
import { SolanaFeed } from '../../../src/ingest/solana/solana.ts'
import { LiveSource } from '../../../src/ingest/solana/source.ts'
import type { Feed, FeedStatus } from '../../../src/ingest/types.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import type { EventSink, MarketEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { encodeEvent } from '../../support/chain/encode.ts'
import { transactionOf } from '../../support/chain/transaction.ts'
import { SOL } from '../../support/chain/world.ts'
import { FEED_KEY, openTestServer } from '../../support/test-server.ts'
import {
  type Answer,
  askFor,
  BirdeyeServer,
  json,
  OVERVIEW_PATH,
  PRICE_PATH,
  SECURITY_PATH,
  success,
} from '../../support/upstreams/birdeye-server.ts'
import { PumpPortalServer, tradeFrame } from '../../support/upstreams/pumpportal-server.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'
import type { MemoryLog, MemorySink } from '../memory-sink.ts'

export const START_MS = 1_772_000_000_000
export const SECRET = 'a-secret-key'

/** A clock that stands still until a test moves it. */
export class TestClock implements Clock {
  nowMs = START_MS
  now = (): number => this.nowMs
  monotonicMs = (): number => this.nowMs

  /** @returns the time afterwards. */
  pass(ms: number): number {
    this.nowMs += ms
    return this.nowMs
  }
}

export interface Surroundings {
  sink: MemorySink
  clock: TestClock
  log: MemoryLog
  /** Of the source, where it has one and not just any. */
  port?: number
}

export interface RunningFeed {
  ready: Promise<void>
  stop(): Promise<void>
  status(): Promise<FeedStatus>
  /** Has the source send so many events that were not sent before. @returns what `keyOf` gives for each. */
  send(count: number): Promise<string[]>
  /** Has the source send what is no event. @returns the reasons by which it must be counted, once each. */
  spoil: (() => Promise<string[]>) | null
  /** Where the status counts what was not usable. */
  reasons(status: FeedStatus): Record<string, number>
  /** Why /health says that the server is degraded, where there is a server. */
  reasonsTold?(): Promise<string[]>
  /** Takes the source away, and gives it back. */
  outage: { begin(): Promise<void>; end(): Promise<void> } | null
  /** Where a source listens that Node's `fetch` asks: it remembers each address for ever. */
  port?: number
  /** Connections to the source that are open. */
  connections(): number
  /** Ends the source. */
  close(): Promise<void>
}

export interface Harness {
  name: string
  /** How long before the last event that came others may be on their way; default 0. */
  inFlightMs?: number
  simulated: boolean
  /** What an outage shows: events that tell of it, and the states of the feed before, meanwhile and afterwards. */
  told: { events: boolean; states: boolean }
  /** Whether it may be started often: not a whole server. */
  isLight: boolean
  /** What identifies an event; null for those that come with another. */
  keyOf(event: MarketEvent): string | null
  start(surroundings: Surroundings): Promise<RunningFeed>
}

const running = (feed: Feed): Pick<RunningFeed, 'ready' | 'stop' | 'status' | 'reasons' | 'connections'> => ({
  ready: feed.ready,
  stop: () => feed.stop(),
  status: async () => feed.describe(),
  reasons: ({ rejected }) => rejected,
  connections: () => 0,
})
const txOf = (event: MarketEvent): string | null => (event.type === 'trade' ? `${event.tx}` : null)
let sent = 0
/** Names of what is sent, each once. */
const newNames = (count: number): string[] => Array.from({ length: count }, () => `sent ${sent++}`)

const simulator: Harness = {
  name: 'simulator',
  simulated: true,
  told: { events: true, states: false },
  isLight: true,
  keyOf: (event) => JSON.stringify(event),
  async start({ sink, clock, log }) {
    const options = { seed: 5, tokens: 20, tradesPerSecond: 1_000 }
    const feed = new SimulatorFeed(options, sink, clock, log)
    const same = new Simulation({ ...options, startMs: clock.nowMs })
    const made: string[] = []
    const collect: EventSink = {
      apply: (event) => {
        made.push(JSON.stringify(event))
        return null
      },
    }
    same.advance(clock.nowMs, collect, Number.POSITIVE_INFINITY)
    return {
      ...running(feed),
      async send(count) {
        made.length = 0
        let untilMs = clock.nowMs
        while (made.length < count) same.advance(++untilMs, collect, Number.POSITIVE_INFINITY)
        clock.nowMs = untilMs
        return [...made]
      },
      spoil: null,
      outage: {
        // The machine sleeps.
        begin: async () => {
          clock.nowMs += 3_600_000
          same.skipTo(clock.nowMs)
          same.advance(clock.nowMs, collect, Number.POSITIVE_INFINITY)
        },
        end: async () => {},
      },
      close: async () => {},
    }
  },
}

type Row = [tsMs: number, symbol: string, price: number, size: number, tx: string]
const batchOf = (rows: readonly Row[]): TradeBatch => ({
  rows: rows.length,
  tsMs: Float64Array.from(rows, ([tsMs]) => tsMs),
  price: Float64Array.from(rows, ([, , price]) => price),
  size: Float64Array.from(rows, ([, , , size]) => size),
  symbolCode: Uint32Array.from(rows, (_, index) => index),
  symbols: rows.map(([, symbol]) => symbol),
  side: null,
  wallet: null,
  tx: rows.map(([, , , , tx]) => tx),
  faults: new Map(),
})

const replay: Harness = {
  name: 'replay',
  simulated: false,
  told: { events: false, states: false },
  isLight: true,
  keyOf: txOf,
  async start({ sink, clock, log }) {
    const queue: TradeBatch[] = []
    let wake = () => {}
    const send = (rows: readonly Row[]) => {
      queue.push(batchOf(rows))
      wake()
    }
    const trades: AsyncIterable<TradeBatch> & AsyncIterator<TradeBatch> = {
      [Symbol.asyncIterator]: () => trades,
      async next() {
        while (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve))
        const value = queue.shift()
        return value === undefined ? { done: true, value } : { done: false, value }
      },
    }
    const feed = new Replay({ trades, speed: 'max', label: 'trades.parquet' }, sink, clock, log)
    const row = (tx: string): Row => [clock.nowMs, mintOfSymbol('replayed'), 1, 2, tx]
    send([row('first')])
    return {
      ...running(feed),
      async send(count) {
        const names = newNames(count)
        send(names.map(row))
        return names
      },
      async spoil() {
        send([
          [Number.NaN, 'A', 1, 1, 'x'],
          [clock.nowMs, 'A', -1, 1, 'x'],
          [clock.nowMs, 'A', 1, Number.NaN, 'x'],
          [clock.nowMs, '', 1, 1, 'x'],
        ])
        return ['time_invalid', 'price_invalid', 'size_invalid', 'symbol_missing']
      },
      outage: null,
      close: async () => {},
    }
  },
}

const push: Harness = {
  name: 'push, over HTTP and a WebSocket',
  simulated: false,
  told: { events: true, states: false },
  isLight: false,
  keyOf: txOf,
  async start({ sink, clock }) {
    const server = await openTestServer({ 'sol-price': 'max-age-ms=0' }, { clock })
    server.market.apply = (event, receivedAtMs) => sink.apply(event, receivedAtMs)
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/api/v1/ingest`, {
      headers: { Authorization: `Bearer ${FEED_KEY}` },
    })
    socket.on('error', () => {})
    await once(socket, 'open')
    const overSocket = async (text: string) => {
      const reply = once(socket, 'message')
      socket.send(text)
      await reply
    }
    const overHttp = (text: string) =>
      fetch(`${server.url}/api/v1/ingest`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${FEED_KEY}`, 'Content-Type': 'application/x-ndjson' },
        body: text,
      }).then((answer) => answer.arrayBuffer())
    const mint = mintOfSymbol('pushed')
    const trade = { type: 'trade', mint, side: 'buy', tokenAmount: 1, priceUsd: 2 }
    const read = async (): Promise<FeedStatus> =>
      ((await (await fetch(`${server.url}/health`)).json()) as { feeds: FeedStatus[] }).feeds[0]
    let status = await read()
    return {
      ready: server.ready,
      stop: () => server.stop(),
      async status() {
        // A server that has stopped does not answer any more.
        status = await read().catch(() => ({ ...status, state: 'stopped' as const }))
        return status
      },
      reasons: ({ rejected }) => rejected,
      reasonsTold: async () =>
        ((await (await fetch(`${server.url}/health`)).json()) as { reasons: string[] }).reasons,
      connections: () => 0,
      async send(count) {
        const names = newNames(count)
        const lines = names.map((tx) => JSON.stringify({ ...trade, ts: clock.nowMs, tx }))
        const half = Math.ceil(count / 2)
        await overHttp(lines.slice(0, half).join('\n'))
        for (const line of lines.slice(half)) await overSocket(line)
        return names
      },
      async spoil() {
        await overHttp(`{"type":"trade",\n${JSON.stringify({ ...trade, mint: 'no' })}\n"text"\n{"type":"?"}`)
        await overSocket(JSON.stringify({ ...trade, ts: clock.nowMs + 3_600_000 }))
        return ['invalid_json', 'invalid_mint', 'invalid_type', 'unknown_type', 'ts_in_future']
      },
      outage: {
        // The program that pushes has lost its own source.
        begin: () =>
          overSocket(JSON.stringify({ type: 'disconnect', ts: clock.nowMs, sinceMs: clock.nowMs - 1_000 })),
        end: async () => void (await overHttp(JSON.stringify({ type: 'reconnect', ts: clock.nowMs }))),
      },
      close: async () => {
        socket.terminate()
        await server.remove()
      },
    }
  },
}

const pumpportal: Harness = {
  name: 'pumpportal',
  simulated: false,
  told: { events: true, states: true },
  isLight: true,
  keyOf: txOf,
  async start({ sink, clock, log }) {
    const upstream = await PumpPortalServer.start()
    const options = { reconnectMsMin: 1, reconnectMsMax: 1, random: () => 0, apiKey: SECRET }
    const feed = new PumpPortal({ url: upstream.url, ...options }, sink, clock, log)
    return {
      ...running(feed),
      async send(count) {
        const names = newNames(count)
        for (const name of names) upstream.send(tradeFrame(mintOfSymbol('portal'), name))
        return names
      },
      async spoil() {
        upstream.send('not JSON')
        upstream.send({ errors: `the key ${SECRET} is not good` })
        return ['unknown_frame', 'upstream_error']
      },
      outage: {
        begin: async () => {
          upstream.handshake = 503
          upstream.drop()
        },
        end: async () => {
          upstream.handshake = 'take'
        },
      },
      connections: () => upstream.connections.open,
      close: () => upstream.close(),
    }
  },
}

async function startBirdeye(port: number) {
  const upstream = await BirdeyeServer.start(port)
  const birdeye = new BirdeyeClient({ apiKey: SECRET, baseUrl: upstream.url, requestsPerSecond: 100 })
  return { upstream, birdeye }
}
const unavailable = json({ success: false, message: `the key ${SECRET} is not good` }, 500)

const security: Harness = {
  name: 'security',
  simulated: false,
  told: { events: false, states: true },
  isLight: true,
  keyOf: (event) => (event.type === 'patch' ? event.mint : null),
  async start({ sink, clock, log, port = 0 }) {
    const { upstream, birdeye } = await startBirdeye(port)
    const feed = new SecurityFeed({ birdeye, holds: () => true }, sink, clock, log)
    const ask = async (count: number): Promise<string[]> => {
      const mints = newNames(count).map(mintOfSymbol)
      for (const mint of mints) await askFor(feed, mint)
      return mints
    }
    const good = { ...upstream.answers }
    return {
      ...running(feed),
      reasons: ({ faults }) => faults as Record<string, number>,
      send: ask,
      async spoil() {
        upstream.answers = {
          [SECURITY_PATH]: json({ success: 'perhaps' }),
          [OVERVIEW_PATH]: json({ success: false }, 404),
        }
        await ask(1)
        upstream.answers = good
        return ['malformed', 'not_found']
      },
      outage: {
        begin: async () => {
          upstream.answers = { [SECURITY_PATH]: unavailable, [OVERVIEW_PATH]: unavailable }
          await ask(1)
        },
        end: async () => {
          upstream.answers = good
          await ask(1)
        },
      },
      port: upstream.port,
      connections: () => upstream.open.now,
      close: () => upstream.close(),
    }
  },
}

const solPrice: Harness = {
  name: 'solPrice',
  simulated: false,
  told: { events: false, states: true },
  isLight: true,
  keyOf: (event) => (event.type === 'solPrice' ? `${event.usd}` : null),
  async start({ sink, clock, log, port = 0 }) {
    const { upstream, birdeye } = await startBirdeye(port)
    // Each request gets the next answer; it waits for it where there is none yet.
    const answers: Answer[] = [success({ value: 100 })]
    let wake = () => {}
    upstream.answers[PRICE_PATH] = async (request, response) => {
      while (answers.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      answers.shift()?.(request, response)
    }
    const answer = async (...more: Answer[]) => {
      answers.push(...more)
      wake()
    }
    const feed = new SolPriceFeed({ birdeye, everyMs: 1 }, sink, clock, log)
    return {
      ...running(feed),
      async send(count) {
        const prices = newNames(count).map((_, index) => 1_000 + sent + index)
        await answer(...prices.map((value) => success({ value })))
        return prices.map(String)
      },
      async spoil() {
        await answer(success({ value: 'high' }), json({}, 404))
        return ['malformed', 'not_found']
      },
      outage: { begin: () => answer(unavailable), end: () => answer(success({ value: 99 })) },
      port: upstream.port,
      connections: () => upstream.open.now,
      close: () => upstream.close(),
    }
  },
}

const POOL = { quote_mint: SOL, base_mint_decimals: 6, quote_mint_decimals: 9 }
const SWAPPED = {
  ...{ base_amount_in: 7, quote_amount_out: 5 },
  ...{ pool_base_token_reserves: 1_000_000_000, pool_quote_token_reserves: 1_000_000_000 },
}

const solana: Harness = {
  name: 'solana',
  inFlightMs: IN_FLIGHT_MS,
  simulated: false,
  told: { events: true, states: true },
  isLight: true,
  keyOf: txOf,
  async start({ sink, clock, log, port = 0 }) {
    const node = await SolanaNode.start(port)
    const source = new LiveSource(
      {
        ...{ rpcUrls: [`${node.url}/?api-key=${SECRET}`], socketUrls: [], pulseMsMax: 60_000 },
        ...{ commitment: 'confirmed', requestsPerSecond: 1_000 },
      },
      clock,
    )
    const options = {
      reconnectMsMin: 1,
      reconnectMsMax: 1,
      random: () => 0,
      pools: 'all',
      holds: () => true,
    } as const
    const feed = new SolanaFeed({ source, commitment: 'confirmed', ...options }, sink, log)
    const seconds = () => BigInt(Math.floor(clock.nowMs / 1_000))
    return {
      ...running(feed),
      async send(count) {
        return newNames(count).map((name) => {
          // In a pool: the first trade on a curve waits for the one before it.
          const [mint, pool] = [mintOfSymbol(name), mintOfSymbol(`pool of ${name}`)]
          const timestamp = seconds()
          const transaction = transactionOf(name, node.slot, [
            encodeEvent('CreatePoolEvent', { ...POOL, base_mint: mint, pool, timestamp }),
            encodeEvent('SellEvent', { pool, timestamp, ...SWAPPED }),
          ])
          node.confirm(transaction)
          return transaction.signature
        })
      },
      async spoil() {
        node.send('not JSON')
        return ['unknown_frame']
      },
      outage: {
        begin: async () => {
          node.handshake = 503
          node.drop()
        },
        end: async () => {
          node.handshake = null
        },
      },
      port: node.port,
      connections: () => node.openConnections,
      close: () => node.close(),
    }
  },
}

export const HARNESSES: readonly Harness[] = [
  ...[simulator, replay, push, pumpportal, solana, security, solPrice],
]
