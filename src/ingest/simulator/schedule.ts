import type { Random } from './random.ts'

export type Process = 'trade' | 'launch' | 'patch' | 'census' | 'solPrice' | 'stream' | 'drift'

export interface ScheduleOptions {
  startMs: number
  /** How long the market runs before its start. */
  historyMs: number
  tokens: number
  tradesPerSecond: number
}

const PROCESSES: readonly Process[] = ['trade', 'launch', 'patch', 'census', 'solPrice', 'stream', 'drift']
/** All tokens are patched once more within this time before the start, so that the initial lists are up to date. */
const CENSUS_MS = 120_000
/** Trades per event of each process. */
const TRADES_PER = { trade: 1, launch: 600, patch: 12, stream: 600, drift: 60 } as const
const SOL_PRICE_MS = 5_000
/** The queue of due patches is compacted after this many of its items were taken. */
const QUEUE_COMPACT_ITEMS = 4_096

/** Launches that are expected in a time, in which tokens are added beside those that there are. */
export const launchesIn = (ms: number, tradesPerSecond: number): number =>
  Math.floor((ms * tradesPerSecond) / 1_000 / TRADES_PER.launch)

/**
 * Decides what happens next, and when. Each process is a Poisson process, or regular, and the same before the start of the live market as
 * after it, so that no chart shows where that was.
 */
export class Schedule {
  /** When the latest event happened, Unix ms, with fractions. */
  timeMs: number
  readonly #random: Random
  readonly #options: ScheduleOptions
  readonly #censusMs: number
  /** The time of the next event of each process, in the order of PROCESSES. */
  readonly #next: Float64Array
  #itemsTaken = 0

  constructor(random: Random, options: ScheduleOptions) {
    this.#random = random
    this.#options = options
    this.timeMs = options.startMs - options.historyMs
    this.#censusMs = Math.min(CENSUS_MS, options.historyMs)
    this.#next = Float64Array.from(PROCESSES, (process) => this.#nextTime(process))
    this.#next[PROCESSES.indexOf('census')] = options.startMs - this.#censusMs
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
    const { startMs, tokens, tradesPerSecond } = this.#options
    switch (process) {
      case 'solPrice':
        return this.timeMs + SOL_PRICE_MS
      case 'census':
        return this.timeMs < startMs ? this.timeMs + this.#censusMs / tokens : Number.POSITIVE_INFINITY
      default:
        return this.timeMs + (this.#random.exponential(1) * TRADES_PER[process] * 1_000) / tradesPerSecond
    }
  }
}
