import type { Instant } from '../lib/clock.ts'
import type { Write } from '../schema/tables.ts'
import { writeEvent } from './accounts/agent-events.ts'
import { type Bans, bannedError, type Suspension } from './accounts/bans.ts'
import { type Sanction, type StrikeLimits, sanctionFor, warningFor } from './accounts/sanctions.ts'
import type { Decision } from './decision.ts'
import { shownPercent } from './deviation.ts'
import { type ErrorDetails, SubmissionError } from './errors.ts'
import { STRIKE_WINDOW_MS, STRIKES_COUNTED_MAX, SUSPENSION_MS } from './limits.ts'
import { KeyedCondition } from './rate-limits/keyed-condition.ts'
import { SlidingWindow } from './rate-limits/sliding-window.ts'
import { type Evaluation, rejectionRow } from './rows.ts'

const SUSPENSION_REASON = 'rejected submissions'

/** Strikes by agent. An agent's rejections are decided one after the other, since each must know which strike it is. */
export class Strikes {
  readonly limits: StrikeLimits
  readonly window: SlidingWindow
  /** Agents with a rejection that the store has not acknowledged. */
  readonly #pending = new Set<string>()
  readonly #decided = new KeyedCondition()

  constructor(limits: StrikeLimits) {
    this.limits = limits
    this.window = new SlidingWindow(STRIKE_WINDOW_MS, STRIKES_COUNTED_MAX)
  }

  /** Null when the agent's next rejection can be decided, else a promise to wait for before asking again. */
  waitForDecision(agentId: string): Promise<void> | null {
    return this.#pending.has(agentId) ? this.#decided.wait(agentId) : null
  }

  /** The agent's strikes within the window, pending ones included. */
  count(agentId: string, nowMs: number): number {
    return this.window.count(agentId, nowMs)
  }

  /** Adds a strike. `confirm` or `cancel` must follow. */
  begin(agentId: string, nowMs: number): void {
    this.window.add(agentId, nowMs)
    this.#pending.add(agentId)
  }

  confirm(agentId: string): void {
    this.#pending.delete(agentId)
    this.#decided.notifyAll(agentId)
  }

  cancel(agentId: string, atMs: number): void {
    this.window.remove(agentId, atMs)
    this.confirm(agentId)
  }
}

/** What a rejected submission leads to. */
interface Verdict {
  /** The agent's strikes within the window, this one included. */
  strikes: number
  sanction: Sanction
  error: SubmissionError
}

/** What a rejected submission leads to. Reserves nothing. */
export function assessRejection(evaluation: Evaluation, now: Instant, strikes: Strikes, bans: Bans): Verdict {
  const { monotonicMs, wallMs } = now
  const { limits } = strikes
  // No more strikes are counted than that.
  const count = Math.min(STRIKES_COUNTED_MAX, strikes.count(evaluation.agentId, monotonicMs) + 1)
  const sanction = sanctionFor(count, bans.suspendedAtMs, monotonicMs, limits)
  return { strikes: count, sanction, error: rejectionError(evaluation, count, sanction, wallMs, limits) }
}

/**
 * A rejected submission: it is a strike, and may suspend the agent. A suspension is in force before the store has written it,
 * so that no racing submission passes meanwhile.
 */
export function reject(evaluation: Evaluation, now: Instant, strikes: Strikes, bans: Bans): Decision {
  const { agentId } = evaluation
  const { monotonicMs, wallMs } = now
  const { strikes: count, sanction, error } = assessRejection(evaluation, now, strikes, bans)
  strikes.begin(agentId, monotonicMs)
  const writes: Write[] = [{ table: 'rejections', row: rejectionRow(evaluation, count) }]
  let suspension: Suspension | null = null
  if (sanction !== 'warning') {
    const untilMs = suspendedUntilMs(sanction, wallMs)
    suspension = bans.begin(untilMs, now)
    const data = { untilMs, reason: SUSPENSION_REASON }
    writes.push(writeEvent(agentId, { kind: 'suspended', data }, wallMs))
  }
  return {
    writes,
    result: error,
    confirm() {
      if (suspension !== null) bans.confirm(suspension)
      strikes.confirm(agentId)
    },
    cancel() {
      if (suspension !== null) bans.cancel(suspension)
      strikes.cancel(agentId, monotonicMs)
    },
  }
}

/** Unix ms; null: for good. */
const suspendedUntilMs = (sanction: Sanction, nowMs: number): number | null =>
  sanction === 'ban' ? null : nowMs + SUSPENSION_MS

function rejectionError(
  { submission, deviation }: Evaluation,
  strikes: number,
  sanction: Sanction,
  nowMs: number,
  limits: StrikeLimits,
): SubmissionError {
  const warning = warningFor(strikes, sanction, limits)
  const { deviationPct, worstField, deviations } = deviation
  const details: ErrorDetails = {
    mint: submission.mint,
    outcome: 'rejected',
    validated: false,
    deviationPct,
    worstField,
    deviations,
    strikes,
    warning,
  }
  if (sanction === 'warning')
    return new SubmissionError(
      'snapshot_rejected',
      `The snapshot deviates from the DataPoint by ${shownPercent(deviationPct)} (${worstField}).`,
      details,
    )
  const untilMs = suspendedUntilMs(sanction, nowMs) ?? Number.POSITIVE_INFINITY
  return bannedError(untilMs, nowMs, warning, details)
}
