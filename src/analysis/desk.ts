// In: submissions as bytes, from agents whose key is good. Out: one answer each, durable before it is given.
// The order of checks is the contract's. Everything that limits or rewards is reserved in memory before the first
// wait and undone when the store refuses, so limits and bonuses hold exactly under concurrency.
// Never reads the system clock, and never answers 201 before the store has.
import { createHash } from 'node:crypto'
import { monotonicFactory } from 'ulid'
import type { Clock } from '../lib/clock.ts'
import { machineRandom } from '../lib/random.ts'
import type { SnapshotValues } from '../schema/datapoint.ts'
import { type ErrorCode, type ErrorExtra, ServiceError } from '../schema/errors.ts'
import type { Submission } from '../schema/submission.ts'
import type { Row, Write } from '../schema/tables.ts'
import { XP_KINDS, type XpKind } from '../schema/xp.ts'
import { type AgentBook, banned } from './agents.ts'
import { createCooldowns } from './cooldown.ts'
import { type Comparison, compareSnapshot, isEmptySnapshot } from './deviation.ts'
import { Idempotency, type Remembered } from './idempotency.ts'
import {
  ANALYSIS_GOAL,
  AWARD_TIMES_MAX,
  MINT_COOLDOWN_MS,
  STRIKES_KEPT_MAX,
  SUBMISSIONS_IN_FLIGHT_MAX,
  SUBMIT_RATE_MAX,
  SUBMIT_RATE_WINDOW_MS,
} from './limits.ts'
import { createRateLimiter, rateHeaders } from './rate-limit.ts'
import { type Judged, ledgerWrite, publicAnalysis, submissionRow } from './records.ts'
import { checkSnapshotAge } from './snapshot-age.ts'
import { Standing, type StandingStart } from './standing.ts'
import {
  type Sanction,
  STRIKE_RULES,
  type StrikeRules,
  sanctionFor,
  strikesInForce,
  warningFor,
} from './strikes.ts'
import type { Answer, Caller, Desk, Facts, Ledger, SubmitRequest } from './types.ts'
import { validateSubmission } from './validate.ts'
import { outcomeOf, xpBreakdown, xpEarned, xpPerUnit } from './xp.ts'

export interface DeskOptions {
  facts: Facts
  ledger: Ledger
  agents: AgentBook
  clock: Clock
  /** Of new identities; without it the machine’s own. Uniform in [0, 1). */
  random?: () => number
  /** Time of the market when the clock says `clockMs`: they differ only in a replay of old data. */
  marketNow(clockMs: number): number
  recovered: StandingStart & {
    submitAttempts: readonly Row[]
    idempotency: readonly Row[]
    cooldowns: readonly { agentId: string; mint: string; atMs: number }[]
    strikes: readonly { agentId: string; atMs: number }[]
  }
  /** Another accepted analysis of a mint is durable. */
  onAccepted(mint: string, count: number): void
  submitRateMax?: number
  cooldownMs?: number
  strikeRules?: StrikeRules
}

/** A verdict on its way to the store: what to write, what to answer then, and what to undo otherwise. */
interface Verdict {
  writes: Write[]
  /** A rejection is answered as an error, once it is on record. */
  answer: Answer | ServiceError
  undo(): void
}

/** An answer as it is remembered under an Idempotency-Key. */
type Kept = { body: Record<string, unknown> } | { code: ErrorCode; sentence: string; extra: ErrorExtra }

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const seconds = (ms: number): number => Math.ceil(ms / 1_000)
const UNVALIDATED_WARNING =
  'The snapshot deviates from the DataPoint by more than 15%: half the XP. Above 50% a submission is rejected and may lead to a ban.'

