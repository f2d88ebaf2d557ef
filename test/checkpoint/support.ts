// A market with events of every kind, and everything that two markets answer, to compare them.
import { hash } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Market } from '../../src/market/market.ts'
import { TIMEFRAMES } from '../../src/schema/bar.ts'
import type { DataPoint } from '../../src/schema/datapoint.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { SORTS, TABS } from '../../src/schema/vocabulary.ts'
import { SteppedClock } from '../support/clock.ts'
import { type TestServer, temporaryFolder } from '../support/test-server.ts'

export const NOON_MS = Date.UTC(2025, 5, 1, 12)
export const MINTS = Array.from({ length: 12 }, (_, index) => mintOfSymbol(`token ${index}`))

export const noonClock = (): SteppedClock => new SteppedClock(NOON_MS)

/** Header and end of a segment are less. */
const SEGMENT_WITH_BATCHES_BYTES_MIN = 4_000

/** What is not known while a gap touches its window. */
const OF_OWN_TRADES = {
  unique_wallet_24h: null,
  unique_wallet_1h: null,
  buy_volume_24h_usd: null,
  sell_volume_24h_usd: null,
  enriched_at: null,
  enriched_source: null,
  enrichedFrom: [],
}

const withoutOwnTrades = (datapoint: DataPoint | null) => ({
  ...datapoint,
  ...OF_OWN_TRADES,
  enrichedFrom: datapoint?.enrichedFrom.filter(({ source }) => source !== 'trades'),
})

/** Everything that a market answers but for positions, which no two runs share, and for gaps. */
export function answersOf(market: Market) {
  const list = { offset: 0, limit: 1_000 } as const
  const pages = TABS.flatMap((tab) =>
    SORTS.map((sort) => market.page({ tab, sort, order: 'desc', ...list }).ndjson.toString()),
  )
  const tokens = MINTS.map((mint) => ({
    datapoint: withoutOwnTrades(market.datapoint(mint)),
    profile: market.profile(mint),
    enriched: { ...market.enriched(mint), ...OF_OWN_TRADES },
    versions: [0, 1_000, 30_000, 90_000, 200_000].map((ageMs) =>
      market.versionsAt(mint, market.timeMs - ageMs).slice(0, 1),
    ),
    bars: TIMEFRAMES.map(
      (tf) => market.bars({ mint, tf, limit: 1_000, fromMs: null, toMs: null, fill: 'none' })?.bars,
    ),
  }))
  return { pages, tokens, timeMs: market.timeMs, solPrice: market.solPrice }
}

/** Pushes launches, trades, patches and more of some seconds, and lets the time pass. */
export async function pushSome(server: TestServer, clock: SteppedClock, rounds = 12): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const ts = clock.wallMs
    await server.client.push(
      { type: 'solPrice', ts, usd: 100 + round / 7 },
      ...MINTS.flatMap((mint, index) => [
        ...(round === 0
          ? [{ type: 'token', mint, ts, name: `Token ${index}`, symbol: `T${index}`, creator: 'me' }]
          : []),
        ...Array.from({ length: 1 + (index % 3) }, (_, trade) => ({
          ...{ type: 'trade', mint, ts: ts - trade * 10, side: (round + index) % 3 ? 'buy' : 'sell' },
          ...{ tokenAmount: 1_000 / (index + 1), solAmount: 0.01 * (1 + ((round * 7 + index) % 5)) },
          ...{ wallet: `w${round % 4}`, tx: `tx-${ts}-${index}-${trade}` },
        })),
      ]),
      {
        type: 'patch',
        mint: MINTS[round % MINTS.length],
        ts,
        fields: { holderCount: round, top10HolderPct: 12.5 },
      },
      { type: 'live', mint: MINTS[3], ts, isLive: round % 2 === 0, viewerCount: round },
    )
    clock.pass(7_000)
    server.market.advanceTo(clock.wallMs)
  }
}

