// Submissions: each gets one result, durable before it is returned. Whatever is limited is reserved in memory before the first
// wait; when the store refuses, exactly that is released. What depends on submissions that the store has not acknowledged (a
// bonus, a strike) waits for them. Limits run on the monotonic clock; what is shown and stored is wall time.
import { hash } from 'node:crypto'
import { type Clock, type Instant, machineMs, readClock, toMonotonicMs } from '../lib/clock.ts'
import type { ListedRow, SubmissionQuery } from '../schema/api/submission-list.ts'
import type { ErrorCode } from '../schema/errors.ts'
import type { RecoveredLimits, RecoveredXp } from '../schema/recovered.ts'
import { isAnalysisId } from '../schema/submission.ts'
import type { TableWrite, Write } from '../schema/tables.ts'
import type { AwardedKind } from '../schema/xp.ts'
import { accept, acceptedReceipt } from './acceptance.ts'
import type { AgentRegistry } from './accounts/agent-registry.ts'
import { type Decision, evaluatedSubmission } from './decision.ts'
import { SubmissionError } from './errors.ts'
import { Evaluator, type EvaluatorOptions } from './evaluator.ts'
import {
  COOLDOWNS_LISTED_MAX,
  LABELS_DELAY_MS,
  SUBMISSIONS_IN_FLIGHT_MAX,
  SUBMIT_JITTER_MS,
  SUBMIT_LIMITS,
  SUBMIT_RATE_WINDOW_MS,
  type SubmitLimits,
} from './limits.ts'
import { listedAnalysis, publicAnalysis } from './public-analysis.ts'
import { type CooldownStart, Cooldowns } from './rate-limits/cooldowns.ts'
import { IdempotencyCache, type IdempotentRequest } from './rate-limits/idempotency.ts'
import { RateLimiter } from './rate-limits/rate-limiter.ts'
import { restoreLimits } from './rate-limits/restore.ts'
import { decodeResponse, encodeResponse, writeResponse } from './rate-limits/stored-response.ts'
import { assessRejection, reject, Strikes } from './rejection.ts'
import type { Evaluation } from './rows.ts'
import type {
  AgentRank,
  AnalysisPage,
  AwardReceipt,
  Caller,
  EvaluatedSubmission,
  Forgotten,
  Receipt,
  Standing,
  SubmissionStore,
  SubmitRequest,
  SubmitResult,
  TokenLeaderboard,
} from './types.ts'
import { rankAgents, rankTokens } from './xp/leaderboards.ts'
import { ledgerWriter, type WriteAward } from './xp/ledger.ts'
import { OutcomeTable } from './xp/outcome-counts.ts'
import { Scoreboard } from './xp/scoreboard.ts'
import { WithheldLabels } from './xp/withheld-labels.ts'
import { XP_PER_UNIT } from './xp/xp.ts'

const BUSY_RETRY_MS = 1_000

export interface SubmissionServiceOptions extends Omit<EvaluatorOptions, 'cooldowns' | 'machineMs'> {
  store: SubmissionStore
  agents: AgentRegistry
  clock: Clock
  recovered: RecoveredXp & RecoveredLimits
  /** Called when an accepted analysis is durable, with the count of its mint. */
  onAccepted(mint: string, count: number): void
  /** Called when an evaluated submission is durable. */
  onEvaluated?(submission: EvaluatedSubmission): void
  /** Called when a submission is refused, rejected ones included. */
  onRefused?: ((agentId: string, code: ErrorCode) => void) | undefined
  limits?: SubmitLimits
  /** How long others do not see the labels of a submission; 0: they see them at once. */
  labelsDelayMs?: number
  /** Called for each thing that is forgotten before its time, since there are more than its limit allows. */
  onForgotten?(kind: Forgotten): void
}

/** A submission that counts against the rate. */
interface Attempt {
  caller: Caller
  body: Buffer
  now: Instant
  /** Null: sent without an Idempotency-Key. */
  idempotent: IdempotentRequest | null
}

