// Submissions: each gets one result, durable before it is returned. Whatever is limited is reserved in memory before the first
// wait; when the store refuses, exactly that is released. What depends on submissions that the store has not acknowledged (a
// bonus, a strike) waits for them. Limits run on the monotonic clock; what is shown and stored is wall time.
import { hash } from 'node:crypto'
import { type Clock, type Instant, readClock } from '../lib/clock.ts'
import { isAnalysisId } from '../schema/submission.ts'
import type { TableWrite, Write } from '../schema/tables.ts'
import { Acceptance } from './acceptance.ts'
import type { AgentRegistry } from './accounts/agent-registry.ts'
import { STRIKE_RULES, type StrikeRules } from './accounts/sanctions.ts'
import type { Decision } from './decision.ts'
import { SubmissionError } from './errors.ts'
import { Evaluator } from './evaluator.ts'
import {
  MINT_COOLDOWN_MS,
  SUBMISSIONS_IN_FLIGHT_MAX,
  SUBMIT_RATE_MAX,
  SUBMIT_RATE_WINDOW_MS,
} from './limits.ts'
import { Cooldowns } from './rate-limits/cooldowns.ts'
import { IdempotencyCache, type IdempotentRequest } from './rate-limits/idempotency.ts'
import { RateLimiter } from './rate-limits/rate-limiter.ts'
import { restoreLimits } from './rate-limits/restore.ts'
import { decodeResponse, encodeResponse, writeResponse } from './rate-limits/stored-response.ts'
import { Rejection, Strikes } from './rejection.ts'
import { type Evaluation, publicAnalysis } from './rows.ts'
import type {
  AgentRank,
  AwardReceipt,
  Caller,
  MarketReader,
  RecoveredLimits,
  RecoveredXp,
  SubmissionStore,
  Submissions,
  SubmitRequest,
  SubmitResult,
  TokenLeaderboard,
} from './types.ts'
import { checkAwardTimes, parseAwardedKind } from './xp/awards.ts'
import { rankAgents, rankTokens } from './xp/leaderboards.ts'
import { XpLedger } from './xp/ledger.ts'
import { Scoreboard } from './xp/scoreboard.ts'
import { xpPerUnit } from './xp/xp.ts'

const BUSY_RETRY_MS = 1_000

export interface SubmissionServiceOptions {
  market: MarketReader
  store: SubmissionStore
  agents: AgentRegistry
  clock: Clock
  /** For identities: uniform in [0, 1). */
  random: () => number
  /** The market's time, Unix ms. The age of a snapshot is measured by it too. */
  marketMs(): number
  /** The market replays old data in its own time, which the wall clock tells nothing about. */
  recordedTime?: boolean
  recovered: RecoveredXp & RecoveredLimits
  /** Called when an accepted analysis is durable, with the count of its mint. */
  onAccepted(mint: string, count: number): void
  /** Called when an evaluated submission is durable. */
  onOutcome?(outcome: Evaluation['outcome']): void
  submitRateMax?: number
  cooldownMs?: number
  strikeRules?: StrikeRules
}

/** A submission that counts against the rate. */
interface Attempt {
  caller: Caller
  body: Buffer
  now: Instant
  /** Null: sent without an Idempotency-Key. */
  idempotent: IdempotentRequest | null
}

const sha256 = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex')

export class SubmissionService implements Submissions {
  readonly #options: SubmissionServiceOptions
  readonly #rate: RateLimiter
  readonly #cooldowns: Cooldowns
  readonly #strikes: Strikes
  readonly #scoreboard: Scoreboard
  readonly #ledger: XpLedger
  readonly #evaluator: Evaluator
  readonly #idempotency = new IdempotencyCache()
  #inFlight = 0

