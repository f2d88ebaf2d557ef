// The market's time between two messages that tell it. In a replay it is of another day, and may go faster than clocks do, or stand.

export class MarketTime {
  /** What was told last, and when by the browser's clock, Unix ms. */
  #told: { marketMs: number; atMs: number } | null = null
  /** Milliseconds of the market in one of the browser's. */
  #pace = 1

  /** Takes what the server has just told. */
  take(marketMs: number): void {
    const atMs = Date.now()
    if (this.#told !== null && atMs > this.#told.atMs)
      this.#pace = Math.max(0, (marketMs - this.#told.marketMs) / (atMs - this.#told.atMs))
    this.#told = { marketMs, atMs }
  }

  /** The browser's time until the server has told the market's. */
  nowMs(): number {
    const nowMs = Date.now()
    return this.#told === null ? nowMs : this.#told.marketMs + (nowMs - this.#told.atMs) * this.#pace
  }
}
