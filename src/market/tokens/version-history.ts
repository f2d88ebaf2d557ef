// Earlier versions of tokens' compared values, to answer what was in effect at a time. A version is logged when it is superseded,
// with the times at which it began and ended. So the log is in the order in which records expire, and a token that was silent for an
// hour before its last change still has the version of that hour. The present version is not here; it is in the columns.

import { z } from 'zod'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { lastingMemory } from '../../lib/memory.ts'
import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import {
  jsonSection,
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
} from '../../lib/sections/sections.ts'
import { readMintNumbers, saveMintNumbers } from './mint-numbers.ts'

/** Numbers of one version: the compared values, in the order of SNAPSHOT_FIELDS. */
export const VERSION_VALUES = 9
/** A record is these values, and the times at which the version began and ended. */
const BEGAN_AT = VERSION_VALUES
const ENDED_AT = VERSION_VALUES + 1
const STRIDE = VERSION_VALUES + 2
const SEGMENT_BITS = 14
const SEGMENT_RECORDS = 1 << SEGMENT_BITS
const SEGMENT_MASK = SEGMENT_RECORDS - 1
const NONE = -1

interface Segment {
  values: Float64Array
  /** By record: the number of the same token's record before it, or NONE. Numbers only grow; they are exact up to 2^53. */
  previous: Float64Array
}

export interface VersionHistoryOptions {
  tokensMax: number
  retentionMs: number
  versionsMax: number
  /** Evicted mints whose versions are known; at the maximum those of the one evicted longest ago are forgotten. */
  evictedMax: number
}

const savedSchema = z.object({ firstNumber: z.number(), nextNumber: z.number(), droppedEarly: z.number() })

const newSegment = (): Segment => ({
  values: new Float64Array(lastingMemory(SEGMENT_RECORDS * STRIDE * 8)),
  previous: new Float64Array(lastingMemory(SEGMENT_RECORDS * 8)),
})

export class VersionHistory implements Saved {
  /** Versions that were dropped within the retention, because there were too many. */
  droppedEarly = 0
  readonly #retentionMs: number
  readonly #segmentsMax: number
  /** Oldest first; `#firstNumber` is the number of the first segment's first record. */
  readonly #segments: Segment[] = []
  /** A dropped segment, kept for reuse. */
  #spare: Segment | null = null
  #firstNumber = 0
  #nextNumber = 0
  /** By slot: the number of the token's latest record, or NONE. */
  readonly #latest: Float64Array
  /** By mint of a token that was evicted: the number of its latest record. */
  readonly #evicted: BoundedMap<string, number>

  constructor({ tokensMax, retentionMs, versionsMax, evictedMax }: VersionHistoryOptions) {
    this.#retentionMs = retentionMs
    this.#evicted = new BoundedMap({ entriesMax: evictedMax })
    this.#segmentsMax = Math.max(2, Math.ceil(versionsMax / SEGMENT_RECORDS))
    this.#latest = new Float64Array(tokensMax).fill(NONE)
  }

  /** Reads where the token's latest version is, see events/prefetch.ts. */
  prefetch(slot: number): number {
    return this.#latest[slot]
  }

  get held(): number {
    return this.#nextNumber - this.#firstNumber
  }

