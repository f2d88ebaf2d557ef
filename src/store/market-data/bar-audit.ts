// Compares, after each flush, the bars that the engine has closed with those that the lake has got. Nothing that brings bars to the
// lake is part of it, so that it notices what they lose.
import { TIMEFRAMES } from '../../schema/timeframe.ts'
import type { StoreLog } from '../types.ts'
import { type BarAccount, type BarCounts, noBars, sumBars, unaccounted } from './bar-counts.ts'

/** The bars of this run up to one moment, all of which the lake process has. */
export interface SentBars {
  /** All bars that ended by this market time are among them. */
  toMs: number
  /** How many the engine has closed. */
  closed: readonly number[]
  /** How many of them found no room. */
  dropped: readonly number[]
}

/** `1 200 of 1m, 240 of 5m` */
const byTimeframe = (counts: readonly number[]): string =>
  TIMEFRAMES.flatMap((tf, index) => (counts[index] > 0 ? [`${counts[index]} of ${tf}`] : [])).join(', ')

export class BarAudit {
  readonly #log: StoreLog
  #unaccounted: BarCounts = noBars()
  #dropped: BarCounts = noBars()
  #isLogged = false

  constructor(log: StoreLog) {
    this.#log = log
  }

  /** How many closed bars of this run the lake should have and does not. */
  get missing(): number {
    return sumBars(this.#unaccounted.map((count) => Math.max(0, count)))
  }

  /** @param sent of before the flush that has saved `account` */
  compare({ closed, dropped }: SentBars, account: BarAccount): void {
    const arrived = unaccounted(account)
    this.#dropped = [...dropped]
    this.#unaccounted = arrived.map((count, index) => {
      const droppedSince = dropped[index] - account.dropped[index]
      return count + Math.max(0, closed[index] - account.closed[index] - droppedSince)
    })
    if (this.#isLogged || this.#faults().length === 0) return
    this.#isLogged = true
    for (const fault of this.#faults()) this.#log.error({ account, closed: [...closed] }, fault)
  }

  /** A sentence for each thing that is wrong. */
  get reasons(): string[] {
    const told = sumBars(this.#dropped)
    return [
      ...this.#faults(),
      ...(told > 0
        ? [`closed bars were dropped, since the lake did not keep up: ${byTimeframe(this.#dropped)}`]
        : []),
    ]
  }

  #faults(): string[] {
    const missing = byTimeframe(this.#unaccounted)
    const surplus = byTimeframe(this.#unaccounted.map((count) => -count))
    return [
      ...(missing === '' ? [] : [`closed bars of this run are missing in the lake: ${missing}`]),
      ...(surplus === '' ? [] : [`the lake got more bars than this run has closed: ${surplus}`]),
    ]
  }
}