/** Waits until everything so far is recorded. @returns the number of the last event */
export async function whenRecorded(server: Pick<TestServer, 'client'>): Promise<number> {
  for (;;) {
    const { journal } = (await server.client.get('/health')).body.recording
    if (journal.waitingBytes === 0 && journal.writtenEventNo > 0) {
      await new Promise((resolve) => setTimeout(resolve, 60))
      const { journal: later } = (await server.client.get('/health')).body.recording
      if (later.writtenEventNo === journal.writtenEventNo && later.waitingBytes === 0)
        return later.writtenEventNo
    }
  }
}

const COPIES_MAX = 10

/** What a power cut at this moment would leave of the folder, if the disk had everything. */
export async function crashImage(server: TestServer): Promise<string> {
  await whenRecorded(server)
  for (let copies = 1; ; copies++) {
    const image = temporaryFolder()
    try {
      const filter = (path: string) => !path.endsWith('server.lock')
      cpSync(server.dataDir, image, { recursive: true, verbatimSymlinks: true, filter })
      return image
    } catch (error) {
      // A file that was listed had gone before it was copied: no moment of the folder.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || copies === COPIES_MAX) throw error
    }
  }
}

export const journalOf = (dataDir: string): string => join(dataDir, 'journal')
export const checkpointsOf = (dataDir: string): string => join(dataDir, 'checkpoints')

/** Changes a byte in the middle of the newest segment of the journal that has batches, at rest. */
export function flipNewestSegment(dataDir: string): void {
  const folder = journalOf(dataDir)
  const segments = readdirSync(folder).toSorted()
  const path = segments
    .map((name) => join(folder, name))
    .findLast((path) => readFileSync(path).length > SEGMENT_WITH_BATCHES_BYTES_MIN)
  if (path === undefined) throw new Error('no segment has batches')
  const bytes = readFileSync(path)
  const at = Math.floor(bytes.length / 2)
  bytes[at] ^= 1
  writeFileSync(path, bytes)
}

/** A digest of what readers see after an event: the first page of each list, and DataPoint and minutes of these tokens. */
export function digestOf(market: Market, mints: Iterable<string>): string {
  const pages = TABS.flatMap((tab) =>
    SORTS.map((sort) => market.page({ tab, sort, order: 'desc', offset: 0, limit: 50 }).ndjson.toString()),
  )
  const tokens = [...mints].map((mint) => [
    market.datapoint(mint),
    market.bars({ mint, tf: '1m', limit: 1_000, fromMs: null, toMs: null, fill: 'none' }),
  ])
  return hash('sha1', JSON.stringify([market.timeMs, pages, tokens]), 'hex')
}

/** Takes a digest after every so many events that a market takes, by the number of the event. */
export class Digests {
  readonly byEventNo = new Map<number, string>()
  readonly #every: number
  #touched = new Set<string>()
  #isOver = false

  constructor(every: number) {
    this.#every = every
  }

  /** To be called after each event that the market has taken. */
  note(market: Market, eventNo: number, event: MarketEvent): void {
    if (this.#isOver) return
    if ('mint' in event) this.#touched.add(event.mint)
    if (eventNo % this.#every !== 0) return
    this.byEventNo.set(eventNo, digestOf(market, this.#touched))
    this.#touched = new Set()
  }

  /** Nothing is noted any more. */
  end(): void {
    this.#isOver = true
  }

  /** Notes every event of a running server from now on. @param eventNo of the last one that it has recorded */
  follow(market: Market, eventNo: number): void {
    let lastNo = eventNo
    /** Other tokens may have been touched before. */
    const firstNo = eventNo + this.#every
    const apply = market.apply.bind(market)
    market.apply = (event, receivedAtMs) => {
      const rejection = apply(event, receivedAtMs)
      if (rejection === null) this.note(market, ++lastNo, event)
      if (lastNo < firstNo) this.byEventNo.clear()
      return rejection
    }
  }
}
