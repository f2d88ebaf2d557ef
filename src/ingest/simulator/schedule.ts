// In: a start, rates and random numbers. Out: what happens next, and when. Each kind of happening is a Poisson process;
// before the start the market is told coarsely, ever denser towards now. Never knows what a happening does.
import type { Random } from './random.ts'

export type Process = 'trade' | 'launch' | 'patch' | 'census' | 'solPrice' | 'stream' | 'drift'

export interface ScheduleOptions {
  startMs: number
  historyMs: number
  tokens: number
  tradesPerSecond: number
}

const PROCESSES: readonly Process[] = ['trade', 'launch', 'patch', 'census', 'solPrice', 'stream', 'drift']
/** Trades of the history, per token of the start and at most. */
const HISTORY_TRADES_PER_TOKEN = 26
const HISTORY_TRADES_MAX = 80_000
/** Share of the tokens of the start that are launched within the history. */
const HISTORY_LAUNCH_SHARE = 0.4
/** The history's density falls off with age as 1 / (age + this). */
const DENSITY_MS = 600_000
/** Every token is patched once more within this time before the start, so that nothing in the lists is stale. */
const CENSUS_MS = 120_000
/** How many trades there are to one of the others, in the live market; in the history, to all but launches. */
const TRADES_PER = { trade: 1, launch: 1_500, patch: 12, stream: 600, drift: 60 } as const
const SOL_PRICE_HISTORY_MS = 60_000
const SOL_PRICE_MS = 5_000
/** The queue of due patches is compacted when this many of its items were taken. */
const QUEUE_COMPACT_ITEMS = 4_096

export class Schedule {
  readonly tokensBeforeHistory: number
  /** When the latest happening took place, Unix ms, with fractions. */
  timeMs: number
  private readonly random: Random
  private readonly options: ScheduleOptions
  private readonly historyTrades: number
  private readonly historyLaunches: number
  /** ln((age + DENSITY_MS) / DENSITY_MS) at the beginning of the history. */
  private readonly historyDepth: number
  /** When each process happens next, in the order of PROCESSES. */
  private readonly next: Float64Array
  private takenDue = 0

  constructor(random: Random, options: ScheduleOptions) {
    this.random = random
    this.options = options
    this.timeMs = options.startMs - options.historyMs
    this.historyTrades = Math.min(HISTORY_TRADES_MAX, options.tokens * HISTORY_TRADES_PER_TOKEN)
    this.historyLaunches = Math.floor(options.tokens * HISTORY_LAUNCH_SHARE)
    this.historyDepth = this.depthAt(this.timeMs)
    this.tokensBeforeHistory = Math.max(1, options.tokens - this.historyLaunches)
    this.next = Float64Array.from(PROCESSES, (process) => this.after(process))
    this.next[PROCESSES.indexOf('census')] = options.startMs - CENSUS_MS
  }

  /** The next happening, if it is not later than `untilMs` (whole milliseconds); `timeMs` then says when. */
  take(untilMs: number): Process | null {
    let soonest = 0
    for (let index = 1; index < this.next.length; index++) {
      if (this.next[index] < this.next[soonest]) soonest = index
    }
    if (this.next[soonest] >= untilMs + 1) return null
    this.timeMs = this.next[soonest]
    this.next[soonest] = this.after(PROCESSES[soonest])
    return PROCESSES[soonest]
  }

  /** Moves everything that would have happened before `timeMs` to after it. */
  skipTo(timeMs: number): void {
    if (timeMs <= this.timeMs) return
    this.timeMs = timeMs
    for (const [index, process] of PROCESSES.entries()) {
      if (this.next[index] < timeMs) this.next[index] = this.after(process)
    }
  }

  /** The first item of a queue; compacts it now and then, so that taking stays cheap. */
  takeDue<Item>(queue: Item[]): Item | undefined {
    if (this.takenDue >= queue.length) return undefined
    const item = queue[this.takenDue++]
    if (this.takenDue === QUEUE_COMPACT_ITEMS || this.takenDue === queue.length) {
      queue.splice(0, this.takenDue)
      this.takenDue = 0
    }
    return item
  }

  private after(process: Process): number {
    const { startMs, tokens } = this.options
    const isHistory = this.timeMs < startMs
    switch (process) {
      case 'solPrice':
        return this.timeMs + (isHistory ? SOL_PRICE_HISTORY_MS : SOL_PRICE_MS)
      case 'census':
        return isHistory ? this.timeMs + CENSUS_MS / tokens : Number.POSITIVE_INFINITY
      default:
        return this.arrival(process)
    }
  }

  /** How deep in the history a time lies; 0 at its end. The history's happenings are spread evenly over its depth. */
  private depthAt(timeMs: number): number {
    return Math.log((this.options.startMs - timeMs + DENSITY_MS) / DENSITY_MS)
  }

  /**
   * The next arrival of a Poisson process whose rate rises through the history and is even from then on: a unit
   * exponential, carried through the inverse of the cumulative rate.
   */
  private arrival(process: keyof typeof TRADES_PER): number {
    const { startMs, tradesPerSecond } = this.options
    const livePerMs = tradesPerSecond / 1_000 / TRADES_PER[process]
    const units = this.random.exponential(1)
    if (this.timeMs >= startMs) return this.timeMs + units / livePerMs
    const count = process === 'launch' ? this.historyLaunches : this.historyTrades / TRADES_PER[process]
    const unitsPerDepth = count / this.historyDepth
    const depth = this.depthAt(this.timeMs)
    const unitsLeft = depth * unitsPerDepth
    if (units >= unitsLeft) return startMs + (units - unitsLeft) / livePerMs
    return startMs + DENSITY_MS - DENSITY_MS * Math.exp(depth - units / unitsPerDepth)
  }
}
