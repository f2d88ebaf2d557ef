// A market that the feed makes of a simulated chain, through outages and deaths of its process; and what it shows, to be compared.

import { SolanaFeed, type SolanaOptions } from '../../../src/ingest/solana/solana.ts'
import type { Feed, RecordedPlace, RecordedTo } from '../../../src/ingest/types.ts'
import { Market } from '../../../src/market/market.ts'
import { LATE_GRACE_MS } from '../../../src/market/time/limits.ts'
import { TIMEFRAMES } from '../../../src/schema/bar.ts'
import type { DataPoint } from '../../../src/schema/datapoint.ts'
import type { MarketEvent, MissingPart, TradeEvent } from '../../../src/schema/event.ts'
import { SimulatedChain, type SimulatedChainOptions } from '../../support/chain/simulated-chain.ts'
import { MemoryLog } from '../memory-sink.ts'

/** As many as have room for every bar of the hour: which of the oldest bars a full pool still has depends on the order in which they came. */
const TOKENS_MAX = process.env.MINTLAKE_TEST_CHAIN_MINUTES === undefined ? 1_024 : 131_072
const FEED = 'solana'

export interface RunOptions extends SimulatedChainOptions {
  endMs: number
  healMs: number
  /** What is done in its midst. */
  turns?: readonly { atMs: number; do: (run: SimulatedMarket) => void | Promise<void> }[]
  more?: Partial<SolanaOptions>
}

interface Recorded {
  event: MarketEvent
  atMs: number
}

export class SimulatedMarket {
  market = new Market({ tokensMax: TOKENS_MAX })
  readonly chain: SimulatedChain
  readonly log = new MemoryLog()
  recorded: Recorded[] = []
  feed: Feed | null = null
  rejections: string[] = []
  #life = 0
  readonly #healMs: number
  readonly #more: Partial<SolanaOptions>

  constructor(options: RunOptions) {
    this.chain = new SimulatedChain(options)
    this.#healMs = options.healMs
    this.chain.onTick = () => this.market.advanceTo(this.chain.clock.now())
    this.#more = options.more ?? {}
  }

  apply(event: MarketEvent, receivedAtMs: number) {
    const rejection = this.market.apply(event, receivedAtMs)
    if (rejection === null) this.recorded.push({ event, atMs: this.market.timeMs })
    else this.rejections.push(`${event.type} ${rejection}`)
    return rejection
  }

  start(recordedTo: RecordedTo | null): void {
    const recorded = this.recorded.flatMap(({ event }): RecordedPlace[] =>
      event.type === 'trade' && event.slot != null
        ? [
            {
              ...{ tx: event.tx!, eventIndex: event.eventIndex!, slot: event.slot, ts: event.ts },
              isCurve: event.curveTokens != null,
            },
          ]
        : [],
    )
    const life = ++this.#life
    this.feed = new SolanaFeed(
      {
        ...{ source: this.chain, commitment: 'confirmed', pools: 'migrated', random: () => 0 },
        ...{ holds: (mint) => this.market.has(mint), recorded, recordedTo, healMs: this.#healMs },
        ...{ reconnectMsMin: 250, reconnectMsMax: 250, ...this.#more },
      },
      // A process that is dead delivers nothing more.
      { apply: (event, receivedAtMs) => (life === this.#life ? this.apply(event, receivedAtMs) : null) },
      this.log,
    )
  }

  /** The process dies, and the next one begins later, with what was recorded. */
  async kill(downMs: number, eventsLost: number): Promise<void> {
    const kept = this.recorded.slice(0, this.recorded.length - eventsLost)
    this.recorded = []
    const dead = this.feed
    this.#life++
    this.chain.forgetCaller()
    this.market = new Market({ tokensMax: TOKENS_MAX })
    await dead?.stop()
    for (const { event, atMs } of kept) this.market.apply(event, atMs)
    this.recorded = kept
    const { timeMs } = this.market
    const awaySinceMs = this.market.gaps(1).open.find(({ feed }) => feed === FEED)?.fromMs ?? null
    this.chain.onTick = () => {}
    await this.chain.runTo(this.chain.nowMs + downMs)
    this.chain.onTick = () => this.market.advanceTo(this.chain.clock.now())
    const healUntilMs = this.chain.clock.now() + this.#healMs
    this.apply(
      { type: 'disconnect', ts: timeMs, feed: FEED, sinceMs: timeMs - LATE_GRACE_MS, healUntilMs },
      timeMs,
    )
    this.start({ timeMs, awaySinceMs })
  }

  checkpoint(): void {
    const sections = new Map<string, Uint8Array>()
    for (const { name, bytes } of this.market.save()) sections.set(name, bytes.slice())
    this.market = Market.restore({ tokensMax: TOKENS_MAX }, (name) => sections.get(name) ?? null)
  }

  /** Parts that stay missing, as they were told. */
  get missing(): MissingPart[] {
    return this.recorded.flatMap(({ event }) => (event.type === 'reconnect' ? (event.missing ?? []) : []))
  }

  get healing(): Record<string, unknown> & { now: unknown } {
    return this.feed?.describe().healing as Record<string, unknown> & { now: unknown }
  }
}

/** Runs a market to its end. */
export async function runMarket(options: RunOptions): Promise<SimulatedMarket> {
  const run = new SimulatedMarket(options)
  const { turns = [], endMs } = options
  run.start(null)
  for (const turn of turns.toSorted((a, b) => a.atMs - b.atMs)) {
    await run.chain.runTo(turn.atMs)
    await turn.do(run)
  }
  await run.chain.runTo(endMs)
  run.market.advanceTo(run.chain.clock.now())
  return run
}

/** When the chain was asked differs with when a trade was had. */
const withoutTimes = ({ enriched_at: _, enrichedFrom, ...rest }: DataPoint) => ({
  ...rest,
  enrichedFrom: enrichedFrom.map(({ source, fields }) => ({ source, fields })),
})

/** What a token shows: its bars of all timeframes and its DataPoint, without what says when it was made. */
export function shownOf(market: Market, mint: string): Record<string, unknown> {
  const bars = TIMEFRAMES.map((tf) => {
    const told = market.bars({ mint, tf, limit: 10_000, fromMs: null, toMs: null, fill: 'none' })
    return [tf, { bars: told?.bars, gaps: told?.gaps }]
  })
  return {
    bars: Object.fromEntries(bars),
    datapoint: withoutTimes(JSON.parse(`${market.datapointJson(mint)!.json}`)),
  }
}

/** The mints in hot order. */
export const hotOrder = (market: Market): string[] =>
  market
    .page({ tab: 'all', sort: 'hot', order: 'desc', limit: 10_000, offset: 0 })
    .lines.map((line) => JSON.parse(`${line}`).mint)

/** The recorded trades, as rows without what says when they came, in the order of the chain. */
export function tradesOf({ recorded }: SimulatedMarket): TradeEvent[] {
  const trades = recorded.flatMap(({ event }) => (event.type === 'trade' ? [event] : []))
  const key = ({ tx, eventIndex }: TradeEvent) => `${tx}:${eventIndex}`
  return trades.sort((a, b) => (a.slot ?? 0) - (b.slot ?? 0) || (key(a) < key(b) ? -1 : 1))
}
