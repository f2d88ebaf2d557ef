// In: submissions as bytes, from agents whose key is good. Out: one answer each, durable before it is given.
// The order of checks is the contract's. Whatever limits is reserved in memory before the first wait, and taken back, and
// nothing else with it, when the store refuses. What depends on the fate of others on their way to the store (a bonus, a
// strike) waits for it. Limits run on the monotonic clock; what is shown and stored is wall time.
// Never reads the system clock, and never answers 201 before the store has.
import { createHash } from 'node:crypto'
import { monotonicFactory } from 'ulid'
import { type Clock, type Instant, readClock, toMonotonicMs } from '../lib/clock.ts'
import { machineRandom } from '../lib/random.ts'
import type { SnapshotValues } from '../schema/datapoint.ts'
import { type ErrorCode, type ErrorExtra, ServiceError } from '../schema/errors.ts'
import { isAnalysisId, type Submission } from '../schema/submission.ts'
import type { Row, Write } from '../schema/tables.ts'
import { XP_KINDS, type XpKind } from '../schema/xp.ts'
import type { AgentRegistry } from './accounts/agent-registry.ts'
import { banned } from './accounts/bans.ts'
import { type Sanction, STRIKE_RULES, type StrikeRules, sanctionFor, warningFor } from './accounts/strikes.ts'
import { type Comparison, compareSnapshot, isEmptySnapshot, shownPercent } from './deviation.ts'
import {
  ANALYSIS_GOAL,
  AWARD_TIMES_MAX,
  MINT_COOLDOWN_MS,
  STRIKES_KEPT_MAX,
  SUBMISSIONS_IN_FLIGHT_MAX,
  SUBMIT_RATE_MAX,
  SUBMIT_RATE_WINDOW_MS,
} from './limits.ts'
import { createCooldowns } from './rate-limits/cooldown.ts'
import { IdempotencyCache, type Remembered } from './rate-limits/idempotency.ts'
import { createRateLimiter, rateHeaders } from './rate-limits/rate-limit.ts'
import { SlidingLog } from './rate-limits/sliding-log.ts'
import { Waiters } from './rate-limits/waiters.ts'
import { type Evaluation, ledgerWrite, publicAnalysis, submissionRow, trainingRow } from './rows.ts'
import { Scoreboard, type ScoreboardStart } from './scoreboard.ts'
import { checkSnapshotAge } from './snapshot-age.ts'
import type {
  Answer,
  Caller,
  MarketReader,
  SubmissionService,
  SubmissionStore,
  SubmitRequest,
} from './types.ts'
import { validateSubmission } from './validate.ts'
import { outcomeOf, xpBreakdown, xpEarned, xpPerUnit } from './xp.ts'

export interface SubmissionServiceOptions {
  market: MarketReader
  store: SubmissionStore
  agents: AgentRegistry
  clock: Clock
  /** Of new identities; without it the machine’s own. Uniform in [0, 1). */
  random?: () => number
  /** The market's time, beside which a snapshot may not be older or younger than allowed. */
  marketMs(): number
  /** In a replay of old data the wall clock says nothing of the market's time. */
  recordedTime?: boolean
  recovered: ScoreboardStart & {
    submitAttempts: readonly Row[]
    idempotency: readonly Row[]
    /** Wall times, as the others. */
    cooldowns: readonly { agentId: string; mint: string; atMs: number }[]
    strikes: readonly { agentId: string; atMs: number }[]
  }
  /** Another accepted analysis of a mint is durable. */
  onAccepted(mint: string, count: number): void
  submitRateMax?: number
  cooldownMs?: number
  strikeRules?: StrikeRules
}

/** A verdict on its way to the store: what to write, what to answer then, and what becomes of what it has reserved. */
interface Decision {
  writes: Write[]
  /** A rejection is answered as an error, once it is on record. */
  answer: Answer | ServiceError
  confirm(): void
  cancel(): void
}

/** A submission that was judged, with its cooldown begun. */
interface Reserved {
  evaluation: Evaluation
  ignored: string[]
  cancelCooldown(): void
}

/** An answer as it is remembered under an Idempotency-Key. */
type StoredResponse =
  | { body: Record<string, unknown> }
  | { code: ErrorCode; sentence: string; extra: ErrorExtra }

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const seconds = (ms: number): number => Math.ceil(ms / 1_000)
const UNVALIDATED_WARNING =
  'The snapshot deviates from the DataPoint by more than 15%: half the XP. Above 50% a submission is rejected and may lead to a ban.'

