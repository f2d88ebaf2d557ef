import { jsonLine } from '../../lib/text/json-text.ts'
import type { StreamedSubmission } from '../../schema/api/stream.ts'
import type { EvaluatedSubmission } from '../../submissions/types.ts'
import { SUBMISSIONS_STREAMED_MAX } from '../limits.ts'

interface Entry {
  /** Counted from 1 in this run. */
  number: number
  /** The market's position when it became durable. */
  seq: number
  submission: EvaluatedSubmission
}

/** The latest submissions of this run, for those who follow them. The oldest are forgotten beyond SUBMISSIONS_STREAMED_MAX. */
export class SubmissionLog {
  readonly #entries: Entry[] = []
  readonly #describe: (submission: EvaluatedSubmission) => StreamedSubmission
  #count = 0
  /** The position of the last one that was forgotten; -1: none was. */
  forgottenSeq = -1

  /** @param describe adds names. It is called when somebody follows: submissions themselves do not pay for it. */
  constructor(describe: (submission: EvaluatedSubmission) => StreamedSubmission) {
    this.#describe = describe
  }

  /** Submissions so far. */
  get count(): number {
    return this.#count
  }

  /** How many of them are forgotten: those with a number up to this. */
  get forgotten(): number {
    return this.#count - this.#entries.length
  }

  /** @param seq the market's position now. */
  add(submission: EvaluatedSubmission, seq: number): void {
    this.#entries.push({ number: ++this.#count, seq, submission })
    if (this.#entries.length > SUBMISSIONS_STREAMED_MAX)
      this.forgottenSeq = this.#entries.shift()?.seq ?? this.forgottenSeq
  }

  /** NDJSON of the newest, oldest first. */
  newest(limit: number): Buffer {
    return this.#join(this.#entries.slice(-limit))
  }

  /** NDJSON of those after a number. */
  after(number: number): Buffer {
    return this.#join(this.#entries.filter((entry) => entry.number > number))
  }

  /** NDJSON of those since a position of the market, that position included: one at it may come a second time. */
  since(seq: number): Buffer {
    return this.#join(this.#entries.filter((entry) => entry.seq >= seq))
  }

  #join(entries: readonly Entry[]): Buffer {
    return Buffer.from(entries.map(({ submission }) => `${jsonLine(this.#describe(submission))}\n`).join(''))
  }
}
