import type { StreamedSubmission } from '../../schema/api/stream.ts'
import { SUBMISSIONS_STREAMED_MAX } from '../limits.ts'

interface Entry {
  /** Counted from 1 in this run. */
  number: number
  /** The market's position when it became durable. */
  seq: number
  line: Buffer
}

/** The latest submissions of this run, for those who follow them. The oldest are forgotten beyond SUBMISSIONS_STREAMED_MAX. */
export class SubmissionLog {
  readonly #entries: Entry[] = []
  #count = 0

  /** Submissions so far. */
  get count(): number {
    return this.#count
  }

  /** @param seq the market's position now. */
  add(submission: StreamedSubmission, seq: number): void {
    this.#entries.push({
      number: ++this.#count,
      seq,
      line: Buffer.from(`${JSON.stringify(submission)}\n`),
    })
    if (this.#entries.length > SUBMISSIONS_STREAMED_MAX) this.#entries.shift()
  }

  /** NDJSON of the newest, oldest first. */
  newest(limit: number): Buffer {
    return join(this.#entries.slice(-limit))
  }

  /** NDJSON of those after a number. */
  after(number: number): Buffer {
    return join(this.#entries.filter((entry) => entry.number > number))
  }

  /** NDJSON of those since a position of the market, that position included: one at it may come a second time. */
  since(seq: number): Buffer {
    return join(this.#entries.filter((entry) => entry.seq >= seq))
  }
}

const join = (entries: readonly Entry[]): Buffer => Buffer.concat(entries.map(({ line }) => line))