/** An evaluated submission and the cooldown that it started. */
interface Started {
  evaluation: Evaluation
  cooldown: CooldownStart
}

const sha256 = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex')

export class SubmissionService {
  readonly #options: Omit<SubmissionServiceOptions, 'recovered'>
  readonly #rate: RateLimiter
  readonly #cooldowns: Cooldowns
  readonly #strikes: Strikes
  readonly #scoreboard: Scoreboard
  readonly #outcomes: OutcomeTable
  readonly #labels: WithheldLabels
  readonly #writeAward: WriteAward
  readonly #evaluator: Evaluator
  readonly #idempotency: IdempotencyCache
  #inFlight = 0

  constructor({ recovered, ...options }: SubmissionServiceOptions) {
    const { limits = SUBMIT_LIMITS } = options
    const onForgotten = (kind: Forgotten) => () => options.onForgotten?.(kind)
    this.#options = options
    this.#rate = new RateLimiter(limits.rate, SUBMIT_RATE_WINDOW_MS, SUBMIT_JITTER_MS)
    this.#cooldowns = new Cooldowns(limits.cooldownMs, onForgotten('cooldown'))
    this.#idempotency = new IdempotencyCache(onForgotten('idempotency_key'))
    this.#strikes = new Strikes(limits)
    this.#scoreboard = new Scoreboard(recovered)
    this.#outcomes = new OutcomeTable(recovered.outcomeCounts)
    this.#labels = new WithheldLabels(
      options.labelsDelayMs ?? LABELS_DELAY_MS,
      (labels) => this.#scoreboard.showLabels(labels),
      onForgotten('withheld_labels'),
    )
    this.#writeAward = ledgerWriter(options.random)
    this.#evaluator = new Evaluator({
      ...options,
      cooldowns: this.#cooldowns,
      machineMs: () => machineMs(options.clock),
    })
    const reserved = {
      rate: this.#rate,
      cooldowns: this.#cooldowns,
      idempotency: this.#idempotency,
      strikes: this.#strikes.window,
    }
    const now = options.agents.recoveredAt
    restoreLimits(recovered, reserved, now)
    for (const { analysisId, atMs, ...labels } of recovered.recentLabels)
      this.#labels.add(analysisId, labels, { wallMs: atMs, monotonicMs: toMonotonicMs(atMs, now) })
  }

  /**
   * Resolves when the submission is durable. Throws SubmissionError, or the store's error. Checks Idempotency-Key, bans, load and rate,
   * in this order; the evaluation checks the rest. Who was banned since still gets the first answer: it may be the one that was lost.
   */
  async submit(caller: Caller, request: SubmitRequest): Promise<SubmitResult> {
    try {
      return await this.#submit(caller, request)
    } catch (error) {
      if (error instanceof SubmissionError) this.#options.onRefused?.(caller.agent.agentId, error.code)
      throw error
    }
  }

  async #submit(caller: Caller, { body, idempotencyKey }: SubmitRequest): Promise<SubmitResult> {
    const { agentId } = caller.agent
    const now = readClock(this.#options.clock)
    const idempotent = idempotencyKey === null ? null : { key: idempotencyKey, bodyHash: sha256(body) }
    const replay = idempotent === null ? null : this.#replay(agentId, idempotent, now)
    if (replay !== null) return replay
    this.#checkMaySubmit(caller)
    return this.#counted(agentId, now, async () => {
      if (idempotent !== null) this.#idempotency.begin(agentId, idempotent)
      try {
        return await this.#process({ caller, body, now, idempotent })
      } finally {
        if (idempotent !== null) this.#idempotency.end(agentId, idempotent)
      }
    })
  }

  #checkMaySubmit({ agent }: Caller): void {
    if (agent.type === 'researcher')
      throw new SubmissionError(
        'key_not_allowed',
        'This is a researcher’s key: it reads labels that are withheld from agents, and submits nothing. Register an agent: POST /api/v1/keys/register {name}.',
      )
    this.#options.agents.checkBan(agent.agentId)
  }

  /**
   * Makes every check of a submission and returns what it would get, without carrying it out: nothing but the attempt is
   * stored, and it counts against the rate alone. Throws what `submit` would throw.
   */
  async dryRun(caller: Caller, body: Buffer): Promise<SubmitResult> {
    const { agentId } = caller.agent
    this.#checkMaySubmit(caller)
    const now = readClock(this.#options.clock)
    return this.#counted(agentId, now, async () => {
      let receipt: Receipt
      try {
        receipt = await this.#preview(agentId, body, now)
      } finally {
        await this.#recordAttempt(agentId, now)
      }
      return { receipt, quota: this.#rate.quota(agentId, now), isReplay: false }
    })
  }

  standing({ agent: { agentId } }: Caller): Standing {
    const now = readClock(this.#options.clock)
    const { xp, analyses } = this.#scoreboard.total(agentId)
    const bannedUntil = this.#options.agents.bans(agentId).untilMs(now)
    return {
      agentId,
      xp,
      rank: this.#scoreboard.rank(agentId),
      analyses,
      ...this.#outcomes.counts(agentId),
      strikes: this.#strikes.count(agentId, now.monotonicMs),
      banned: bannedUntil !== null,
      bannedUntil: bannedUntil === Number.POSITIVE_INFINITY ? null : bannedUntil,
      limits: {
        submit: this.#rate.quota(agentId, now),
        cooldowns: this.#cooldowns
          .running(agentId, now.monotonicMs, COOLDOWNS_LISTED_MAX)
          .map(({ mint, waitMs }) => ({ mint, nextAllowedAt: now.wallMs + waitMs })),
      },
    }
  }

  /** The public form of one analysis, accepted or rejected, as `reader` may see it; null: there is none of that id. */
  async analysis(analysisId: string, reader: Caller | null): Promise<Record<string, unknown> | null> {
    // Other texts are no identities of submissions: the store need not look for them.
    if (!isAnalysisId(analysisId)) return null
    const row = await this.#options.store.analysis(analysisId)
    return row === null ? null : publicAnalysis(row, this.#labelsAvailableAt(row, reader))
  }

  /** Rejects with the store's error where the lake cannot be read. */
  async analyses(query: SubmissionQuery, reader: Caller | null): Promise<AnalysisPage> {
    const { submissions, next, searchedToMs } = await this.#options.store.submissions(query)
    const analyses = submissions.map((listed) =>
      listedAnalysis(listed, this.#labelsAvailableAt(listed.row, reader)),
    )
    return { analyses, next, searchedToMs }
  }

  /** When the reader may see the labels of a submission, Unix ms; null: now. Agents always see their own. */
  #labelsAvailableAt(row: ListedRow, reader: Caller | null): number | null {
    if (reader?.agent.agentId === row.agent_id) return null
    const receivedAtMs = row.received_at ?? row.known_at
    return this.#labels.availableAtMs(row.analysis_id, receivedAtMs, readClock(this.#options.clock))
  }

  /** Of which submissions anybody may see the labels now. */
  shownLabels(): { asOfMs: number; labelsToMs: number | null } {
    const now = readClock(this.#options.clock)
    return { asOfMs: this.#evaluator.submittedAtMs(now), labelsToMs: this.#labels.shownToMs(now) }
  }

  leaderboard(limit: number): TokenLeaderboard {
    this.#labels.release(this.#options.clock.monotonicMs())
    return rankTokens(this.#scoreboard, this.#options.market, limit)
  }

  agentLeaderboard(limit: number): AgentRank[] {
    return rankAgents(this.#scoreboard, (agentId) => this.#options.agents.name(agentId), limit)
  }

  /** Analyses that were accepted elsewhere before this ledger began count for bonuses here too. For a ledger that is still empty. */
  assumeCoverage(counts: Iterable<{ mint: string; count: number }>): void {
    for (const { mint, count } of counts) this.#scoreboard.assume(mint, count)
  }

  /** Awards XP for `times` units of an activity other than analysis. Throws not_found. */
  async award(agentId: string, kind: AwardedKind, times: number, note: string | null): Promise<AwardReceipt> {
    const { agents, clock, store } = this.#options
    agents.checkExists(agentId)
    const xp = XP_PER_UNIT[kind] * times
    const entry = { agentId, awardedAtMs: clock.now(), kind, xp, analysisId: null, note }
    await store.commit([this.#writeAward(entry)])
    this.#scoreboard.award(agentId, xp, 0)
    return { agentId, kind, xpEarned: xp, xpTotal: this.#scoreboard.total(agentId).xp }
  }

  /** The first response to the same request, returned or thrown again; null: there is none. */
  #replay(agentId: string, idempotent: IdempotentRequest, now: Instant): SubmitResult | null {
    const response = this.#idempotency.find(agentId, idempotent, now.monotonicMs)
    if (response === null) return null
    const quota = this.#rate.quota(agentId, now)
    const result = decodeResponse(response.json, quota, now.wallMs)
    if (result instanceof SubmissionError) throw result
    return { receipt: result, quota, isReplay: true }
  }

  /** Runs `work` as a submission that counts against the rate, unless too many are in flight or none is left of the rate. */
  async #counted<Result>(agentId: string, now: Instant, work: () => Promise<Result>): Promise<Result> {
    if (this.#inFlight >= SUBMISSIONS_IN_FLIGHT_MAX) throw tooManyInFlight()
    this.#takeRate(agentId, now)
    this.#inFlight++
    try {
      return await work()
    } catch (error) {
      if (error instanceof SubmissionError) error.quota = this.#rate.quota(agentId, now)
      throw error
    } finally {
      this.#inFlight--
    }
  }

  #takeRate(agentId: string, now: Instant): void {
    const quota = this.#rate.quota(agentId, now)
    if (quota?.remaining === 0) {
      const { limit, resetMs } = quota
      throw new SubmissionError(
        'submit_rate_limited',
        `At most ${limit} submissions a minute; the rate cooldown ends in ${Math.ceil(resetMs / 1_000)} seconds.`,
        { limit, retryAfterMs: resetMs },
        { retryAfterMs: resetMs, quota },
      )
    }
    this.#rate.take(agentId, now.monotonicMs)
  }

  /** Evaluates, writes, and returns the result. Whatever counts against the rate is durable first, errors too. */
  async #process(attempt: Attempt): Promise<SubmitResult> {
    const { caller, body, now } = attempt
    const { agentId } = caller.agent
    let started: Started
    let decision: Decision
    try {
      const evaluation = this.#evaluator.evaluate(agentId, body, now)
      // In the same turn in which it was checked.
      const cooldown = this.#cooldowns.start(agentId, evaluation.submission.mint, now.monotonicMs)
      started = { evaluation, cooldown }
      decision = await this.#decide(started, now)
    } catch (error) {
      await this.#recordAttempt(agentId, now)
      throw error
    }
    await this.#record(attempt, started, decision)
    this.#options.onEvaluated?.(evaluatedSubmission(started.evaluation, decision))
    const { result } = decision
    if (result instanceof SubmissionError) throw result
    this.#options.onAccepted(result.mint, this.#scoreboard.count(result.mint))
    return { receipt: result, quota: this.#rate.quota(agentId, now), isReplay: false }
  }

  /** The receipt that a submission would get now. Throws the error that it would get. Reserves nothing. */
  async #preview(agentId: string, body: Buffer, now: Instant): Promise<Receipt> {
    const evaluation = this.#evaluator.evaluate(agentId, body, now)
    return this.#whenCertain(evaluation, () => {
      if (evaluation.outcome === 'rejected')
        throw assessRejection(evaluation, now, this.#strikes, this.#options.agents.bans(agentId)).error
      return { ...acceptedReceipt(evaluation, this.#scoreboard, now.wallMs), analysisId: null }
    })
  }

  /** Accepts or rejects once bonus and strike are certain. Cancels the cooldown when the agent is banned meanwhile. */
  async #decide({ evaluation, cooldown }: Started, now: Instant): Promise<Decision> {
    const { agentId, outcome } = evaluation
    const { agents } = this.#options
    const { cooldownMs } = this.#cooldowns
    try {
      return await this.#whenCertain(evaluation, () =>
        outcome === 'rejected'
          ? reject(evaluation, now, this.#strikes, agents.bans(agentId))
          : accept(evaluation, now, this.#scoreboard, this.#writeAward, cooldownMs),
      )
    } catch (error) {
      this.#cooldowns.cancel(cooldown)
      throw error
    }
  }

  /**
   * Waits for the submissions that bonus or strike depend on, then calls `decide` in the same turn, so that of several that
   * waited one is decided first. Throws where one of them has suspended the agent.
   */
  async #whenCertain<Result>(evaluation: Evaluation, decide: () => Result): Promise<Result> {
    for (let wait = this.#waitFor(evaluation); wait !== null; wait = this.#waitFor(evaluation)) {
      await wait
      this.#options.agents.checkBan(evaluation.agentId)
    }
    return decide()
  }

  #waitFor({ agentId, outcome, submission }: Evaluation): Promise<void> | null {
    return outcome === 'rejected'
      ? this.#strikes.waitForDecision(agentId)
      : this.#scoreboard.waitForBonus(submission.mint)
  }

  /** Makes a decision durable, and its response repeatable. Releases what was reserved when the store refuses. */
  async #record(
    { caller, now, idempotent }: Attempt,
    { evaluation, cooldown }: Started,
    decision: Decision,
  ): Promise<void> {
    const { agentId } = caller.agent
    const { result } = decision
    const writes: Write[] = [...decision.writes]
    if (this.#rate.isEnabled) writes.push(writeAttempt(agentId, now))
    const json = idempotent === null ? '' : encodeResponse(result)
    if (idempotent !== null) writes.push(writeResponse(agentId, idempotent, result, json, now.wallMs))
    try {
      await this.#options.store.commit(writes)
    } catch (error) {
      this.#cooldowns.cancel(cooldown)
      decision.cancel()
      this.#rate.release(agentId, now.monotonicMs)
      throw error
    }
    this.#confirm(evaluation, decision, now)
    if (idempotent === null) return
    const { key, bodyHash } = idempotent
    this.#idempotency.remember(agentId, key, { bodyHash, json, atMs: now.monotonicMs })
  }

  /** A decision is durable. */
  #confirm({ analysisId, agentId, outcome, submission }: Evaluation, decision: Decision, now: Instant): void {
    const { mint, sentiment, score } = submission
    decision.confirm()
    this.#outcomes.add(agentId, outcome)
    const isCovered = outcome !== 'rejected'
    this.#labels.add(analysisId, isCovered ? { mint, sentiment, score } : null, now)
  }

  /** Records that a refused submission or a dry run counted against the rate. */
  async #recordAttempt(agentId: string, now: Instant): Promise<void> {
    if (!this.#rate.isEnabled) return
    try {
      await this.#options.store.commit([writeAttempt(agentId, now)])
    } catch (error) {
      this.#rate.release(agentId, now.monotonicMs)
      throw error
    }
  }
}

const writeAttempt = (agentId: string, { wallMs }: Instant): TableWrite<'submit_attempts'> => ({
  table: 'submit_attempts',
  row: { agent_id: agentId, at: wallMs },
})

const tooManyInFlight = (): SubmissionError =>
  new SubmissionError(
    'store_unavailable',
    'Too many submissions wait for the store.',
    {},
    { retryAfterMs: BUSY_RETRY_MS },
  )
