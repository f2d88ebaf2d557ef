// In: what the market closes and says. Out: the store's records of it: closed bars. A part of the house: it alone knows
// how a bar lies in the market's memory. Never makes the market wait.
import type { Log } from './lib/log.ts'
import type { Metrics } from './lib/metrics.ts'
import { BV, buysOf, C, H, L, N, O, T, tradesOf, V } from './market/bar-ring.ts'
import type { BarListener, Market } from './market/market.ts'
import { TIMEFRAMES } from './schema/bar.ts'
import type { BarDoor } from './store/types.ts'

/** How often silent tokens are looked at, and how many at a time: 100 000 in five seconds. */
const SWEEP_EVERY_MS = 100
const SWEEP_TOKENS = 2_000

export interface Records {
  /** Told of each closed bar, inside the market's write. */
  onBarClosed: BarListener
  /** The market whose bars they are; before its first event. */
  of(market: Market): void
  /** Looks after silent tokens from now on. */
  start(): void
  /** All that the market has closed is told of. */
  handOutAll(): void
  /** The same, once the last event has come. */
  stop(): void
}

/** Keeps `bars` told of what the market closes. */
export function createRecords(bars: BarDoor, log: Log): Records {
  let market: Market | null = null
  let timer: NodeJS.Timeout | null = null

  function tellTimes(from: Market): void {
    bars.watchedSince(from.sinceMs)
    bars.completeTo(from.barsHandedOutToMs)
  }

  function sweep(from: Market): void {
    from.handOutBars(SWEEP_TOKENS)
    tellTimes(from)
  }

  function handOutAll(): void {
    // The first call may end a round under way, the second is one of all tokens.
    for (let round = 0; round < 2; round++) market!.handOutBars(market!.tokensMax)
    tellTimes(market!)
  }

  return {
    onBarClosed(mint, timeframe, values, at) {
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
      })
    },
    of(watched) {
      market = watched
    },
    start() {
      timer = setInterval(() => sweep(market!), SWEEP_EVERY_MS)
    },
    handOutAll,
    stop() {
      if (timer !== null) clearInterval(timer)
      if (market === null) return
      handOutAll()
      const { dropped } = bars.stats()
      if (dropped > 0) log.warn({ bars: dropped }, 'closed bars that the store never got')
    },
  }
}

/** Figures of what is on its way. */
export function readRecordMetrics(metrics: Metrics, bars: BarDoor): void {
  metrics.read(
    'mintlake_lake_bars_waiting',
    'Closed bars on their way to the store',
    () => bars.stats().waiting,
  )
  metrics.read(
    'mintlake_lake_bars_dropped_total',
    'Closed bars dropped because the store did not keep up',
    () => bars.stats().dropped,
  )
}
