import type { Random } from './random.ts'

export type Process = 'trade' | 'launch' | 'patch' | 'census' | 'solPrice' | 'stream' | 'drift'

export interface ScheduleOptions {
  startMs: number
  historyMs: number
  tokens: number
  tradesPerSecond: number
}

const PROCESSES: readonly Process[] = ['trade', 'launch', 'patch', 'census', 'solPrice', 'stream', 'drift']
/** Trades in the history, per initial token, and at most. */
const HISTORY_TRADES_PER_TOKEN = 26
const HISTORY_TRADES_MAX = 80_000
/** Share of the initial tokens that are launched within the history. */
const HISTORY_LAUNCH_SHARE = 0.4
/** The density of events in the history is proportional to 1 / (age + this). */
const DENSITY_MS = 600_000
/** All tokens are patched once more within this time before the start, so that the initial lists are up to date. */
const CENSUS_MS = 120_000
/** Trades per event of each process, in the live market and, except for launches, in the history. */
const TRADES_PER = { trade: 1, launch: 1_500, patch: 12, stream: 600, drift: 60 } as const
const SOL_PRICE_HISTORY_MS = 60_000
const SOL_PRICE_MS = 5_000
/** The queue of due patches is compacted after this many of its items were taken. */
const QUEUE_COMPACT_ITEMS = 4_096

/**
 * Decides what happens next, and when. Each process is a Poisson process, or regular. Before the start of the live market there is a
 * coarse history that becomes denser towards the start.
 */
export class Schedule {
  readonly tokensBeforeHistory: number
  /** When the latest event happened, Unix ms, with fractions. */
  timeMs: number
  readonly #random: Random
  readonly #options: ScheduleOptions
  readonly #historyTrades: number
  readonly #historyLaunches: number
  /** ln((age + DENSITY_MS) / DENSITY_MS) at the beginning of the history. */
  readonly #historyDepth: number
  /** The time of the next event of each process, in the order of PROCESSES. */
  readonly #next: Float64Array
  #itemsTaken = 0

  constructor(random: Random, options: ScheduleOptions) {
    this.#random = random
    this.#options = options
    this.timeMs = options.startMs - options.historyMs
    this.#historyTrades = Math.min(HISTORY_TRADES_MAX, options.tokens * HISTORY_TRADES_PER_TOKEN)
    this.#historyLaunches = Math.floor(options.tokens * HISTORY_LAUNCH_SHARE)
    this.#historyDepth = this.#depthAt(this.timeMs)
    this.tokensBeforeHistory = Math.max(1, options.tokens - this.#historyLaunches)
    this.#next = Float64Array.from(PROCESSES, (process) => this.#nextTime(process))
    this.#next[PROCESSES.indexOf('census')] = options.startMs - CENSUS_MS
  }

  /** The process of the next event, and its time in `timeMs`; null where that is later than `untilMs` (whole ms). */
  take(untilMs: number): Process | null {
    let soonest = 0
    for (let index = 1; index < this.#next.length; index++) {
      if (this.#next[index] < this.#next[soonest]) soonest = index
    }
    if (this.#next[soonest] >= untilMs + 1) return null
    this.timeMs = this.#next[soonest]
    this.#next[soonest] = this.#nextTime(PROCESSES[soonest])
    return PROCESSES[soonest]
  }

  /** Moves all events that would happen before `timeMs` to after it. */
  skipTo(timeMs: number): void {
    if (timeMs <= this.timeMs) return
    this.timeMs = timeMs
    for (const [index, process] of PROCESSES.entries()) {
      if (this.#next[index] < timeMs) this.#next[index] = this.#nextTime(process)
    }
  }

  /** The first item of a queue, which it compacts from time to time, so that taking stays cheap. */
  takeFirst<Item>(queue: Item[]): Item | undefined {
    if (this.#itemsTaken >= queue.length) return undefined
    const item = queue[this.#itemsTaken++]
    if (this.#itemsTaken === QUEUE_COMPACT_ITEMS || this.#itemsTaken === queue.length) {
      queue.splice(0, this.#itemsTaken)
      this.#itemsTaken = 0
    }
    return item
  }

  #nextTime(process: Process): number {
    const { startMs, tokens } = this.#options
    const isHistory = this.timeMs < startMs
    switch (process) {
      case 'solPrice':
        return this.timeMs + (isHistory ? SOL_PRICE_HISTORY_MS : SOL_PRICE_MS)
      case 'census':
        return isHistory ? this.timeMs + CENSUS_MS / tokens : Number.POSITIVE_INFINITY
      default:
        return this.#nextArrival(process)
    }
  }

  /** The depth of a time in the history, 0 at its end. Events are spread evenly over the depth, not over time. */
  #depthAt(timeMs: number): number {
    return Math.log((this.#options.startMs - timeMs + DENSITY_MS) / DENSITY_MS)
  }

  /**
   * The next arrival of a Poisson process whose rate rises during the history and is constant afterwards: an exponential variate of
   * mean 1, mapped through the inverse of the cumulative rate.
   */
  #nextArrival(process: keyof typeof TRADES_PER): number {
    const { startMs, tradesPerSecond } = this.#options
    const livePerMs = tradesPerSecond / 1_000 / TRADES_PER[process]
    const units = this.#random.exponential(1)
    if (this.timeMs >= startMs) return this.timeMs + units / livePerMs
    const count = process === 'launch' ? this.#historyLaunches : this.#historyTrades / TRADES_PER[process]
    const unitsPerDepth = count / this.#historyDepth
    const depth = this.#depthAt(this.timeMs)
    const unitsLeft = depth * unitsPerDepth
    if (units >= unitsLeft) return startMs + (units - unitsLeft) / livePerMs
    return startMs + DENSITY_MS - DENSITY_MS * Math.exp(depth - units / unitsPerDepth)
  }
}
