// In: DataPoints, and when they last changed. Out: their JSON, made once for each second in which somebody reads them, and a
// version that names it. A text is of when it became true, so that it does not depend on when it was read first.
// Never holds the only copy of a figure.
import type { DataPoint } from '../../schema/datapoint.ts'

const SECOND_MS = 1_000

/** What a DataPoint's text depends on besides the passing of whole seconds, by which windows move. */
export interface Change {
  /** The number of the token's last change, and the market time of the last one that a DataPoint shows. */
  seq: number
  atMs: number
  /** The same of the price of SOL, which every DataPoint shows: how often it has changed, and when it last did. */
  solPriceChanges: number
  solPriceAtMs: number
}

interface Text {
  readonly json: Buffer
  readonly version: string
  readonly validUntilMs: number
  readonly seq: number
  readonly solPriceChanges: number
}

export class DataPointCache {
  readonly #datapoint: (slot: number, asOfMs: number) => DataPoint
  /** By slot. */
  readonly #texts: (Text | undefined)[] = []

  constructor(datapoint: (slot: number, asOfMs: number) => DataPoint) {
    this.#datapoint = datapoint
  }

  at(slot: number, nowMs: number, change: Change): { json: Buffer; version: string } {
    const { seq, solPriceChanges } = change
    const kept = this.#texts[slot]
    if (kept?.seq === seq && kept.solPriceChanges === solPriceChanges && nowMs < kept.validUntilMs)
      return kept
    const secondMs = Math.floor(nowMs / SECOND_MS) * SECOND_MS
    const asOfMs = Math.max(secondMs, change.atMs, change.solPriceAtMs)
    const made: Text = {
      json: Buffer.from(JSON.stringify(this.#datapoint(slot, asOfMs))),
      version: [seq, asOfMs, solPriceChanges].map((part) => part.toString(36)).join('-'),
      validUntilMs: secondMs + SECOND_MS,
      seq,
      solPriceChanges,
    }
    this.#texts[slot] = made
    return made
  }

  forget(slot: number): void {
    this.#texts[slot] = undefined
  }
}