export function createSubmissionService(options: SubmissionServiceOptions): SubmissionService {
  const { market, store, agents, clock, recovered, onAccepted } = options
  const {
    submitRateMax = SUBMIT_RATE_MAX,
    cooldownMs = MINT_COOLDOWN_MS,
    strikeRules = STRIKE_RULES,
  } = options
  const rate = createRateLimiter(submitRateMax, SUBMIT_RATE_WINDOW_MS)
  const cooldowns = createCooldowns(cooldownMs)
  const idempotency = new IdempotencyCache()
  const scoreboard = new Scoreboard(recovered)
  const strikes = new SlidingLog(strikeRules.strikeWindowMs, STRIKES_KEPT_MAX)
  /** Agents with a rejection on its way to the store: the next one waits, to know which strike it is. */
  const rejecting = new Set<string>()
  const rejectionEnds = new Waiters()
  const random = options.random ?? machineRandom()
  /** An identity bears the time of its row, by which the lake is searched; awards have a time of their own. */
  const nextAnalysisId = monotonicFactory(random)
  const nextEntryId = monotonicFactory(random)
  let inFlight = 0
  recoverLimits(readClock(clock))

  /** What is left of each limit is what the wall clock says, and never more than the limit is long. */
  function recoverLimits(now: Instant): void {
    const inOrder = <Stored>(stored: readonly Stored[], wallMsOf: (each: Stored) => number) =>
      stored
        .map((each) => ({ each, atMs: toMonotonicMs(wallMsOf(each), now) }))
        .sort((one, other) => one.atMs - other.atMs)
    for (const { each, atMs } of inOrder(recovered.submitAttempts, (row) => row.at as number))
      rate.take(each.agent_id as string, atMs)
    for (const { each, atMs } of inOrder(recovered.cooldowns, (start) => start.atMs))
      cooldowns.start(each.agentId, each.mint, atMs)
    for (const { each, atMs } of inOrder(recovered.strikes, (strike) => strike.atMs))
      strikes.add(each.agentId, atMs)
    for (const { each, atMs } of inOrder(recovered.idempotency, (row) => row.at as number)) {
      idempotency.remember(each.agent_id as string, each.idempotency_key as string, {
        bodyHash: each.body_hash as string,
        status: each.status as number,
        body: each.body as string,
        atMs,
      })
    }
  }

  const limitHeaders = (agentId: string, now: Instant) =>
    rateHeaders('submit', rate.state(agentId, now.monotonicMs), SUBMIT_RATE_WINDOW_MS, now)

  async function submit(caller: Caller, { body, idempotencyKey }: SubmitRequest): Promise<Answer> {
    const { agentId } = caller.agent
    agents.checkBan(caller)
    const now = readClock(clock)
    const bodyHash = idempotencyKey === null ? '' : sha256(body)
    if (idempotencyKey !== null) {
      const first = idempotency.find(agentId, idempotencyKey, bodyHash, now.monotonicMs)
      if (first !== null)
        return replay(first, { ...limitHeaders(agentId, now), 'Idempotency-Replayed': 'true' })
    }
    if (inFlight >= SUBMISSIONS_IN_FLIGHT_MAX) throw unavailable('Too many submissions wait for the store.')
    takeRate(agentId, now)
    inFlight++
    if (idempotencyKey !== null) idempotency.begin(agentId, idempotencyKey, bodyHash)
    try {
      return await settle(caller, body, now, idempotencyKey, bodyHash)
    } catch (error) {
      throw withHeaders(error, limitHeaders(agentId, now))
    } finally {
      inFlight--
      if (idempotencyKey !== null) idempotency.end(agentId, idempotencyKey)
    }
  }

  /** Judges, writes and answers. Whatever uses rate is durable before it is answered, errors included. */
  async function settle(
    caller: Caller,
    body: Buffer,
    now: Instant,
    idempotencyKey: string | null,
    bodyHash: string,
  ): Promise<Answer> {
    const { agentId } = caller.agent
    const attempt: Write = { table: 'submit_attempts', row: { agent_id: agentId, at: now.wallMs } }
    let decision: Decision
    try {
      decision = await decide(caller, evaluate(caller, body, now), now)
    } catch (error) {
      if (rate.enabled) await commit([attempt], () => rate.release(agentId, now.monotonicMs))
      throw error
    }
    const writes = rate.enabled ? [...decision.writes, attempt] : [...decision.writes]
    const kept = idempotencyKey === null ? null : keep(decision.answer, bodyHash, now.monotonicMs)
    if (kept !== null) writes.push(rememberedWrite(agentId, idempotencyKey!, kept, now.wallMs))
    await commit(writes, () => {
      decision.cancel()
      rate.release(agentId, now.monotonicMs)
    })
    decision.confirm()
    if (kept !== null) idempotency.remember(agentId, idempotencyKey!, kept)
    const { answer } = decision
    if (answer instanceof ServiceError) throw answer
    onAccepted(answer.body.mint as string, scoreboard.countOf(answer.body.mint as string))
    return { ...answer, headers: { ...limitHeaders(agentId, now), ...answer.headers } }
  }

  /** Writes; where the store refuses, what was reserved for it is taken back. */
  async function commit(writes: readonly Write[], cancel: () => void): Promise<void> {
    try {
      await store.commit(writes)
    } catch (error) {
      cancel()
      throw error
    }
  }

  function takeRate(agentId: string, now: Instant): void {
    const state = rate.state(agentId, now.monotonicMs)
    if (!state.allowed) {
      throw new ServiceError(
        'submit_rate_limited',
        `At most ${state.limit} submissions a minute; the rate cooldown ends in ${seconds(state.resetMs)} seconds.`,
        { limit: state.limit, retryAfterMs: state.resetMs },
        { ...limitHeaders(agentId, now), 'Retry-After': `${seconds(state.resetMs)}` },
      )
    }
    rate.take(agentId, now.monotonicMs)
  }

  /** JSON, schema, mint, cooldown, age, deviation: throws, or begins the cooldown and says how it was judged. */
  function evaluate(caller: Caller, body: Buffer, now: Instant): Reserved {
    const { agentId } = caller.agent
    const { submission, ignored } = validateSubmission(body)
    const { mint } = submission
    const current = market.snapshot(mint)
    if (current === null)
      throw new ServiceError('token_not_found', `No DataPoint is known for ${mint}: it cannot be verified.`)
    const waitMs = cooldowns.waitMs(agentId, mint, now.monotonicMs)
    if (waitMs > 0) throw cooldownError(waitMs)
    const times = marketTimes(now)
    if (submission.snapshot) checkSnapshotAge(submission.snapshot.snapshotAt, times)
    if (isEmptySnapshot(current)) {
      throw new ServiceError(
        'datapoint_unavailable',
        `The DataPoint of ${mint} holds nothing to compare with yet.`,
        {},
        { 'Retry-After': '5' },
      )
    }
    const comparison = compare(submission, current)
    const submittedAtMs = Math.max(...times)
    const evaluation: Evaluation = {
      analysisId: `an_${nextAnalysisId(submittedAtMs)}`,
      agentId,
      submission,
      outcome: outcomeOf(comparison.deviationPct),
      deviation: comparison,
      compared: comparison.compared,
      enriched: market.enriched(mint)!,
      submittedAtMs,
      receivedAtMs: now.wallMs,
      snapshotAtMs: Math.min(
        submittedAtMs,
        comparison.version === 'asOf' ? submission.snapshot!.snapshotAt : submittedAtMs,
      ),
      priceAtSubmissionUsd: current.priceUsd,
    }
    return { evaluation, ignored, cancelCooldown: cooldowns.start(agentId, mint, now.monotonicMs) }
  }

  /**
   * The times that may be called now: the market's, which never goes back, and the wall clock's. They differ where the
   * wall clock was set back: who copies the DataPoint's time is as honest as who reads a clock that is right.
   */
  function marketTimes({ wallMs }: Instant): number[] {
    return options.recordedTime ? [options.marketMs()] : [options.marketMs(), wallMs]
  }

  /** What the judgement brings: bonuses and strikes are told once nothing on its way can change them. */
  async function decide(caller: Caller, reserved: Reserved, now: Instant): Promise<Decision> {
    const { evaluation, ignored, cancelCooldown } = reserved
    const { agentId, outcome, submission } = evaluation
    const waitsFor = (): Promise<void> | null => {
      if (outcome !== 'rejected') return scoreboard.undecided(submission.mint)
      return rejecting.has(agentId) ? rejectionEnds.next(agentId) : null
    }
    try {
      for (let other = waitsFor(); other !== null; other = waitsFor()) {
        await other
        // What it waited for may have been the strike that suspends.
        agents.checkBan(caller)
      }
    } catch (error) {
      cancelCooldown()
      throw error
    }
    const decision = outcome === 'rejected' ? reject(evaluation, now) : accept(evaluation, ignored, now)
    const cancel = (): void => {
      cancelCooldown()
      decision.cancel()
    }
    return { ...decision, cancel }
  }

  function compare({ mint, snapshot }: Submission, current: SnapshotValues): Comparison {
    if (!snapshot)
      return { deviationPct: 0, worstField: null, deviations: {}, compared: current, version: 'current' }
    const atItsEnd = compareSnapshot(snapshot, market.asOf(mint, snapshot.snapshotAt), current)
    if (atItsEnd.deviationPct === 0) return atItsEnd
    // In the millisecond of a change two versions were in effect, and either may have been served.
    const atItsStart = compareSnapshot(snapshot, market.asOf(mint, snapshot.snapshotAt - 1), current)
    return atItsStart.deviationPct < atItsEnd.deviationPct ? atItsStart : atItsEnd
  }

  function cooldownError(waitMs: number): ServiceError {
    return new ServiceError(
      'mint_cooldown',
      `This mint is in cooldown for this key: try again in ${seconds(waitMs)} seconds.`,
      { limit: 1, retryAfterMs: waitMs },
      { 'Retry-After': `${seconds(waitMs)}` },
    )
  }

  function accept(evaluation: Evaluation, ignored: string[], now: Instant): Decision {
    const { analysisId, agentId, submission, outcome, deviation } = evaluation
    const { mint, sentiment, score } = submission
    const breakdown = xpBreakdown(outcome, scoreboard.countBefore(mint))
    const xp = xpEarned(breakdown)
    const { xpTotal, confirm, cancel } = scoreboard.begin({ agentId, mint, xp, sentiment, score })
    const { deviationPct, worstField, deviations } = deviation
    const body = {
      ok: true,
      analysisId,
      mint,
      outcome,
      validated: outcome === 'validated',
      xpEarned: xp,
      xpTotal,
      xpBreakdown: breakdown,
      deviationPct,
      worstField,
      deviations,
      snapshotSource: submission.snapshot ? 'client' : 'server',
      enriched: evaluation.enriched,
      ...(outcome === 'unvalidated' && { warning: UNVALIDATED_WARNING }),
      ...(ignored.length > 0 && { ignored }),
      createdAt: evaluation.submittedAtMs,
      nextAllowedAt: now.wallMs + cooldownMs,
    }
    const award = ledgerWrite(
      `xp_${nextEntryId(evaluation.submittedAtMs)}`,
      agentId,
      evaluation.submittedAtMs,
      'analysis',
      xp,
      analysisId,
      null,
    )
    return {
      writes: [{ table: 'training', row: trainingRow(evaluation) }, award],
      answer: { status: 201, body, headers: locationOf(analysisId) },
      confirm,
      cancel,
    }
  }

  /** A rejection is recorded, counts as a strike, and starts the mint's cooldown: guessing on is no way out. */
  function reject(evaluation: Evaluation, now: Instant): Decision {
    const { agentId } = evaluation
    const { monotonicMs, wallMs } = now
    strikes.add(agentId, monotonicMs)
    rejecting.add(agentId)
    const count = strikes.timesOf(agentId, monotonicMs).length
    const sanction = sanctionFor(count, agents.suspensions(agentId), monotonicMs, strikeRules)
    const untilMs = untilOf(sanction, wallMs)
    // In force at once: a racing submission must not slip through while the store writes.
    const suspension = untilMs === undefined ? null : agents.suspend(agentId, untilMs, now)
    const end = (): void => {
      rejecting.delete(agentId)
      rejectionEnds.wake(agentId)
    }
    return {
      writes: [
        { table: 'rejections', row: { ...submissionRow(evaluation), strikes: count } },
        ...(suspension?.writes ?? []),
      ],
      answer: rejectionError(evaluation, count, sanction, wallMs),
      confirm() {
        suspension?.confirm()
        end()
      },
      cancel() {
        strikes.remove(agentId, monotonicMs)
        suspension?.cancel()
        end()
      },
    }
  }

  function rejectionError(
    { submission, deviation }: Evaluation,
    count: number,
    sanction: Sanction,
    nowMs: number,
  ): ServiceError {
    const warning = warningFor(count, sanction, strikeRules)
    const { deviationPct, worstField, deviations } = deviation
    const members = {
      mint: submission.mint,
      outcome: 'rejected',
      validated: false,
      deviationPct,
      worstField,
      deviations,
      strikes: count,
      warning,
    }
    const untilMs = untilOf(sanction, nowMs)
    if (untilMs !== undefined) return banned(untilMs ?? Number.POSITIVE_INFINITY, nowMs, warning, members)
    return new ServiceError(
      'snapshot_rejected',
      `The snapshot deviates from the DataPoint by ${shownPercent(deviationPct)} (${worstField}).`,
      members,
    )
  }

  async function award(
    agentId: string,
    kind: string,
    times: number,
    note: string | null,
  ): Promise<Record<string, unknown>> {
    if (!XP_KINDS.includes(kind as XpKind) || kind === 'analysis') {
      const allowed = XP_KINDS.filter((word) => word !== 'analysis')
      throw new ServiceError('validation_failed', `kind must be one of ${allowed.join(', ')}.`, {
        errors: [{ pointer: '/kind', code: 'not_allowed', message: 'is not awarded by hand', allowed }],
      })
    }
    if (!Number.isInteger(times) || times < 1 || times > AWARD_TIMES_MAX) {
      throw new ServiceError('validation_failed', `times must be 1 to ${AWARD_TIMES_MAX}.`, {
        errors: [{ pointer: '/times', code: 'out_of_range', message: `must be 1 to ${AWARD_TIMES_MAX}` }],
      })
    }
    agents.suspensions(agentId)
    const xp = xpPerUnit(kind as Exclude<XpKind, 'analysis'>) * times
    const nowMs = clock.now()
    await store.commit([ledgerWrite(`xp_${nextEntryId(nowMs)}`, agentId, nowMs, kind, xp, null, note)])
    scoreboard.award(agentId, xp, 0)
    return { agentId, kind, xpEarned: xp, xpTotal: scoreboard.xpOf(agentId) }
  }

  return {
    submit,
    award,
    async analysis(analysisId) {
      // A text that no submission here can bear is not looked for.
      const row = isAnalysisId(analysisId) ? await store.analysis(analysisId) : null
      return row && publicAnalysis(row)
    },
    leaderboard(limit) {
      const leaderboard = scoreboard.topTokens(limit).map(({ mint, ...coverage }) => {
        const token = market.datapoint(mint)
        return {
          mint,
          name: token?.name ?? null,
          symbol: token?.symbol ?? null,
          image: token?.imageUrl ?? null,
          ...coverage,
        }
      })
      const { totalAnalyses, uniqueTokens } = scoreboard
      const progress = Math.min(100, (100 * totalAnalyses) / ANALYSIS_GOAL)
      return { ok: true, totalAnalyses, uniqueTokens, goal: ANALYSIS_GOAL, progress, leaderboard }
    },
    agentLeaderboard(limit) {
      const leaderboard = scoreboard.topAgents(limit).map(({ agentId, xp, analyses }, index) => ({
        rank: index + 1,
        agentId,
        name: agents.name(agentId),
        xp,
        analyses,
      }))
      return { ok: true, data: leaderboard, leaderboard }
    },
  }
}

