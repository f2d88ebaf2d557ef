// Market time as a clock: for a server whose market waits, where every rule on time follows the market.
import type { Clock } from './clock.ts'

/** Never goes back, and stands still while the market does. Both its times are market time. */
export class MarketClock implements Clock {
  #market: { readonly timeMs: number } | null = null
  readonly #startMs: number

  /** @param startMs what it says until the market has come that far, Unix ms */
  constructor(startMs: number) {
    this.#startMs = startMs
  }

  /** From now on its time is that of this market. */
  follow(market: { readonly timeMs: number }): void {
    this.#market = market
  }

  now(): number {
    return Math.max(this.#startMs, this.#market?.timeMs ?? 0)
  }

  monotonicMs(): number {
    return this.now()
  }
}
