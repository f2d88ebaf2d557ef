// Caches DataPoints as JSON until the next whole second, when windows move and all are forgotten. A text is as of the moment when it
// became true, not when it was first read, so that what is served does not depend on who has read before.

import { ownBytes } from '../../lib/bytes.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import type { DataPointText } from '../types.ts'
import type { Projections } from './projections.ts'

const SECOND_MS = 1_000

/** What stands around a DataPoint in an answer that has nothing else. */
const ANSWER_START = '{"ok":true,"data":'
const ANSWER_END = '}'

/** What a DataPoint's text depends on, besides the second. */
export interface DataPointChange {
  /** Position and market time of the token's last change. */
  seq: number
  atMs: number
  /** How often the price of SOL or a gap has changed, and when one last did. */
  marketChangeCount: number
  marketChangedAtMs: number
}

interface CachedText extends DataPointText {
  readonly seq: number
  readonly marketChangeCount: number
}

export class DataPointCache {
  readonly #projections: Projections
  /** By slot, all of the same second. */
  #texts = new Map<number, CachedText>()
  #secondMs = 0

  constructor(projections: Projections) {
    this.#projections = projections
  }

  read(slot: number, nowMs: number, change: DataPointChange): DataPointText {
    const { seq, marketChangeCount } = change
    const secondMs = Math.floor(nowMs / SECOND_MS) * SECOND_MS
    if (secondMs !== this.#secondMs) {
      this.#secondMs = secondMs
      this.#texts = new Map()
    }
    const cached = this.#texts.get(slot)
    if (cached?.seq === seq && cached.marketChangeCount === marketChangeCount) return cached
    const asOfMs = Math.max(secondMs, change.atMs, change.marketChangedAtMs)
    const text = jsonLine(this.#projections.datapoint(slot, asOfMs))
    const answer = ownBytes(`${ANSWER_START}${text}${ANSWER_END}`)
    const made: CachedText = {
      answer,
      json: answer.subarray(ANSWER_START.length, answer.length - ANSWER_END.length),
      version: [seq, asOfMs, marketChangeCount].map((part) => part.toString(36)).join('-'),
      seq,
      marketChangeCount,
    }
    this.#texts.set(slot, made)
    return made
  }

  forget(slot: number): void {
    this.#texts.delete(slot)
  }
}
