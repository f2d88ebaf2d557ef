// Earlier versions of tokens' compared values, to answer what was in effect at a time. A version is logged when it is superseded,
// with the time at which it ended. So the log is in the order in which records expire, and a token that was silent for an hour
// before its last change still has the version of that hour. The present version is not here; it is in the columns.

import { z } from 'zod'
import { CheckpointError } from '../checkpoint/checkpoint-error.ts'
import {
  jsonSection,
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
} from '../checkpoint/sections.ts'

/** Numbers of one version: the compared values, in the order of SNAPSHOT_FIELDS. */
export const VERSION_VALUES = 9
/** A record is these values, the time at which the version ended, and the start of the window that its 24-hour sums cover. */
const ENDED_AT = VERSION_VALUES
const WINDOW_FROM = VERSION_VALUES + 1
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
}

/** A logged version: VERSION_VALUES numbers of `values` from `at` on, valid until the next write to the log. */
export interface VersionRecord {
  values: Float64Array
  at: number
  windowFromMs: number
}

const savedSchema = z.object({ firstNumber: z.number(), nextNumber: z.number(), droppedEarly: z.number() })

const newSegment = (): Segment => ({
  values: new Float64Array(SEGMENT_RECORDS * STRIDE),
  previous: new Float64Array(SEGMENT_RECORDS),
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

  constructor({ tokensMax, retentionMs, versionsMax }: VersionHistoryOptions) {
    this.#retentionMs = retentionMs
    this.#segmentsMax = Math.max(2, Math.ceil(versionsMax / SEGMENT_RECORDS))
    this.#latest = new Float64Array(tokensMax).fill(NONE)
  }

  get held(): number {
    return this.#nextNumber - this.#firstNumber
  }

  /** Logs a version that ends at `endedAtMs`. */
  push(slot: number, values: ArrayLike<number>, endedAtMs: number, windowFromMs: number): void {
    const index = this.#nextNumber - this.#firstNumber
    if (index === this.#segments.length * SEGMENT_RECORDS) this.#grow(endedAtMs)
    const number = this.#nextNumber++
    const record = number - this.#firstNumber
    const segment = this.#segments[record >>> SEGMENT_BITS]
    const at = (record & SEGMENT_MASK) * STRIDE
    for (let field = 0; field < VERSION_VALUES; field++) segment.values[at + field] = values[field]
    segment.values[at + ENDED_AT] = endedAtMs
    segment.values[at + WINDOW_FROM] = windowFromMs
    segment.previous[record & SEGMENT_MASK] = this.#latest[slot]
    this.#latest[slot] = number
  }

  /** The version that was in effect at `timeMs` and has been superseded since; null when it is no longer held. */
  find(slot: number, timeMs: number): VersionRecord | null {
    let found: VersionRecord | null = null
    let number = this.#latest[slot]
    while (number >= this.#firstNumber) {
      const record = number - this.#firstNumber
      const segment = this.#segments[record >>> SEGMENT_BITS]
      const at = (record & SEGMENT_MASK) * STRIDE
      if (segment.values[at + ENDED_AT] <= timeMs) return found
      found = { values: segment.values, at, windowFromMs: segment.values[at + WINDOW_FROM] }
      number = segment.previous[record & SEGMENT_MASK]
    }
    // The token's first version, or all earlier ones ended before the retention.
    return found
  }

  /** Forgets a token's versions; the records stay until they expire. */
  clear(slot: number): void {
    this.#latest[slot] = NONE
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
  }

  /** When the last record of a full segment ended. All segments are full when the log grows. */
  #lastEndedAtMs(segment: Segment): number {
    return segment.values[(SEGMENT_RECORDS - 1) * STRIDE + ENDED_AT]
  }
}
