import { jsonLine } from '../../lib/text/json-text.ts'
import type { Market } from '../../market/market.ts'
import type { StreamedSubmission } from '../../schema/api/stream.ts'
import type { EvaluatedSubmission } from '../../submissions/types.ts'
import { SUBMISSIONS_STREAMED_MAX } from '../limits.ts'

interface Entry {
  /** The market's position when it became durable. */
  seq: number
  submission: EvaluatedSubmission
}

/** The latest submissions of this run, for those who follow them. The oldest are forgotten beyond SUBMISSIONS_STREAMED_MAX. */
export class SubmissionLog {
  readonly #entries: Entry[] = []
  readonly #market: Pick<Market, 'profile'>
  readonly #nameOf: (agentId: string) => string
  /** How many are forgotten: those with a number up to this, counted from 1 in this run. */
  forgotten = 0
  /** The position of the last of them; -1: there is none. */
  forgottenSeq = -1

  /** Names are asked for when somebody follows: submissions themselves do not pay for them. */
  constructor(market: Pick<Market, 'profile'>, nameOf: (agentId: string) => string) {
    this.#market = market
    this.#nameOf = nameOf
  }

  /** Submissions so far. */
  get count(): number {
    return this.forgotten + this.#entries.length
  }

  /** @param seq the market's position now. */
  add(submission: EvaluatedSubmission, seq: number): void {
    this.#entries.push({ seq, submission })
    if (this.#entries.length <= SUBMISSIONS_STREAMED_MAX) return
    this.forgottenSeq = this.#entries.shift()?.seq ?? -1
    this.forgotten++
  }

  /** NDJSON of the newest, oldest first. */
  newest(limit: number): Buffer {
    return this.#join(this.#entries.slice(-limit))
  }

  /** NDJSON of those after a number, which none of the forgotten ones has. */
  after(number: number): Buffer {
    return this.#join(this.#entries.slice(number - this.forgotten))
  }

  /** NDJSON of those since a position of the market, that position included: one at it may come a second time. */
  since(seq: number): Buffer {
    return this.#join(this.#entries.filter((entry) => entry.seq >= seq))
  }

  #join(entries: readonly Entry[]): Buffer {
    return Buffer.from(entries.map(({ submission }) => `${jsonLine(this.#named(submission))}\n`).join(''))
  }

  #named(submission: EvaluatedSubmission): StreamedSubmission {
    const symbol = this.#market.profile(submission.mint)?.symbol ?? null
    return { ...submission, agentName: this.#nameOf(submission.agentId), symbol }
  }
}
