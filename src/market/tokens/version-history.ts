// In: the compared values of a token at the moment they are superseded. Out: the values that were in effect at a time.
// What is logged is the old version with the time it ended: records are then in the order in which they may be
// forgotten, and a token that was quiet for an hour before its last change still knows what it was before. Never holds
// the current version.

/** Numbers of one version, in the order in which they lie in memory. */
export const VERSION_VALUES = 9
/** Its values, when it ended, and which window its 24-hour sums stand for. */
const ENDED_AT = VERSION_VALUES
const WINDOW_FROM = VERSION_VALUES + 1
const STRIDE = VERSION_VALUES + 2
const SEGMENT_BITS = 14
const SEGMENT_RECORDS = 1 << SEGMENT_BITS
const SEGMENT_MASK = SEGMENT_RECORDS - 1
const NONE = -1

interface Segment {
  values: Float64Array
  /** Number of the same token's record before this one, or NONE. Numbers count up for ever; exact to 2^53. */
  previous: Float64Array
}

export interface VersionHistoryOptions {
  tokensMax: number
  retentionMs: number
  versionsMax: number
}

/** One logged version. `values` and `at` are valid until the next write to the log. */
export interface VersionRecord {
  values: Float64Array
  at: number
  windowFromMs: number
}

export class VersionHistory {
  droppedEarly = 0
  #retentionMs: number
  #segmentsMax: number
  /** Oldest first; `#firstNumber` is the number of the first record of the first segment. */
  #segments: Segment[] = []
  #spare: Segment | null = null
  #firstNumber = 0
  #nextNumber = 0
  #latest: Float64Array

  constructor({ tokensMax, retentionMs, versionsMax }: VersionHistoryOptions) {
    this.#retentionMs = retentionMs
    this.#segmentsMax = Math.max(2, Math.ceil(versionsMax / SEGMENT_RECORDS))
    this.#latest = new Float64Array(tokensMax).fill(NONE)
  }

  get held(): number {
    return this.#nextNumber - this.#firstNumber
  }

  /** Logs the version of `token` that ends at `endedAtMs`. */
  push(token: number, values: ArrayLike<number>, endedAtMs: number, windowFromMs: number): void {
    const index = this.#nextNumber - this.#firstNumber
    if (index === this.#segments.length * SEGMENT_RECORDS) this.#grow(endedAtMs)
    const number = this.#nextNumber++
    const record = number - this.#firstNumber
    const segment = this.#segments[record >>> SEGMENT_BITS]
    const at = (record & SEGMENT_MASK) * STRIDE
    for (let field = 0; field < VERSION_VALUES; field++) segment.values[at + field] = values[field]
    segment.values[at + ENDED_AT] = endedAtMs
    segment.values[at + WINDOW_FROM] = windowFromMs
    segment.previous[record & SEGMENT_MASK] = this.#latest[token]
    this.#latest[token] = number
  }

  /** The version in effect at `timeMs`, given that it has been superseded since; null when it is no longer held. */
  find(token: number, timeMs: number): VersionRecord | null {
    let found: VersionRecord | null = null
    let number = this.#latest[token]
    while (number >= this.#firstNumber) {
      const record = number - this.#firstNumber
      const segment = this.#segments[record >>> SEGMENT_BITS]
      const at = (record & SEGMENT_MASK) * STRIDE
      if (segment.values[at + ENDED_AT] <= timeMs) return found
      found = { values: segment.values, at, windowFromMs: segment.values[at + WINDOW_FROM] }
      number = segment.previous[record & SEGMENT_MASK]
    }
    // The chain ends here: either the token began with `found`, or what came before ended before the retention.
    return found
  }

  /** Forgets whose versions these were; the records age away. */
  clear(token: number): void {
    this.#latest[token] = NONE
  }

  #grow(nowMs: number): void {
    while (this.#segments.length > 0 && this.#lastEndOf(this.#segments[0]) < nowMs - this.#retentionMs)
      this.#drop()
    if (this.#segments.length === this.#segmentsMax) {
      this.droppedEarly += SEGMENT_RECORDS
      this.#drop()
    }
    this.#segments.push(
      this.#spare ?? {
        values: new Float64Array(SEGMENT_RECORDS * STRIDE),
        previous: new Float64Array(SEGMENT_RECORDS),
      },
    )
    this.#spare = null
  }

  #drop(): void {
    this.#spare = this.#segments.shift() ?? null
    this.#firstNumber += SEGMENT_RECORDS
  }

  /** Only called on full segments: growing happens when the last one is full. */
  #lastEndOf(segment: Segment): number {
    return segment.values[(SEGMENT_RECORDS - 1) * STRIDE + ENDED_AT]
  }
}
