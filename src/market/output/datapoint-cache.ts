// Caches DataPoints as JSON for up to a second. A text is as of the moment when it became true, not when it was first read, so
// that what is served does not depend on who has read before.
import type { Projections } from './projections.ts'

const SECOND_MS = 1_000

/** What a DataPoint's text depends on, besides the whole seconds by which windows move. */
export interface DataPointChange {
  /** Position and market time of the token's last change. */
  seq: number
  atMs: number
  /** How often the price of SOL has changed, and when it last did. */
  solPriceChangeCount: number
  solPriceChangedAtMs: number
}

interface CachedText {
  readonly json: Buffer
  readonly version: string
  readonly validUntilMs: number
  readonly seq: number
  readonly solPriceChangeCount: number
}

export class DataPointCache {
  readonly #projections: Projections
  /** By slot. */
  readonly #texts: (CachedText | undefined)[] = []

  constructor(projections: Projections) {
    this.#projections = projections
  }

  read(slot: number, nowMs: number, change: DataPointChange): { json: Buffer; version: string } {
    const { seq, solPriceChangeCount } = change
    const cached = this.#texts[slot]
    if (
      cached?.seq === seq &&
      cached.solPriceChangeCount === solPriceChangeCount &&
      nowMs < cached.validUntilMs
    )
      return cached
    const secondMs = Math.floor(nowMs / SECOND_MS) * SECOND_MS
    const asOfMs = Math.max(secondMs, change.atMs, change.solPriceChangedAtMs)
    const made: CachedText = {
      json: Buffer.from(JSON.stringify(this.#projections.datapoint(slot, asOfMs))),
      version: [seq, asOfMs, solPriceChangeCount].map((part) => part.toString(36)).join('-'),
      validUntilMs: secondMs + SECOND_MS,
      seq,
      solPriceChangeCount,
    }
    this.#texts[slot] = made
    return made
  }

  forget(slot: number): void {
    this.#texts[slot] = undefined
  }
}
