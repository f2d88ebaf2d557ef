// What lists by figures cost: 100 000 tokens, 20 000 trades a second of market time. Every tenth of a second a page of 100 rows is read by
// hot and by each figure; the trades are timed with and without the orders by figures. And what a window of 60 rows and a whole tab
// send in a second at 300 trades a second, plain and compressed.
import type { BodyWriter } from '../../src/http/context.ts'
import { Broadcaster } from '../../src/http/stream/broadcaster.ts'
import type { WriteKind } from '../../src/http/stream/follower.ts'
import { GzipWriter, SharedGzip } from '../../src/http/stream/gzip-stream.ts'
import { MarketChannel } from '../../src/http/stream/market-channel.ts'
import { WindowChannel } from '../../src/http/stream/window-channel.ts'
import { Market } from '../../src/market/market.ts'
import { COMPACT_ROW_FIELDS } from '../../src/schema/market-item.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { FIGURE_SORTS, type Sort } from '../../src/schema/vocabulary.ts'
import { random } from '../datasets/random.ts'
import { type Comparison, type Measured, median, type Question, type RunOptions, sha } from '../harness.ts'

const START_MS = 1_772_000_000_000
const PAGE = { tab: 'all', order: 'desc', offset: 0, limit: 100 } as const
const READ_EVERY_MS = 100
const TRADES_PER_MS = 20
const WINDOW_ROWS = 60
const STREAM_TRADES_PER_SECOND = 300

/** How long `act` takes, ms. */
function timed(act: () => void): number {
  const startedMs = performance.now()
  act()
  return performance.now() - startedMs
}

/** A market whose tokens trade, the first ones most. */
class Traded {
  readonly market: Market
  readonly #mints: string[]
  readonly #prices: Float64Array
  readonly #next = random(1)
  nowMs = START_MS

  constructor(tokens: number) {
    this.market = new Market({ tokensMax: tokens })
    this.#mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
    this.#prices = new Float64Array(tokens).fill(1e-4)
    for (const [index, mint] of this.#mints.entries()) {
      const texts = {
        name: `Token ${index}`,
        symbol: `T${index}`,
        description: 'Of the benchmark',
        totalSupply: 1e9,
      }
      this.market.apply({ type: 'token', mint, ts: START_MS, ...texts }, START_MS)
    }
  }

