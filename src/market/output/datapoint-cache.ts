// Caches DataPoints as JSON until the next whole second, when windows move and all are forgotten. A text is as of the moment when it
// became true, not when it was first read, so that what is served does not depend on who has read before. It is kept once it is read
// again: the bytes of those that are read once, as most of many tokens are, would grow old in the heap.

import { ownBytes } from '../../lib/bytes.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { SnapshotValues } from '../../schema/datapoint.ts'
import type { DataPointText } from '../types.ts'
import { SERVED_VERSIONS_MAX } from './limits.ts'
import type { Projections } from './projections.ts'

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
  readonly lostBarsMs: number
}

export class DataPointCache {
  readonly #projections: Projections
  /** By slot: those that were read twice, all of the same second. */
  #texts = new Map<number, CachedText>()
  #secondMs = 0
  /** When one was last read, and by slot the position and the time of what was read last. */
  #readAtMs = 0
  readonly #readSeq: Float64Array
  readonly #readAsOfMs: Float64Array
  /**
   * By mint and millisecond: values that were served as of it, and changed in it. Their reader says the same time as one that read later,
   * and both are right. It is known to the process that served them alone, and is no part of the market's state.
   */
  readonly #served = new BoundedMap<string, readonly SnapshotValues[]>({
    entriesMax: SERVED_VERSIONS_MAX,
    weightMax: SERVED_VERSIONS_MAX,
    weigh: (values) => values.length,
  })

  constructor(projections: Projections, tokensMax: number) {
    this.#projections = projections
    this.#readSeq = new Float64Array(tokensMax)
    this.#readAsOfMs = new Float64Array(tokensMax)
  }

  read(slot: number, nowMs: number, change: DataPointChange): DataPointText {
    const { seq, marketChangeCount } = change
    this.#readAtMs = nowMs
    const secondMs = Math.floor(nowMs / SECOND_MS) * SECOND_MS
    if (secondMs !== this.#secondMs) {
      this.#secondMs = secondMs
      this.#texts = new Map()
    }
    const cached = this.#texts.get(slot)
    // Bars that other tokens take are no change of this one: its row may show none of them.
    const lostBarsMs = this.#projections.lostBarsMs(slot)
    const isSame = cached?.seq === seq && cached.marketChangeCount === marketChangeCount
    if (isSame && cached.lostBarsMs === lostBarsMs) return cached
    const asOfMs = Math.max(secondMs, change.atMs, change.marketChangedAtMs)
    const text = jsonLine(this.#projections.datapoint(slot, asOfMs))
    const answer = ownBytes(`${ANSWER_START}${text}${ANSWER_END}`)
    const made: CachedText = {
      answer,
      json: answer.subarray(ANSWER_START.length, answer.length - ANSWER_END.length),
      version: [seq, asOfMs, marketChangeCount, lostBarsMs].map((part) => part.toString(36)).join('-'),
      seq,
      marketChangeCount,
      lostBarsMs,
    }
    if (this.#isRead(slot, asOfMs, seq)) this.#texts.set(slot, made)
    this.#readSeq[slot] = seq
    this.#readAsOfMs[slot] = asOfMs
    return made
  }

  /** Whether the token's values of position `seq` were served as of `timeMs`. */
  isServed(slot: number, timeMs: number, seq: number): boolean {
    return timeMs === this.#readAtMs && this.#isRead(slot, timeMs, seq)
  }

  #isRead(slot: number, asOfMs: number, seq: number): boolean {
    return this.#readAsOfMs[slot] === asOfMs && this.#readSeq[slot] === seq
  }

  /** These values were served as of `timeMs`, and change now, in the same millisecond. */
  keepServed(mint: string, timeMs: number, values: SnapshotValues): void {
    this.#served.set(`${mint} ${timeMs}`, [values, ...this.servedBefore(mint, timeMs)])
  }

  /** What was served as of `timeMs` and had changed at the end of this millisecond, the newest first. */
  servedBefore(mint: string, timeMs: number): readonly SnapshotValues[] {
    return this.#served.get(`${mint} ${timeMs}`) ?? []
  }
}
