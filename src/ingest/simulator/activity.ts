import { HOUR_MS } from '../../lib/time.ts'

/** The present hour, and those before it of which a day has at least a part. */
const HOURS = 25
/** About n^0.85 of n trades come from different wallets. */
const WALLET_EXPONENT = 0.85

/** Hourly sums of one token's trading over the last day. */
export class Activity {
  readonly #buysUsd = new Float64Array(HOURS)
  readonly #sellsUsd = new Float64Array(HOURS)
  readonly #trades = new Float64Array(HOURS)
  #hour = 0

  add(isBuy: boolean, usd: number, timeMs: number): void {
    this.#advance(timeMs)
    const slot = this.#hour % HOURS
    ;(isBuy ? this.#buysUsd : this.#sellsUsd)[slot] += usd
    this.#trades[slot]++
  }

  #advance(timeMs: number): void {
    const hour = Math.floor(timeMs / HOUR_MS)
    const passed = Math.min(HOURS, hour - this.#hour)
    for (let back = 0; back < passed; back++) {
      const slot = (hour - back) % HOURS
      this.#buysUsd[slot] = this.#sellsUsd[slot] = this.#trades[slot] = 0
    }
    this.#hour = hour
  }

  /** The sums of the last 24 hours and of the last hour, as of a time in Unix ms. */
  readAt(timeMs: number): { buyUsd24h: number; sellUsd24h: number; wallets24h: number; wallets1h: number } {
    this.#advance(timeMs)
    const passedShare = (timeMs % HOUR_MS) / HOUR_MS
    const walletsOf = (hours: number): number =>
      Math.round(Math.ceil(this.#sum(this.#trades, hours, passedShare)) ** WALLET_EXPONENT)
    return {
      buyUsd24h: this.#sum(this.#buysUsd, HOURS - 1, passedShare),
      sellUsd24h: this.#sum(this.#sellsUsd, HOURS - 1, passedShare),
      wallets24h: walletsOf(HOURS - 1),
      wallets1h: walletsOf(1),
    }
  }

  /** The sum of the last `hours`. Of the one before the full ones, which is not over, its share counts. */
  #sum(values: Float64Array, hours: number, passedShare: number): number {
    const slotOf = (back: number): number => (this.#hour - back + HOURS) % HOURS
    let total = values[slotOf(hours)] * (1 - passedShare)
    for (let back = 0; back < hours; back++) total += values[slotOf(back)]
    return total
  }
}
