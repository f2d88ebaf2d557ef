import type { Random } from './random.ts'

export type Process = 'trade' | 'launch' | 'refresh' | 'solPrice' | 'stream' | 'drift'

export interface ScheduleOptions {
  /** When the live market begins, Unix ms, and its history. */
  startMs: number
  historyFromMs: number
  /** About as many trades does the history have. */
  historyTrades: number
  tradesPerSecond: number
}

const PROCESSES: readonly Process[] = ['trade', 'launch', 'refresh', 'solPrice', 'stream', 'drift']
/** Trades per event of each random process. */
const TRADES_PER = { trade: 1, launch: 600, refresh: 30, stream: 600, drift: 60 } as const
const SOL_PRICE_MS = 5_000
/** A short history has as many prices of SOL, so that none is ever too old. */
const SOL_PRICES_MIN = 100
/** The part of the history, by its trades, that has the rate of the live market. */
const STEADY_SHARE = 0.5
const BISECTIONS = 60

/** Launches beside so many trades. */
export const launchesBeside = (trades: number): number => Math.floor(trades / TRADES_PER.launch)

/**
 * Decides what happens next, and when. Each process is a Poisson process, or regular. It has the same rate before the start of the live
 * market as after it, so that no chart shows where that was; further back it thins out, as 1/age, so that few events reach far.
 */
export class Schedule {
  /** When the latest event happened, Unix ms, with fractions. */
  timeMs: number
  readonly #random: Random
  readonly #options: ScheduleOptions
  readonly #ageOf: (evenAgeMs: number) => number
  /** The latest event and the next one of each process, in the order of PROCESSES, on a clock by which nothing thins out. */
  #evenMs: number
  readonly #next: Float64Array
  /** Between two prices of SOL in the history, ms of the even clock. */
  readonly #solPriceMs: number

  constructor(random: Random, options: ScheduleOptions) {
    const { startMs, historyFromMs, historyTrades, tradesPerSecond } = options
    this.#random = random
    this.#options = options
    const reachMs = startMs - historyFromMs
    const evenMs = Math.min(reachMs, (1_000 * historyTrades) / tradesPerSecond)
    this.#ageOf = makeThinning(evenMs, reachMs)
    this.timeMs = historyFromMs
    this.#evenMs = startMs - evenMs
    this.#solPriceMs = Math.min(SOL_PRICE_MS, evenMs / SOL_PRICES_MIN)
    this.#next = Float64Array.from(PROCESSES, (process) => this.#nextTime(process))
  }

  /** The process of the next event, and its time in `timeMs`; null where that is later than `untilMs` (whole ms). */
  take(untilMs: number): Process | null {
    let soonest = 0
    for (let index = 1; index < this.#next.length; index++) {
      if (this.#next[index] < this.#next[soonest]) soonest = index
    }
    const atMs = this.#toTime(this.#next[soonest])
    if (atMs >= untilMs + 1) return null
    this.timeMs = atMs
    this.#evenMs = this.#next[soonest]
    this.#next[soonest] = this.#nextTime(PROCESSES[soonest])
    return PROCESSES[soonest]
  }

  /** Moves all events that would happen before `timeMs`, a time of the live market, to after it. */
  skipTo(timeMs: number): void {
    if (timeMs <= this.timeMs) return
    this.timeMs = this.#evenMs = timeMs
    for (const [index, process] of PROCESSES.entries()) {
      if (this.#next[index] < timeMs) this.#next[index] = this.#nextTime(process)
    }
  }

  #nextTime(process: Process): number {
    if (process === 'solPrice')
      return this.#evenMs + (this.#evenMs < this.#options.startMs ? this.#solPriceMs : SOL_PRICE_MS)
    const meanMs = (TRADES_PER[process] * 1_000) / this.#options.tradesPerSecond
    return this.#evenMs + this.#random.exponential(meanMs)
  }

  #toTime(evenMs: number): number {
    const { startMs } = this.#options
    return evenMs >= startMs ? evenMs : startMs - this.#ageOf(startMs - evenMs)
  }
}

/**
 * Stretches a history of even rate until it reaches far: its later part stays as it is, the earlier one thins out.
 * @returns how long before the live market something was, ms, from its age in the even history
 */
function makeThinning(evenMs: number, reachMs: number): (evenAgeMs: number) => number {
  const steadyMs = STEADY_SHARE * evenMs
  const ageOf = (evenAgeMs: number, foldMs: number): number =>
    evenAgeMs <= steadyMs ? evenAgeMs : steadyMs + foldMs * Math.expm1((evenAgeMs - steadyMs) / foldMs)
  // The shorter the fold, after which events are e times as far apart, the further it reaches.
  let [low, high] = [evenMs / 100, evenMs * 1_000]
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = Math.sqrt(low * high)
    if (ageOf(evenMs, middle) > reachMs) low = middle
    else high = middle
  }
  return (evenAgeMs) => Math.min(reachMs, ageOf(evenAgeMs, high))
}
