// Intervals in which events may be missing, as `/health` and the stream tell them, and the words for them.
import type { ToldGap } from '../schema/event.ts'
import { formatSpan, formatTime } from './format.ts'

/** A gap as a stream tells it. */
type GapLine = ToldGap & { healed?: true | undefined }

/** Gaps that have ended are remembered up to this number. */
const ENDED_MAX = 100

/** The market's gaps as far as this page was told. */
export class KnownGaps {
  /** Those that go on: a feed each. */
  open: readonly ToldGap[] = []
  /** The newest first. */
  ended: readonly ToldGap[] = []
  /** Changes with every change of the two. */
  changeCount = 0

  /** Takes what `/health` says. */
  replace({ open, recent }: { open: readonly ToldGap[]; recent: readonly ToldGap[] }): void {
    this.open = open
    this.ended = recent
    this.changeCount++
  }

  /** Takes a gap that has begun, or ended: of one feed, only one goes on at a time. */
  take(gap: GapLine): void {
    const others = this.open.filter(({ feed }) => feed !== gap.feed)
    if (gap.to === null) this.open = [...others, gap]
    else if (gap.healed === true) this.open = others
    else {
      // One that has ended while the page was away is told by whatever goes on from there.
      const isOther = ({ feed, from, to }: ToldGap) => feed !== gap.feed || from !== gap.from || to !== gap.to
      this.ended = [gap, ...this.ended.filter(isOther)].slice(0, ENDED_MAX)
      if (gap.feed !== null) this.open = others
    }
    this.changeCount++
  }
}

/** Why events are missing, as the beginning of a sentence. */
export function gapReason({ reason, feed, to, healUntil }: ToldGap): string {
  switch (reason) {
    case 'disconnect':
      if (healUntil !== undefined) return `The feed ${feed ?? ''} is bringing what it has missed`
      return to === null
        ? `The feed ${feed ?? ''} has been without its source`
        : `The feed ${feed ?? ''} was without its source`
    case 'budget':
      return `The feed ${feed ?? ''} had not enough requests to bring what it had missed`
    case 'too_long':
      return `The feed ${feed ?? ''} does not go back as far as it was away`
    case 'pruned':
      return `The source of the feed ${feed ?? ''} no longer has what was missed`
    case 'refused':
      return `What the feed ${feed ?? ''} had missed was refused`
    case 'downtime':
      return 'The server did not run'
    case 'leap':
      return 'The clock of the server leapt'
    case 'lost':
      return 'Events were lost'
    case 'several':
      return 'Feeds were without their sources several times'
  }
}

/** `since 12:03:04 (2m)` or `from 12:03:04 to 12:05:06 (2m)`. */
export function gapTimes({ from, to }: ToldGap, nowMs: number): string {
  const begin = formatTime(from, nowMs)
  return to === null
    ? `since ${begin} (${formatSpan(nowMs - from)})`
    : `from ${begin} to ${formatTime(to, nowMs)} (${formatSpan(to - from)})`
}

/** Whether an interval has a moment in common with a gap. `beforeMs` is outside. */
export const touches = ({ from, to }: ToldGap, fromMs: number, beforeMs: number): boolean =>
  from < beforeMs && (to === null || to >= fromMs)
