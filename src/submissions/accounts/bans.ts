import type { Instant } from '../../lib/clock.ts'
import { toMonotonicDeadlineMs, toMonotonicMs } from '../../lib/clock.ts'
import { TIME_MS_MAX } from '../../schema/bounds.ts'
import { type ErrorDetails, SubmissionError } from '../errors.ts'
import { WALL_CLOCK_STEP_MS } from '../limits.ts'

/** Both ends are `Infinity` for a ban for good. */
interface Ban {
  /** Unix ms of the wall clock, as it was announced and stored. */
  untilMs: number
  /** The same on the monotonic clock. */
  deadlineMs: number
}

/** An automatic suspension. */
export interface Suspension extends Ban {
  /** When it began, on the monotonic clock. */
  atMs: number
}

const NO_BAN: Ban = { untilMs: 0, deadlineMs: Number.NEGATIVE_INFINITY }

function makeBan(fromMs: number, untilMs: number | null, now: Instant): Ban {
  if (untilMs === null) return { untilMs: Number.POSITIVE_INFINITY, deadlineMs: Number.POSITIVE_INFINITY }
  return { untilMs, deadlineMs: toMonotonicDeadlineMs(fromMs, untilMs, now) }
}

/**
 * The operator's ban and the automatic suspensions of one agent. They are held apart, so that neither replaces the other:
 * the later end counts, and `lift` ends both. `untilMs` null means for good.
 */
export class Bans {
  #byOperator: Ban = NO_BAN
  #suspensions: Suspension[] = []
  /** Suspensions that the store has not acknowledged. They are in force already. */
  readonly #pending = new Set<Suspension>()

  /** The operator's ban of `fromMs`, wall time. It replaces the operator's earlier one. */
  ban(fromMs: number, untilMs: number | null, now: Instant): void {
    this.#byOperator = makeBan(fromMs, untilMs, now)
  }

  /** A durable suspension that began at `fromMs`, wall time. */
  suspend(fromMs: number, untilMs: number | null, now: Instant): void {
    this.#suspensions.push({ ...makeBan(fromMs, untilMs, now), atMs: toMonotonicMs(fromMs, now) })
  }

  /** Suspends from now on, before the store has the row. `confirm` or `cancel` must follow. */
  begin(untilMs: number | null, now: Instant): Suspension {
    const suspension = { ...makeBan(now.wallMs, untilMs, now), atMs: now.monotonicMs }
    this.#pending.add(suspension)
    return suspension
  }

  /** The suspension is durable. */
  confirm(suspension: Suspension): void {
    this.#pending.delete(suspension)
    this.#suspensions.push(suspension)
  }

  /** The store refused the suspension. */
  cancel(suspension: Suspension): void {
    this.#pending.delete(suspension)
  }

  /** Ends the operator's ban and every durable suspension, and forgets them. */
  lift(): void {
    this.#byOperator = NO_BAN
    this.#suspensions = []
  }

  /** When the agent was suspended, on the monotonic clock. */
  get suspendedAtMs(): number[] {
    return [...this.#suspensions, ...this.#pending].map(({ atMs }) => atMs)
  }

  /** Until when the agent may not submit, by today's wall clock. `Infinity`: for good. Null: it may. */
  untilMs(now: Instant): number | null {
    const last = [...this.#suspensions, ...this.#pending].reduce<Ban>(
      (latest, each) => (each.deadlineMs > latest.deadlineMs ? each : latest),
      this.#byOperator,
    )
    if (now.monotonicMs >= last.deadlineMs) return null
    if (last.deadlineMs === Number.POSITIVE_INFINITY) return last.deadlineMs
    // Where the clock was set ahead it may lie behind the last time that there is.
    const untilMs = Math.min(TIME_MS_MAX, Math.round(now.wallMs + last.deadlineMs - now.monotonicMs))
    return Math.abs(untilMs - last.untilMs) > WALL_CLOCK_STEP_MS ? untilMs : last.untilMs
  }
}

/** The error of an agent that may not submit. `untilMs` `Infinity`: for good. */
export function bannedError(
  untilMs: number,
  nowMs: number,
  sentence = untilMs === Number.POSITIVE_INFINITY
    ? 'This agent is banned.'
    : `This agent is suspended until ${new Date(untilMs).toISOString()}.`,
  details: ErrorDetails = {},
): SubmissionError {
  const isForGood = untilMs === Number.POSITIVE_INFINITY
  return new SubmissionError(
    'agent_banned',
    sentence,
    { bannedUntil: isForGood ? null : untilMs, ...details },
    { retryAfterMs: isForGood ? null : untilMs - nowMs },
  )
}
