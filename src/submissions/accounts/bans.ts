// In: the operator's bans and automatic suspensions of one agent, as they become durable, and those on their way to the
// store. Out: until when it may not submit. The two are kept apart, so that neither takes back the other, whichever is
// written first. Ends are kept on the monotonic clock. Never reads a clock, never writes.
import type { Instant } from '../../lib/clock.ts'
import { toMonotonicDeadlineMs, toMonotonicMs } from '../../lib/clock.ts'
import { ServiceError } from '../../schema/errors.ts'

/** The wall clock was set since an end was told, when the two differ by more than this: then the end is told anew. */
const TOLD_DIFFERENCE_MS = 1_000

/** `Infinity` twice: for good. */
interface Ban {
  /** As it was told and stored: Unix ms of the wall clock. */
  untilMs: number
  /** The same on the monotonic clock. */
  deadlineMs: number
}

interface Suspension extends Ban {
  /** On the monotonic clock. */
  atMs: number
}

const NO_BAN: Ban = { untilMs: 0, deadlineMs: Number.NEGATIVE_INFINITY }

function banOf(fromMs: number, untilMs: number | null, now: Instant): Ban {
  if (untilMs === null) return { untilMs: Number.POSITIVE_INFINITY, deadlineMs: Number.POSITIVE_INFINITY }
  return { untilMs, deadlineMs: toMonotonicDeadlineMs(fromMs, untilMs, now) }
}

/** A suspension that counts already, though the store has not answered. */
export interface PendingSuspension {
  /** It is durable. */
  confirm(): void
  /** The store refused it. */
  cancel(): void
}

export class Bans {
  #byOperator: Ban = NO_BAN
  #suspensions: Suspension[] = []
  readonly #pending = new Set<Suspension>()

  /** The operator's word of `fromMs`, wall time; the latest counts. `untilMs` null: for good. */
  ban(fromMs: number, untilMs: number | null, now: Instant): void {
    this.#byOperator = banOf(fromMs, untilMs, now)
  }

  /** An automatic suspension that is durable. */
  suspend(fromMs: number, untilMs: number | null, now: Instant): void {
    this.#suspensions.push({ ...banOf(fromMs, untilMs, now), atMs: toMonotonicMs(fromMs, now) })
  }

  /** Begins an automatic suspension now. */
  beginSuspension(untilMs: number | null, now: Instant): PendingSuspension {
    const suspension = { ...banOf(now.wallMs, untilMs, now), atMs: now.monotonicMs }
    this.#pending.add(suspension)
    return {
      confirm: () => {
        this.#pending.delete(suspension)
        this.#suspensions.push(suspension)
      },
      cancel: () => void this.#pending.delete(suspension),
    }
  }

  /** Ends the operator's ban and every suspension that is durable, and forgets that there were any. */
  lift(): void {
    this.#byOperator = NO_BAN
    this.#suspensions = []
  }

  /** When it was suspended, on the monotonic clock. */
  get suspendedAtMs(): number[] {
    return [...this.#suspensions, ...this.#pending].map(({ atMs }) => atMs)
  }

  /** Until when it may not submit, by the wall clock as it stands now; `Infinity` for good, null when it may. */
  untilMs(now: Instant): number | null {
    const last = [...this.#suspensions, ...this.#pending].reduce<Ban>(
      (latest, each) => (each.deadlineMs > latest.deadlineMs ? each : latest),
      this.#byOperator,
    )
    if (now.monotonicMs >= last.deadlineMs) return null
    if (last.deadlineMs === Number.POSITIVE_INFINITY) return last.deadlineMs
    const untilMs = Math.round(now.wallMs + last.deadlineMs - now.monotonicMs)
    return Math.abs(untilMs - last.untilMs) > TOLD_DIFFERENCE_MS ? untilMs : last.untilMs
  }
}

/** The answer to a submission of an agent that may not submit; `bannedUntil` null means for good. */
export function banned(
  untilMs: number,
  nowMs: number,
  sentence?: string,
  extra: Record<string, unknown> = {},
): ServiceError {
  const forGood = untilMs === Number.POSITIVE_INFINITY
  const words =
    sentence ??
    (forGood ? 'This agent is banned.' : `This agent is suspended until ${new Date(untilMs).toISOString()}.`)
  const headers: Record<string, string> = forGood
    ? {}
    : { 'Retry-After': `${Math.ceil((untilMs - nowMs) / 1_000)}` }
  return new ServiceError('agent_banned', words, { bannedUntil: forGood ? null : untilMs, ...extra }, headers)
}