  trade(): void {
    const index = Math.floor(this.#mints.length * this.#next() ** 3)
    this.#prices[index] *= 1 + (this.#next() - 0.5) * 0.02
    const side = this.#next() < 0.5 ? 'buy' : 'sell'
    const trade = {
      mint: this.#mints[index],
      ts: this.nowMs,
      tokenAmount: 1e6 * this.#next(),
      priceUsd: this.#prices[index],
    }
    this.market.apply({ type: 'trade', side, ...trade }, this.nowMs)
  }

  /** So many milliseconds of trades. @returns how long they took, ms */
  pass(ms: number): number {
    return timed(() => {
      for (let step = 0; step < ms; step++) {
        this.nowMs++
        for (let count = 0; count < TRADES_PER_MS; count++) this.trade()
      }
    })
  }
}

/** The name of the metric. */
const pageMetric = (sort: Sort): string => `page by ${sort}, µs`

async function pages({ small }: RunOptions): Promise<Measured> {
  const made = new Traded(small ? 1_000 : 100_000)
  const { market } = made
  const rounds = small ? 5 : 150
  const read = (sort: Sort) => timed(() => market.page({ ...PAGE, sort }))
  made.pass(small ? 100 : 10_000)
  read('hot')
  let aloneMs = 0
  for (let round = 0; round < rounds / 5; round++) {
    aloneMs += made.pass(READ_EVERY_MS)
    read('hot')
  }
  const first = FIGURE_SORTS.map(read)
  const hot: number[] = []
  const figures = new Map<Sort, number[]>(FIGURE_SORTS.map((sort) => [sort, []]))
  let besideMs = 0
  for (let round = 0; round < rounds; round++) {
    besideMs += made.pass(READ_EVERY_MS)
    hot.push(read('hot'))
    for (const [sort, times] of figures) times.push(read(sort))
  }
  const all = [...figures.values()]
  const perTrade = (ms: number, count: number) => (1_000 * ms) / (count * READ_EVERY_MS * TRADES_PER_MS)
  return {
    metrics: {
      hotPageUs: 1_000 * median(hot),
      figurePageUs: 1_000 * Math.max(...all.map(median)),
      ...Object.fromEntries([...figures].map(([sort, times]) => [pageMetric(sort), 1_000 * median(times)])),
      worstPageMs: Math.max(...all.flat()),
      firstPageMs: Math.max(...first),
      tradeUs: perTrade(aloneMs, rounds / 5),
      tradeBesideUs: perTrade(besideMs, rounds),
    },
    checksum: sha(market.page({ ...PAGE, sort: 'volume_24h' }).ndjson),
  }
}

/** Counts what a stream is sent. */
class Counter implements BodyWriter {
  bytes = 0
  write(bytes: Buffer, _kind?: WriteKind, tail?: Buffer): boolean {
    this.bytes += bytes.length + (tail?.length ?? 0)
    return true
  }
  end(): void {}
  fail(): void {}
  onWritable(): void {}
  onClosed(): void {}
}

/** Streams of a market with 300 trades a second, in real time. */
async function streams({ small }: RunOptions): Promise<Measured> {
  const made = new Traded(small ? 500 : 9_000)
  made.pass(small ? 10 : 1_000)
  const { market } = made
  const broadcaster = new Broadcaster(market)
  const shared = new SharedGzip()
  const counters = {
    window: new Counter(),
    windowGzip: new Counter(),
    tab: new Counter(),
    tabGzip: new Counter(),
  }
  const fields = { key: COMPACT_ROW_FIELDS.join(), fields: COMPACT_ROW_FIELDS }
  const place = { tab: 'all', sort: 'volume_1h', order: 'desc', offset: 0, limit: WINDOW_ROWS } as const
  const window = () => broadcaster.window(new WindowChannel(market, { ...place, filter: null, fields }), '')
  const tab = new MarketChannel(market, 'all')
  const connect = (writer: BodyWriter) => broadcaster.connect(writer, 'ndjson')
  broadcaster.subscribe(connect(counters.window), window(), 0)
  broadcaster.subscribe(connect(new GzipWriter(counters.windowGzip, shared)), window(), 0)
  broadcaster.subscribe(connect(counters.tab), tab, market.seq)
  broadcaster.subscribe(connect(new GzipWriter(counters.tabGzip, shared)), tab, market.seq)
  const firstBytes = counters.window.bytes
  for (const counter of Object.values(counters)) counter.bytes = 0
  const seconds = small ? 1 : 10
  const startedMs = performance.now()
  for (let traded = 0; traded < seconds * STREAM_TRADES_PER_SECOND; ) {
    const due = Math.floor(((performance.now() - startedMs) * STREAM_TRADES_PER_SECOND) / 1_000)
    made.nowMs = START_MS + 60_000 + Math.floor(performance.now() - startedMs)
    for (; traded < due; traded++) made.trade()
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  broadcaster.close('draining')
  const perSecond = (counter: Counter) => counter.bytes / seconds / 1_000
  return {
    metrics: {
      firstKb: firstBytes / 1_000,
      windowKbPerSecond: perSecond(counters.window),
      windowGzipKbPerSecond: perSecond(counters.windowGzip),
      tabKbPerSecond: perSecond(counters.tab),
      tabGzipKbPerSecond: perSecond(counters.tabGzip),
    },
    checksum: 'streams',
  }
}

const row = (of: string, title: string, metric: string, unit: string, gate?: number): Comparison => ({
  title,
  metric,
  of,
  unit,
  ...(gate !== undefined && { gate, stretch: gate / 2 }),
  better: 'lower',
})

const PAGES = 'pages by figures'
const STREAMS = 'streams at 300 trades/s'

export const question: Question = {
  name: 'lists',
  title: 'lists by figures, and windows of them',
  rounds: 1,
  candidates: { [PAGES]: pages, [STREAMS]: streams },
  comparisons: [
    row(PAGES, 'page by hot', 'hotPageUs', 'µs'),
    ...FIGURE_SORTS.map((sort) => row(PAGES, `page by ${sort}`, pageMetric(sort), 'µs')),
    row(PAGES, 'page by the slowest figure', 'figurePageUs', 'µs', 5_000),
    row(PAGES, 'page by any figure, the slowest of all', 'worstPageMs', 'ms', 100),
    row(PAGES, 'first page by a figure', 'firstPageMs', 'ms', 500),
    row(PAGES, 'a trade, nobody reads figures', 'tradeUs', 'µs'),
    row(PAGES, 'a trade beside pages by all figures', 'tradeBesideUs', 'µs'),
    row(STREAMS, 'a window of 60 rows at first', 'firstKb', 'kB', 100),
    row(STREAMS, 'a window of 60 rows', 'windowKbPerSecond', 'kB/s', 30),
    row(STREAMS, 'a window of 60 rows, gzip', 'windowGzipKbPerSecond', 'kB/s'),
    row(STREAMS, 'everything', 'tabKbPerSecond', 'kB/s'),
    row(STREAMS, 'everything, gzip', 'tabGzipKbPerSecond', 'kB/s'),
  ],
}
