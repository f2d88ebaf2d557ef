// What the feed of the chain costs at 2 000 transactions a second over a real WebSocket, from the frame to the market that shows the
// trade, beside finding and decoding the events of the same frames alone; and how long a trade takes from its notification to a page.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readEvent } from '../../src/ingest/solana/decode-event.ts'
import { SolanaFeed } from '../../src/ingest/solana/solana.ts'
import { LiveSource } from '../../src/ingest/solana/source.ts'
import { subscribe } from '../../src/ingest/solana/subscription.ts'
import { eventsInLog } from '../../src/ingest/solana/transaction-events.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Market } from '../../src/market/market.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { inFolder, type Measured, type Question, quantile, type RunOptions } from '../harness.ts'
import { endProgram, startProgram } from '../load.ts'

const NODE = fileURLToPath(new URL('../servers/chain-node.ts', import.meta.url))
const RATE = 2_000
/** A page is read after each so many trades. */
const TRADES_PER_PAGE = 20
const TOKENS_MAX = 16_384
/** What is told arrives within this, however busy the machine. */
const ARRIVAL_MS_MAX = 30_000
const quiet = { info() {}, warn() {}, error() {} }
const DECODING = 'decoding alone'

/** Half of it warms up: code is compiled then, and the first pages are made. */
const secondsOf = ({ small }: RunOptions): number => (small ? 0.5 : 12)

/** What reads the chain at an address. */
interface Reader {
  /** Events of both programs that were decoded. */
  events(): number
  /** Trades that a page has shown, and when. */
  readonly shown: ReadonlyMap<string, number>
  stop(): Promise<void>
}

function startFeed(url: string): Reader {
  const market = new Market({ tokensMax: TOKENS_MAX })
  const shown = new Map<string, number>()
  let trades = 0
  const apply = (event: MarketEvent, receivedAtMs: number) => {
    const rejection = market.apply(event, receivedAtMs)
    if (rejection !== null) throw new Error(`a ${event.type} is refused: ${rejection}`)
    if (event.type !== 'trade' || trades++ % TRADES_PER_PAGE !== 0) return null
    market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 100, offset: 0 })
    shown.set(event.tx!, performance.timeOrigin + performance.now())
    return null
  }
  const source = new LiveSource(
    { rpcUrls: [url], socketUrls: [], commitment: 'confirmed', requestsPerSecond: 1_000 },
    systemClock,
  )
  const options = { source, commitment: 'confirmed', pools: 'migrated', random: () => 0 } as const
  const feed = new SolanaFeed({ ...options, holds: (mint) => market.has(mint) }, { apply }, quiet)
  const events = () => {
    const { events: decoded, rejected } = feed.describe() as unknown as Record<string, Record<string, number>>
    if (Object.keys(rejected).length > 0) throw new Error(`refused: ${JSON.stringify(rejected)}`)
    return Object.values(decoded).reduce((sum, count) => sum + count, 0)
  }
  return { events, shown, stop: () => feed.stop() }
}

function startDecoding(url: string): Reader {
  let events = 0
  const stopping = new AbortController()
  const nothing = () => {}
  const handlers = {
    ...{ onSubscribed: nothing, onSlot: nothing, onAccount: nothing, onUnknown: nothing },
    ...{ onRefused: nothing, onHandlerError: console.error },
    onLogs: ({ lines }: { lines: readonly string[] }) => {
      for (const { program, bytes } of eventsInLog(lines).events)
        if (readEvent(program, bytes).kind === 'event') events++
    },
  }
  const running = subscribe(url.replace('http', 'ws'), 'confirmed', handlers, stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  return { events: () => events, shown: new Map(), stop }
}

/** Waits for what a program prints, whatever chunks it comes in. @returns the match */
async function untilPrinted(
  program: { text: string },
  pattern: RegExp,
  msMax: number,
): Promise<RegExpExecArray> {
  const lateMs = performance.now() + msMax
  for (;;) {
    const match = pattern.exec(program.text)
    if (match !== null) return match
    if (performance.now() > lateMs) throw new Error(`the node does not print ${pattern}`)
    await sleep(1)
  }
}

/** Has a node tell its market to a reader, and takes the CPU of this process meanwhile. */
const told = (start: (url: string) => Reader) => (options: RunOptions) =>
  inFolder(async (folder): Promise<Measured> => {
    const seconds = secondsOf(options)
    const file = join(folder, 'told.json')
    const node = await startProgram(
      process.execPath,
      ['--no-warnings', NODE, `${RATE}`, `${seconds}`, file],
      {},
      1,
    )
    const printed = { text: '' }
    node.child.stdout!.on('data', (chunk) => {
      printed.text += chunk
    })
    const reader = start(`http://127.0.0.1:${node.port}`)
    try {
      const msMax = 1_000 * seconds + ARRIVAL_MS_MAX
      await untilPrinted(printed, /warm\n/, msMax)
      const before = process.cpuUsage()
      const [, count] = await untilPrinted(printed, /warm\n(\d+)\n/, msMax)
      const events = Number(count)
      const lateMs = performance.now() + ARRIVAL_MS_MAX
      while (reader.events() < events && performance.now() < lateMs) await sleep(1)
      const { user, system } = process.cpuUsage(before)
      if (reader.events() !== events) throw new Error(`${reader.events()} of ${events} events have arrived`)
      const toldAtMs = JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>
      const latencies = [...reader.shown]
        .filter(([tx]) => tx in toldAtMs)
        .map(([tx, atMs]) => atMs - toldAtMs[tx])
        .sort((x, y) => x - y)
      return {
        metrics: {
          corePercent: (user + system) / 1e4 / (seconds / 2),
          transactionUs: (user + system) / (RATE * (seconds / 2)),
          ...(latencies.length > 0
            ? { p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) }
            : {}),
        },
        checksum: `${events} events`,
        sample: [events],
      }
    } finally {
      await reader.stop()
      await endProgram(node)
    }
  })

const lower = { better: 'lower' } as const

export const question: Question = {
  name: 'chain',
  title: 'the feed of the chain at 2 000 transactions a second',
  rounds: 3,
  candidates: { ours: told(startFeed), [DECODING]: told(startDecoding) },
  comparisons: [
    {
      title: 'the chain at 2 000 transactions/s: feed and market',
      ...{ metric: 'corePercent', unit: '% of a core', against: DECODING, ...lower },
    },
    { title: 'the chain: from a notification to a page, p50', metric: 'p50Ms', unit: 'ms', ...lower },
    { title: 'the chain: from a notification to a page, p99', metric: 'p99Ms', unit: 'ms', ...lower },
  ],
}
