// The market's time between two messages that tell it. In a replay it is of another day, and may go faster than clocks do, or stand.
import { DAY_MS } from '../lib/time.ts'

/** A pace is that between messages so far apart: nearer ones tell little of it, and behind a longer time lies a page that slept. */
const PACE_MS_MIN = 900
const PACE_MS_MAX = 5_000
/** Messages take a moment: what differs by less is no other time. */
const DELAY_MS_MAX = 1_000

export class MarketTime {
  /** What was told last, and when by the browser's clock, Unix ms. */
  #told: { marketMs: number; atMs: number } | null = null
  /** What was heard last. */
  #heardMs: number | null = null
  /** Milliseconds of the market in one of the browser's. */
  #pace = 1

  /** Takes what the server has just told. A replay may be of less than a day ago; what is further away is none of today's market. */
  take(marketMs: number, isReplay = false): void {
    const hasMoved = marketMs !== this.#heardMs
    this.#heardMs = marketMs
    if (!isReplay && Math.abs(marketMs - Date.now()) < DAY_MS) this.#takeLive(marketMs, hasMoved)
    else this.#takeReplayed(marketMs)
  }

  /** The browser's time until the server has told the market's. */
  nowMs(): number {
    const nowMs = Date.now()
    return this.#told === null ? nowMs : this.#told.marketMs + (nowMs - this.#told.atMs) * this.#pace
  }

  /** The market of today goes at the pace of clocks. Where it tells nothing new, what it has told is older each second. */
  #takeLive(marketMs: number, hasMoved: boolean): void {
    this.#pace = 1
    if (!hasMoved || (this.#told !== null && Math.abs(marketMs - this.nowMs()) < DELAY_MS_MAX)) return
    this.#told = { marketMs, atMs: Date.now() }
  }

  #takeReplayed(marketMs: number): void {
    const atMs = Date.now()
    if (this.#told !== null) {
      const passedMs = atMs - this.#told.atMs
      if (passedMs >= 0 && passedMs < PACE_MS_MIN) return
      if (passedMs > 0 && passedMs <= PACE_MS_MAX)
        this.#pace = Math.max(0, (marketMs - this.#told.marketMs) / passedMs)
    }
    this.#told = { marketMs, atMs }
  }
}