  /** Logs a version that was in effect from `beganAtMs` to `endedAtMs`; of one token they come in order. */
  push(slot: number, values: ArrayLike<number>, beganAtMs: number, endedAtMs: number): void {
    const index = this.#nextNumber - this.#firstNumber
    if (index === this.#segments.length * SEGMENT_RECORDS) this.#grow(endedAtMs)
    const number = this.#nextNumber++
    const record = number - this.#firstNumber
    const segment = this.#segments[record >>> SEGMENT_BITS]
    const at = (record & SEGMENT_MASK) * STRIDE
    for (let field = 0; field < VERSION_VALUES; field++) segment.values[at + field] = values[field]
    segment.values[at + BEGAN_AT] = beganAtMs
    segment.values[at + ENDED_AT] = endedAtMs
    segment.previous[record & SEGMENT_MASK] = this.#latest[slot]
    this.#latest[slot] = number
  }

  /**
   * The logged version that was in effect at the end of the millisecond `timeMs`: VERSION_VALUES numbers of `values` from `at` on,
   * valid until the next change. null: there is none.
   */
  find(slot: number, timeMs: number): { values: Float64Array; at: number } | null {
    let number = this.#latest[slot]
    while (number >= this.#firstNumber) {
      const record = number - this.#firstNumber
      const { values, previous } = this.#segments[record >>> SEGMENT_BITS]
      const at = (record & SEGMENT_MASK) * STRIDE
      if (values[at + ENDED_AT] <= timeMs) return null
      if (values[at + BEGAN_AT] <= timeMs) return { values, at }
      number = previous[record & SEGMENT_MASK]
    }
    return null
  }

  /** The token of a slot is evicted: its versions are kept for the time that it may come back in. */
  evict(slot: number, mint: string): void {
    if (this.#latest[slot] >= this.#firstNumber) this.#evicted.set(mint, this.#latest[slot])
    this.#latest[slot] = NONE
  }

  /** A token takes a slot, with the versions that it had before it was evicted. */
  admit(slot: number, mint: string): void {
    this.#latest[slot] = this.#evicted.get(mint) ?? NONE
    this.#evicted.delete(mint)
  }

  /** Market time has gone back: versions of later than `timeMs` were in effect at no time, and others until then at most. */
  rewindTo(timeMs: number): void {
    for (const { values } of this.#segments)
      for (let at = 0; at < values.length; at += STRIDE) {
        values[at + BEGAN_AT] = Math.min(values[at + BEGAN_AT], timeMs)
        values[at + ENDED_AT] = Math.min(values[at + ENDED_AT], timeMs)
      }
  }

  *save(slotsUsed: number): Iterable<Section> {
    const [firstNumber, nextNumber] = [this.#firstNumber, this.#nextNumber]
    yield jsonSection('versions', { firstNumber, nextNumber, droppedEarly: this.droppedEarly })
    yield numbersSection('versions.latest', this.#latest.subarray(0, slotsUsed))
    for (const [index, { values, previous }] of this.#segments.entries()) {
      const records = Math.min(SEGMENT_RECORDS, this.held - index * SEGMENT_RECORDS)
      yield numbersSection(`versions.values.${index}`, values.subarray(0, records * STRIDE))
      yield numbersSection(`versions.previous.${index}`, previous.subarray(0, records))
    }
    yield* saveMintNumbers('versions.evicted', this.#evicted.entries())
  }

  restore(sections: SectionReader, slotsUsed: number): void {
    const { firstNumber, nextNumber, droppedEarly } = sections.json('versions', savedSchema)
    const count = Math.ceil((nextNumber - firstNumber) / SEGMENT_RECORDS)
    if (!(count <= this.#segmentsMax))
      throw new CheckpointError('The checkpoint holds more versions than this server does.')
    this.#firstNumber = firstNumber
    this.#nextNumber = nextNumber
    this.droppedEarly = droppedEarly
    sections.fill('versions.latest', this.#latest.subarray(0, slotsUsed))
    for (let index = 0; index < count; index++) {
      const records = Math.min(SEGMENT_RECORDS, this.held - index * SEGMENT_RECORDS)
      const segment = newSegment()
      sections.fill(`versions.values.${index}`, segment.values.subarray(0, records * STRIDE))
      sections.fill(`versions.previous.${index}`, segment.previous.subarray(0, records))
      this.#segments.push(segment)
    }
    for (const { key, value } of readMintNumbers('versions.evicted', sections)) this.#evicted.set(key, value)
  }

  #grow(nowMs: number): void {
    while (this.#segments.length > 0 && this.#lastEndedAtMs(this.#segments[0]) < nowMs - this.#retentionMs)
      this.#drop()
    if (this.#segments.length === this.#segmentsMax) {
      this.droppedEarly += SEGMENT_RECORDS
      this.#drop()
    }
    this.#segments.push(this.#spare ?? newSegment())
    this.#spare = null
  }

  #drop(): void {
    this.#spare = this.#segments.shift() ?? null
    this.#firstNumber += SEGMENT_RECORDS
    for (let { oldest } = this.#evicted; oldest !== null; { oldest } = this.#evicted) {
      if (oldest.value >= this.#firstNumber) return
      this.#evicted.delete(oldest.key)
    }
  }

  /**
   * When the last version of a full segment ended. All segments are full when the log grows. One that ended as a window moved is
   * logged later, just before another one of its token, so that of two neighbours one ended when it was logged.
   */
  #lastEndedAtMs({ values }: Segment): number {
    const at = (SEGMENT_RECORDS - 1) * STRIDE + ENDED_AT
    return Math.max(values[at], values[at - STRIDE])
  }
}
