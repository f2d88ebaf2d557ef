import { HOUR_MS } from '../../lib/time.ts'

const HOURS = 24
/** About n^0.85 of n trades come from different wallets. */
const WALLET_EXPONENT = 0.85

function sum(hours: Float64Array): number {
  let total = 0
  for (const value of hours) total += value
  return total
}

/** Hourly sums of one token's trading over the last 24 hours. */
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

  /** The sums of the last 24 hours and of the last hour, to the full hour, as of a time in Unix ms. */
  readAt(timeMs: number): { buyUsd24h: number; sellUsd24h: number; wallets24h: number; wallets1h: number } {
    this.#advance(timeMs)
    return {
      buyUsd24h: sum(this.#buysUsd),
      sellUsd24h: sum(this.#sellsUsd),
      wallets24h: Math.round(sum(this.#trades) ** WALLET_EXPONENT),
      wallets1h: Math.round(this.#trades[this.#hour % HOURS] ** WALLET_EXPONENT),
    }
  }
}
