// In: what the market closes and says. Out: the store's records of it: closed bars, and versions of tokens. A part of the
// server: it alone knows how a bar lies in the market's memory. Never makes the market wait.
import type { Log } from '../lib/log.ts'
import type { Metrics } from '../lib/metrics.ts'
import { BV, buysOf, C, H, L, N, O, T, tradesOf, V } from '../market/bars/bar-ring.ts'
import type { Market, MarketOptions } from '../market/market.ts'
import { TIMEFRAMES } from '../schema/bar.ts'
import type { BarSink, Store } from '../store/types.ts'
import { createTokenProfileRecorder, type TokenProfileRecorder } from './token-profile-recorder.ts'

/** How often silent tokens are looked at, and how many at a time: 100 000 in five seconds. */
const SWEEP_EVERY_MS = 25
const SWEEP_TOKENS = 500
/** How often changed tokens are written: some of them, so that no submission waits for all. */
const TOKENS_EVERY_MS = 250
/** Who waits until all tokens are recorded waits no longer than this for a store that refuses them all. */
const RECORD_FAILING_MS_MAX = 3_000

export interface MarketRecorder {
  /** What the market is to call, inside its writes. */
  listeners: Required<Pick<MarketOptions, 'onBarClosed' | 'onProfile'>>
  /** The market whose records they are; before its first event. */
  of(market: Market): void
  /** Looks after silent tokens and changed ones from now on. */
  start(): void
  /** All that the market has closed is told of. */
  emitAll(): void
  /** Resolves when every change of a token so far is durable, or the store has refused one. */
  recorded(): Promise<void>
  /** Once the last event has come: everything is with the store. */
  stop(): Promise<void>
  stats(): { bars: ReturnType<BarSink['stats']>; tokens: ReturnType<TokenProfileRecorder['stats']> }
}

/** Keeps `store` told of what the market closes and says. */
export function createMarketRecorder(store: Pick<Store, 'bars' | 'profiles'>, log: Log): MarketRecorder {
  const { bars } = store
  const tokens = createTokenProfileRecorder(
    (rows) => store.profiles.write(rows),
    (mint, error) =>
      log.error({ mint, error: String(error) }, 'the store refuses this token: it is not recorded'),
  )
  const timers: NodeJS.Timeout[] = []
  let market: Market | null = null
  let writing: Promise<boolean> | null = null
  /** When, on the monotonic clock, the store began to refuse every commit of tokens; null while it takes them. */
  let failingSinceMs: number | null = null

  function emit(tokensMax: number): void {
    market!.emitClosedBars(tokensMax)
    bars.completeTo(market!.barsEmittedToMs)
  }

  function emitAll(): void {
    // The first call may end a round under way, the second is one of all tokens.
    for (let round = 0; round < 2; round++) emit(market!.tokensMax)
  }

  /** @returns whether more wait. */
  async function writeTokens(): Promise<boolean> {
    try {
      const isMore = await tokens.write(market!)
      if (failingSinceMs !== null) log.info(tokens.stats(), 'tokens are recorded again')
      failingSinceMs = null
      return isMore
    } catch (error) {
      // Once, not at each try.
      if (failingSinceMs === null)
        log.warn({ error: String(error) }, 'tokens could not be recorded; trying again')
      failingSinceMs ??= performance.now()
      return true
    } finally {
      writing = null
    }
  }

  function onBarClosed(
    mint: string,
    timeframe: number,
    values: Float64Array,
    at: number,
    watchedSinceMs: number,
  ): void {
    const counts = values[at + N]
    bars.add({
      mint,
      tf: TIMEFRAMES[timeframe],
      t: values[at + T],
      o: values[at + O],
      h: values[at + H],
      l: values[at + L],
      c: values[at + C],
      v: values[at + V],
      n: tradesOf(counts),
      buyV: values[at + BV],
      buys: buysOf(counts),
      closedAtMs: market!.timeMs,
      watchedSinceMs,
    })
  }

  async function recorded(): Promise<void> {
    await writing
    const isFailingForLong = () =>
      failingSinceMs !== null && performance.now() - failingSinceMs > RECORD_FAILING_MS_MAX
    while ((await writeTokens()) && !isFailingForLong());
  }

  return {
    listeners: { onBarClosed, onProfile: tokens.note },
    of(watched) {
      market = watched
    },
    start() {
      timers.push(setInterval(() => emit(SWEEP_TOKENS), SWEEP_EVERY_MS))
      timers.push(setInterval(() => (writing ??= writeTokens()), TOKENS_EVERY_MS))
    },
    emitAll,
    recorded,
    async stop() {
      for (const timer of timers) clearInterval(timer)
      emitAll()
      await recorded()
      const { waiting, dropped: droppedTokens, refused } = tokens.stats()
      const dropped = { bars: bars.stats().dropped, tokens: waiting + droppedTokens + refused }
      if (dropped.bars + dropped.tokens > 0)
        log.warn(dropped, 'the store did not keep up: these are not on record')
    },
    stats: () => ({ bars: bars.stats(), tokens: tokens.stats() }),
  }
}

/** Figures of what is on its way. */
export function readRecorderMetrics(metrics: Metrics, records: MarketRecorder): void {
  const { stats } = records
  metrics.read(
    'mintlake_lake_bars_waiting',
    'Closed bars on their way to the store',
    () => stats().bars.waiting,
  )
  metrics.read(
    'mintlake_lake_bars_dropped_total',
    'Closed bars dropped because the store did not keep up',
    () => stats().bars.dropped,
  )
  metrics.read(
    'mintlake_lake_tokens_waiting',
    'Tokens whose new version is not written yet',
    () => stats().tokens.waiting,
  )
  metrics.read(
    'mintlake_lake_tokens_dropped_total',
    'Versions of tokens dropped because the store did not keep up',
    () => stats().tokens.dropped,
  )
  metrics.read(
    'mintlake_lake_tokens_refused_total',
    'Versions of tokens that the store refused alone',
    () => stats().tokens.refused,
  )
}