  constructor(options: SubmissionServiceOptions) {
    const { market, recovered, random, recordedTime = false } = options
    this.#options = options
    this.#rate = new RateLimiter(options.submitRateMax ?? SUBMIT_RATE_MAX, SUBMIT_RATE_WINDOW_MS)
    this.#cooldowns = new Cooldowns(options.cooldownMs ?? MINT_COOLDOWN_MS)
    this.#strikes = new Strikes(options.strikeRules ?? STRIKE_RULES)
    this.#scoreboard = new Scoreboard(recovered)
    this.#ledger = new XpLedger(random)
    this.#evaluator = new Evaluator({
      market,
      random,
      recordedTime,
      cooldowns: this.#cooldowns,
      marketMs: () => options.marketMs(),
    })
    const limits = {
      rate: this.#rate,
      cooldowns: this.#cooldowns,
      idempotency: this.#idempotency,
      strikes: this.#strikes.window,
    }
    restoreLimits(recovered, limits, readClock(options.clock))
  }

  /** Checks bans, Idempotency-Key, load and rate, in this order; the evaluation checks the rest. */
  async submit(caller: Caller, { body, idempotencyKey }: SubmitRequest): Promise<SubmitResult> {
    const { agentId } = caller.agent
    this.#options.agents.checkBan(agentId)
    const now = readClock(this.#options.clock)
    const idempotent = idempotencyKey === null ? null : { key: idempotencyKey, bodyHash: sha256(body) }
    const replay = idempotent === null ? null : this.#replay(agentId, idempotent, now)
    if (replay !== null) return replay
    if (this.#inFlight >= SUBMISSIONS_IN_FLIGHT_MAX) throw tooManyInFlight()
    this.#takeRate(agentId, now)
    this.#inFlight++
    if (idempotent !== null) this.#idempotency.begin(agentId, idempotent)
    try {
      return await this.#process({ caller, body, now, idempotent })
    } catch (error) {
      if (error instanceof SubmissionError) error.quota = this.#rate.quota(agentId, now)
      throw error
    } finally {
      this.#inFlight--
      if (idempotent !== null) this.#idempotency.end(agentId, idempotent)
    }
  }

  async analysis(analysisId: string): Promise<Record<string, unknown> | null> {
    // Other texts are no identities of submissions: the store need not look for them.
    if (!isAnalysisId(analysisId)) return null
    const row = await this.#options.store.analysis(analysisId)
    return row === null ? null : publicAnalysis(row)
  }

  leaderboard(limit: number): TokenLeaderboard {
    return rankTokens(this.#scoreboard, this.#options.market, limit)
  }

  agentLeaderboard(limit: number): AgentRank[] {
    return rankAgents(this.#scoreboard, (agentId) => this.#options.agents.name(agentId), limit)
  }

  async award(agentId: string, kindName: string, times: number, note: string | null): Promise<AwardReceipt> {
    const kind = parseAwardedKind(kindName)
    checkAwardTimes(times)
    const { agents, clock, store } = this.#options
    agents.checkExists(agentId)
    const xp = xpPerUnit(kind) * times
    const entry = { agentId, awardedAtMs: clock.now(), kind, xp, analysisId: null, note }
    await store.commit([this.#ledger.write(entry)])
    this.#scoreboard.award(agentId, xp, 0)
    return { agentId, kind, xpEarned: xp, xpTotal: this.#scoreboard.xp(agentId) }
  }

  /** The first response to the same request, returned or thrown again; null: there is none. */
  #replay(agentId: string, idempotent: IdempotentRequest, now: Instant): SubmitResult | null {
    const response = this.#idempotency.find(agentId, idempotent, now.monotonicMs)
    if (response === null) return null
    const quota = this.#rate.quota(agentId, now)
    const result = decodeResponse(response.json, quota)
    if (result instanceof SubmissionError) throw result
    return { receipt: result, quota, isReplay: true }
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
    let evaluation: Evaluation
    let decision: Decision
    try {
      evaluation = this.#evaluator.evaluate(agentId, body, now)
      decision = await this.#decide(evaluation, now)
    } catch (error) {
      if (this.#rate.isEnabled) await this.#recordAttempt(agentId, now)
      throw error
    }
    await this.#record(attempt, evaluation, decision)
    this.#options.onOutcome?.(evaluation.outcome)
    const { result } = decision
    if (result instanceof SubmissionError) throw result
    this.#options.onAccepted(result.mint, this.#scoreboard.count(result.mint))
    return { receipt: result, quota: this.#rate.quota(agentId, now), isReplay: false }
  }

  /** Waits until bonus or strike are certain, then accepts or rejects. Cancels the cooldown when the agent is banned meanwhile. */
  async #decide(evaluation: Evaluation, now: Instant): Promise<Decision> {
    const { agentId, outcome } = evaluation
    const { agents } = this.#options
    try {
      for (let wait = this.#waitFor(evaluation); wait !== null; wait = this.#waitFor(evaluation)) {
        await wait
        // The submission that was waited for may have suspended the agent.
        agents.checkBan(agentId)
      }
    } catch (error) {
      this.#cooldowns.cancel(evaluation.cooldown)
      throw error
    }
    if (outcome === 'rejected') return new Rejection(evaluation, now, this.#strikes, agents.bans(agentId))
    const { cooldownMs } = this.#cooldowns
    return new Acceptance(evaluation, now, {
      scoreboard: this.#scoreboard,
      ledger: this.#ledger,
      cooldownMs,
    })
  }

  #waitFor({ agentId, outcome, submission }: Evaluation): Promise<void> | null {
    return outcome === 'rejected'
      ? this.#strikes.waitForDecision(agentId)
      : this.#scoreboard.waitForBonus(submission.mint)
  }

  /** Makes a decision durable, and its response repeatable. Releases what was reserved when the store refuses. */
  async #record(
    { caller, now, idempotent }: Attempt,
    evaluation: Evaluation,
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
      this.#cooldowns.cancel(evaluation.cooldown)
      decision.cancel()
      this.#rate.release(agentId, now.monotonicMs)
      throw error
    }
    decision.confirm()
    if (idempotent === null) return
    const { key, bodyHash } = idempotent
    this.#idempotency.remember(agentId, key, { bodyHash, json, atMs: now.monotonicMs })
  }

  /** Records that a refused submission counted against the rate. */
  async #recordAttempt(agentId: string, now: Instant): Promise<void> {
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