export function createDesk(options: DeskOptions): Desk {
  const { facts, ledger, agents, clock, marketNow, recovered, onAccepted } = options
  const {
    submitRateMax = SUBMIT_RATE_MAX,
    cooldownMs = MINT_COOLDOWN_MS,
    strikeRules = STRIKE_RULES,
  } = options
  const rate = createRateLimiter(submitRateMax, SUBMIT_RATE_WINDOW_MS)
  const cooldowns = createCooldowns(cooldownMs)
  const idempotency = new Idempotency()
  const standing = new Standing(recovered)
  const strikes = new Map<string, number[]>()
  const nextId = monotonicFactory(options.random ?? machineRandom())
  let inFlight = 0

  for (const row of recovered.submitAttempts) rate.take(row.agent_id as string, row.at as number)
  for (const { agentId, mint, atMs } of recovered.cooldowns) cooldowns.start(agentId, mint, atMs)
  for (const { agentId, atMs } of recovered.strikes)
    strikes.set(agentId, [...(strikes.get(agentId) ?? []), atMs])
  for (const row of recovered.idempotency) {
    idempotency.remember(row.agent_id as string, row.idempotency_key as string, {
      bodyHash: row.body_hash as string,
      status: row.status as number,
      body: row.body as string,
      atMs: row.at as number,
    })
  }

  const limitHeaders = (agentId: string, nowMs: number) =>
    rateHeaders('submit', rate.state(agentId, nowMs), SUBMIT_RATE_WINDOW_MS, nowMs)

  async function submit(caller: Caller, { body, idempotencyKey }: SubmitRequest): Promise<Answer> {
    const { agentId } = caller.agent
    agents.checkBan(caller)
    const nowMs = clock.now()
    const bodyHash = idempotencyKey === null ? '' : sha256(body)
    if (idempotencyKey !== null) {
      const first = idempotency.find(agentId, idempotencyKey, bodyHash, nowMs)
      if (first !== null)
        return replay(first, { ...limitHeaders(agentId, nowMs), 'Idempotency-Replayed': 'true' })
    }
    takeRate(agentId, nowMs)
    if (inFlight >= SUBMISSIONS_IN_FLIGHT_MAX) {
      rate.release(agentId, nowMs)
      throw new ServiceError(
        'store_unavailable',
        'Too many submissions wait for the store.',
        {},
        { 'Retry-After': '1' },
      )
    }
    const attempt: Write = { table: 'submit_attempts', row: { agent_id: agentId, at: nowMs } }
    inFlight++
    if (idempotencyKey !== null) idempotency.begin(agentId, idempotencyKey, bodyHash)
    try {
      return await settle(caller, body, attempt, nowMs, idempotencyKey, bodyHash)
    } finally {
      inFlight--
      if (idempotencyKey !== null) idempotency.end(agentId, idempotencyKey)
    }
  }

  /** Judges, writes and answers. Whatever uses rate is durable before it is answered, errors included. */
  async function settle(
    caller: Caller,
    body: Buffer,
    attempt: Write,
    nowMs: number,
    idempotencyKey: string | null,
    bodyHash: string,
  ): Promise<Answer> {
    const { agentId } = caller.agent
    let verdict: Verdict
    try {
      verdict = judge(caller, body, nowMs)
    } catch (error) {
      if (rate.enabled) await ledger.commit([attempt])
      throw withHeaders(error, limitHeaders(agentId, nowMs))
    }
    const writes = rate.enabled ? [...verdict.writes, attempt] : [...verdict.writes]
    const kept = idempotencyKey === null ? null : keep(verdict.answer, bodyHash, nowMs)
    if (kept !== null) writes.push(rememberedWrite(agentId, idempotencyKey!, kept))
    try {
      await ledger.commit(writes)
    } catch (error) {
      verdict.undo()
      rate.release(agentId, nowMs)
      throw error
    }
    if (kept !== null) idempotency.remember(agentId, idempotencyKey!, kept)
    const { answer } = verdict
    if (answer instanceof ServiceError) throw withHeaders(answer, limitHeaders(agentId, nowMs))
    onAccepted(answer.body.mint as string, standing.countOf(answer.body.mint as string))
    return { ...answer, headers: { ...limitHeaders(agentId, nowMs), ...answer.headers } }
  }

  function takeRate(agentId: string, nowMs: number): void {
    const state = rate.state(agentId, nowMs)
    if (!state.allowed) {
      throw new ServiceError(
        'submit_rate_limited',
        `At most ${state.limit} submissions a minute; the rate cooldown ends in ${seconds(state.resetMs)} seconds.`,
        { limit: state.limit, retryAfterMs: state.resetMs },
        { ...limitHeaders(agentId, nowMs), 'Retry-After': `${seconds(state.resetMs)}` },
      )
    }
    rate.take(agentId, nowMs)
  }

  /** JSON, schema, mint, cooldown, age, deviation: throws, or reserves and says what to write. */
  function judge(caller: Caller, body: Buffer, nowMs: number): Verdict {
    const { agentId } = caller.agent
    const { submission, ignored } = validateSubmission(body)
    const { mint } = submission
    const current = facts.snapshot(mint)
    if (current === null)
      throw new ServiceError('token_not_found', `No DataPoint is known for ${mint}: it cannot be verified.`)
    const waitMs = cooldowns.waitMs(agentId, mint, nowMs)
    if (waitMs > 0) throw cooldownError(waitMs)
    const marketMs = marketNow(nowMs)
    if (submission.snapshot) checkSnapshotAge(submission.snapshot.snapshotAt, marketMs)
    if (isEmptySnapshot(current)) {
      throw new ServiceError(
        'datapoint_unavailable',
        `The DataPoint of ${mint} holds nothing to compare with yet.`,
        {},
        { 'Retry-After': '5' },
      )
    }
    const comparison = compare(submission, current)
    const judged: Judged = {
      analysisId: `an_${nextId(nowMs)}`,
      agentId,
      submission,
      outcome: outcomeOf(comparison.deviationPct),
      deviation: comparison,
      compared: comparison.compared,
      enriched: facts.enriched(mint)!,
      submittedAtMs: marketMs,
      snapshotAtMs: Math.min(
        marketMs,
        comparison.version === 'asOf' ? submission.snapshot!.snapshotAt : marketMs,
      ),
    }
    cooldowns.start(agentId, mint, nowMs)
    return judged.outcome === 'rejected' ? reject(judged, nowMs) : accept(judged, ignored, nowMs)
  }

  function compare({ mint, snapshot }: Submission, current: SnapshotValues): Comparison {
    if (!snapshot)
      return { deviationPct: 0, worstField: null, deviations: {}, compared: current, version: 'current' }
    const atItsEnd = compareSnapshot(snapshot, facts.asOf(mint, snapshot.snapshotAt), current)
    if (atItsEnd.deviationPct === 0) return atItsEnd
    // In the millisecond of a change two versions were in effect, and either may have been served.
    const atItsStart = compareSnapshot(snapshot, facts.asOf(mint, snapshot.snapshotAt - 1), current)
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

  function accept(judged: Judged, ignored: string[], nowMs: number): Verdict {
    const { analysisId, agentId, submission, outcome, deviation } = judged
    const breakdown = xpBreakdown(outcome, standing.countOf(submission.mint))
    const xp = xpEarned(breakdown)
    const undoStanding = standing.accept(agentId, submission.mint, xp, submission.sentiment, submission.score)
    const { deviationPct, worstField, deviations } = deviation
    const body = {
      ok: true,
      analysisId,
      mint: submission.mint,
      outcome,
      validated: outcome === 'validated',
      xpEarned: xp,
      xpTotal: standing.xpOf(agentId),
      xpBreakdown: breakdown,
      deviationPct,
      worstField,
      deviations,
      snapshotSource: submission.snapshot ? 'client' : 'server',
      enriched: judged.enriched,
      ...(outcome === 'unvalidated' && { warning: UNVALIDATED_WARNING }),
      ...(ignored.length > 0 && { ignored }),
      createdAt: judged.submittedAtMs,
      nextAllowedAt: nowMs + cooldownMs,
    }
    return {
      writes: [
        { table: 'training', row: submissionRow(judged) },
        ledgerWrite(`xp_${nextId(nowMs)}`, agentId, judged.submittedAtMs, 'analysis', xp, analysisId, null),
      ],
      answer: { status: 201, body, headers: locationOf(analysisId) },
      undo: () => {
        undoStanding()
        cooldowns.cancel(agentId, submission.mint)
      },
    }
  }

  /** A rejection is recorded, counts as a strike, and starts the mint's cooldown: guessing on is no way out. */
  function reject(judged: Judged, nowMs: number): Verdict {
    const { agentId, submission } = judged
    const rejectedAtMs = [...(strikes.get(agentId) ?? []), nowMs].slice(-STRIKES_KEPT_MAX)
    const before = strikes.get(agentId)
    strikes.set(agentId, rejectedAtMs)
    const count = strikesInForce(rejectedAtMs, nowMs, strikeRules)
    const sanction = sanctionFor(count, agents.suspensions(agentId), nowMs, strikeRules)
    const writes: Write[] = [{ table: 'rejections', row: { ...submissionRow(judged), strikes: count } }]
    const carried = sanction.kind === 'warning' ? null : agents.sanction(agentId, untilOf(sanction), nowMs)
    if (carried !== null) writes.push(...carried.writes)
    // In force at once: a racing submission must not slip through while the store writes.
    carried?.apply()
    return {
      writes,
      answer: rejectionError(judged, count, sanction, nowMs),
      undo: () => {
        if (before === undefined) strikes.delete(agentId)
        else strikes.set(agentId, before)
        carried?.undo()
        cooldowns.cancel(agentId, submission.mint)
      },
    }
  }

  function rejectionError(
    { submission, deviation }: Judged,
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
    if (sanction.kind !== 'warning') return banned(untilOf(sanction), nowMs, warning, members)
    return new ServiceError(
      'snapshot_rejected',
      `The snapshot deviates from the DataPoint by ${deviationPct.toPrecision(4)}% (${worstField}).`,
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
    await ledger.commit([ledgerWrite(`xp_${nextId(nowMs)}`, agentId, nowMs, kind, xp, null, note)])
    standing.award(agentId, xp, 0)
    return { agentId, kind, xpEarned: xp, xpTotal: standing.xpOf(agentId) }
  }

  return {
    submit,
    award,
    async analysis(analysisId) {
      const row = await ledger.analysis(analysisId)
      return row && publicAnalysis(row)
    },
    board(limit) {
      const leaderboard = standing.topTokens(limit).map(({ mint, ...coverage }) => {
        const token = facts.datapoint(mint)
        return {
          mint,
          name: token?.name ?? null,
          symbol: token?.symbol ?? null,
          image: token?.imageUrl ?? null,
          ...coverage,
        }
      })
      const { totalAnalyses, uniqueTokens } = standing
      const progress = Math.min(100, (100 * totalAnalyses) / ANALYSIS_GOAL)
      return { ok: true, totalAnalyses, uniqueTokens, goal: ANALYSIS_GOAL, progress, leaderboard }
    },
    agentsBoard(limit) {
      const leaderboard = standing.topAgents(limit).map(({ agentId, xp, analyses }, index) => ({
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

const untilOf = (sanction: Exclude<Sanction, { kind: 'warning' }>): number =>
  sanction.kind === 'ban' ? Number.POSITIVE_INFINITY : sanction.untilMs

function keep(answer: Answer | ServiceError, bodyHash: string, atMs: number): Remembered {
  const kept: Kept =
    answer instanceof ServiceError
      ? { code: answer.code, sentence: answer.message, extra: answer.extra }
      : { body: answer.body }
  return { bodyHash, status: answer.status, body: JSON.stringify(kept), atMs }
}

const rememberedWrite = (
  agentId: string,
  idempotencyKey: string,
  { bodyHash, status, body, atMs }: Remembered,
): Write => ({
  table: 'idempotency',
  row: { agent_id: agentId, idempotency_key: idempotencyKey, body_hash: bodyHash, status, body, at: atMs },
})

const locationOf = (analysisId: string) => ({ Location: `/api/v1/analysis/${analysisId}` })

/** The first answer again: returned, or thrown when it was an error. */
function replay(first: { status: number; body: string }, headers: Record<string, string>): Answer {
  const kept = JSON.parse(first.body) as Kept
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