/** Until when a sanction suspends, wall time; null for good; undefined where it does not. */
function untilOf(sanction: Sanction, nowMs: number): number | null | undefined {
  if (sanction.kind === 'warning') return undefined
  return sanction.kind === 'ban' ? null : nowMs + sanction.lengthMs
}

const unavailable = (sentence: string): ServiceError =>
  new ServiceError('store_unavailable', sentence, {}, { 'Retry-After': '1' })

function keep(answer: Answer | ServiceError, bodyHash: string, atMs: number): Remembered {
  const kept: StoredResponse =
    answer instanceof ServiceError
      ? { code: answer.code, sentence: answer.message, extra: answer.extra }
      : { body: answer.body }
  return { bodyHash, status: answer.status, body: JSON.stringify(kept), atMs }
}

const rememberedWrite = (
  agentId: string,
  idempotencyKey: string,
  { bodyHash, status, body }: Remembered,
  wallMs: number,
): Write => ({
  table: 'idempotency',
  row: { agent_id: agentId, idempotency_key: idempotencyKey, body_hash: bodyHash, status, body, at: wallMs },
})

const locationOf = (analysisId: string) => ({ Location: `/api/v1/analysis/${analysisId}` })

/** The first answer again: returned, or thrown when it was an error. */
function replay(first: { status: number; body: string }, headers: Record<string, string>): Answer {
  const kept = JSON.parse(first.body) as StoredResponse
  if ('code' in kept) throw new ServiceError(kept.code, kept.sentence, kept.extra, headers)
  return {
    status: first.status,
    body: kept.body,
    headers: { ...headers, ...locationOf(kept.body.analysisId as string) },
  }
}

/** An error as thrown, with the figures of the limits beside its own headers. */
function withHeaders(error: unknown, headers: Record<string, string>): unknown {
  if (!(error instanceof ServiceError)) return error
  return new ServiceError(error.code, error.message, error.extra, { ...headers, ...error.headers })
}
