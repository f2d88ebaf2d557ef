// One healing, and how far it is.
import type { History } from './history.ts'
import type { MissingParts } from './missing-parts.ts'

export interface Work {
  by: 'blocks' | 'signatures' | null
  fromSlot: number
  /** The last slot that was taken or is told as missing. */
  atSlot: number
  sinceMs: number
  untilMs: number
  missing: MissingParts
  history: History
  /** Requests that are known to be needed yet; null: it is not known. */
  requestsLeft: number | null
  /** Connections that were lost when all was had. */
  losses: number
  startedMs: number
  loggedMs: number
}

/** For the status of the feed and its log. @param beforeSlot the first that is had; null: it is not known @param nowMs monotonic time */
export function describeProgress(
  work: Work,
  beforeSlot: number | null,
  nowMs: number,
): Record<string, unknown> {
  const { by, fromSlot, atSlot, sinceMs, untilMs, history, requestsLeft, startedMs } = work
  const toSlot = beforeSlot === null ? null : beforeSlot - 1
  const elapsedS = (nowMs - startedMs) / 1_000
  const perSecond = history.requests / Math.max(elapsedS, 0.001)
  return {
    by,
    sinceMs,
    untilMs,
    fromSlot,
    toSlot,
    atSlot,
    percent:
      toSlot === null
        ? null
        : Math.floor((100 * (atSlot - fromSlot + 1)) / Math.max(1, toSlot - fromSlot + 1)),
    requests: history.requests,
    requestsLeft,
    secondsLeft: requestsLeft === null ? null : Math.ceil(requestsLeft / perSecond),
  }
}
