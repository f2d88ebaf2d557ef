import { monotonicFactory } from 'ulid'
import type { Instant } from '../lib/clock.ts'
import { SECOND_MS } from '../lib/time.ts'
import type { SnapshotValues } from '../schema/datapoint.ts'
import type { Submission } from '../schema/submission.ts'
import { type Comparison, compareSnapshot, isEmptySnapshot } from './deviation.ts'
import { SubmissionError } from './errors.ts'
import type { Cooldowns } from './rate-limits/cooldowns.ts'
import type { Evaluation } from './rows.ts'
import { checkSnapshotAge, isOfAge, ownClock } from './snapshot-age.ts'
import type { MarketReader, SnapshotStamps } from './types.ts'
import { validateSubmission } from './validate.ts'
import { outcomeOf } from './xp/xp.ts'

const EMPTY_DATAPOINT_RETRY_MS = 5_000

export interface EvaluatorOptions {
  market: MarketReader
  cooldowns: Cooldowns
  /** For identities: uniform in [0, 1). */
  random: () => number
  /** The market's time, Unix ms. The age of a snapshot is measured by it too. */
  marketMs(): number
  /** What the machine's clock says, which the server may not believe, Unix ms. */
  machineMs(): number
  /** The market replays old data in its own time, which the wall clock tells nothing about. */
  recordedTime?: boolean
  /** Tells market time of snapshots that are stamped with a clock of the client's own; null, or not there: they are stamped with market time. */
  stamps?: SnapshotStamps | null | undefined
}

/** Checks the body of a submission and compares it with the market. */
export class Evaluator {
  readonly #options: EvaluatorOptions
  /** Makes identities that rise, also where the clock is set back a little. */
  #nextUlid: (timeMs: number) => string
  /** The latest time in one of them. */
  #lastIdMs = 0

  constructor(options: EvaluatorOptions) {
    this.#options = options
    this.#nextUlid = monotonicFactory(options.random)
  }

  /**
   * Checks in this order: JSON, schema, mint, cooldown, age of the snapshot, whether there is anything to compare with. Throws
   * SubmissionError where a check fails; the deviation decides the outcome and throws nothing. Reserves nothing.
   */
  evaluate(agentId: string, body: Buffer, now: Instant): Evaluation {
    const { market, cooldowns } = this.#options
    const { submission: sent, ignored } = validateSubmission(body)
    const { mint } = sent
    const current = market.snapshot(mint)
    if (current === null) throw unknownToken(mint)
    const waitMs = cooldowns.waitMs(agentId, mint, now.monotonicMs)
    if (waitMs > 0) throw inCooldown(waitMs)
    const times = this.#currentTimes(now)
    const submission = this.#inMarketTime(sent, times, now)
    const { snapshot } = submission
    if (snapshot) checkSnapshotAge(snapshot.snapshotAt, [...times, ...this.#machineTimes()])
    const enriched = market.enriched(mint)
    if (enriched === null || isEmptySnapshot(current)) throw emptyDataPoint(mint)
    const deviation = this.#compare(submission, current)
    const submittedAtMs = this.submittedAtMs(now)
    const comparedAtMs = snapshot && deviation.version === 'asOf' ? snapshot.snapshotAt : submittedAtMs
    return {
      analysisId: this.#nextId(submittedAtMs),
      agentId,
      submission,
      ignored,
      outcome: outcomeOf(deviation.deviationPct),
      deviation,
      enriched,
      submittedAtMs,
      receivedAtMs: now.wallMs,
      snapshotAtMs: Math.min(submittedAtMs, comparedAtMs),
      priceAtSubmissionUsd: current.priceUsd,
    }
  }

  /** The time in an identity is that of its row, by which the lake is searched: it goes back where an operator takes market time back. */
  #nextId(timeMs: number): string {
    const isBack = timeMs < this.#lastIdMs - SECOND_MS
    if (isBack) this.#nextUlid = monotonicFactory(this.#options.random)
    this.#lastIdMs = isBack ? timeMs : Math.max(this.#lastIdMs, timeMs)
    return `an_${this.#nextUlid(timeMs)}`
  }

  /** The submission with a snapshot that is stamped with market time, where it was stamped with a clock of the client's own. */
  #inMarketTime(submission: Submission, times: readonly number[], { wallMs }: Instant): Submission {
    const { stamps, recordedTime } = this.#options
    const { mint, snapshot } = submission
    if (!snapshot || isOfAge(snapshot.snapshotAt, times)) return submission
    const marketMs = stamps?.marketTimeOf(mint, snapshot.snapshotAt) ?? null
    if (
      marketMs === 'ambiguous' ||
      (marketMs === null && recordedTime && isOfAge(snapshot.snapshotAt, [wallMs]))
    )
      throw ownClock(snapshot.snapshotAt, Math.max(...times))
    if (marketMs === null) return submission
    return { ...submission, snapshot: { ...snapshot, snapshotAt: marketMs } }
  }

  /** The time of what is submitted now. */
  submittedAtMs(now: Instant): number {
    return Math.max(...this.#currentTimes(now))
  }

  /** The market's time and the server's. */
  #currentTimes({ wallMs }: Instant): number[] {
    const { marketMs, recordedTime } = this.#options
    return recordedTime ? [marketMs()] : [marketMs(), wallMs]
  }

  /**
   * The machine's clock may be right where the server does not believe it: a client may have copied the DataPoint's time or read a
   * correct clock, and both are right.
   */
  #machineTimes(): number[] {
    const { machineMs, recordedTime } = this.#options
    return recordedTime ? [] : [machineMs()]
  }

  /** The comparison with the smallest deviation of those that the client may have read. */
  #compare({ mint, snapshot }: Submission, current: SnapshotValues): Comparison {
    if (!snapshot)
      return { deviationPct: 0, worstField: null, deviations: {}, compared: current, version: 'current' }
    // Of versions that ended in this millisecond the client may have read one that was served.
    const versions = this.#options.market.versionsAt(mint, snapshot.snapshotAt)
    return compareSnapshot(snapshot, versions, current)
  }
}

const unknownToken = (mint: string): SubmissionError =>
  new SubmissionError('token_not_found', `No DataPoint is known for ${mint}: it cannot be verified.`)

const inCooldown = (waitMs: number): SubmissionError =>
  new SubmissionError(
    'mint_cooldown',
    `This mint is in cooldown for this agent: try again in ${Math.ceil(waitMs / 1_000)} seconds.`,
    { limit: 1, retryAfterMs: waitMs },
    { retryAfterMs: waitMs },
  )

const emptyDataPoint = (mint: string): SubmissionError =>
  new SubmissionError(
    'datapoint_unavailable',
    `The DataPoint of ${mint} holds nothing to compare with yet.`,
    {},
    { retryAfterMs: EMPTY_DATAPOINT_RETRY_MS },
  )
