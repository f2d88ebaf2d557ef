import type { RewoundSpan } from '../../schema/event.ts'
import { REWOUND_KEPT_MAX } from './limits.ts'

/** The market's own time, Unix ms: the highest time that an event or `advanceTo` has carried. It goes back by a `rewind` only. */
export class MarketTime {
  nowMs = 0
  /** The first time that was carried: bars that start before it may lack trades. */
  sinceMs = 0
  /** Since when bars are held open because a feed heals; Infinity: none are. */
  heldFromMs = Number.POSITIVE_INFINITY
  /**
   * The time of which the event that is being applied counts in bars and windows: now. While a feed heals it is the event's own,
   * so that what comes later than it happened leaves the same as if it had come then.
   */
  eventMs = 0
  /** Where it went back, the latest REWOUND_KEPT_MAX: a start tells them again, as the lake may not have them. */
  rewound: RewoundSpan[] = []
  /** The market's time at the first event that it took, whoever told it the time before; 0: it took none. */
  firstEventAtMs = 0

  /** @returns whether the time moved. */
  advanceTo(timeMs: number): boolean {
    if (!(timeMs > this.nowMs)) return false
    if (this.nowMs === 0) this.sinceMs = timeMs
    this.nowMs = timeMs
    return true
  }

  /** An event of this time is about to be applied. */
  beginEvent(tsMs: number): void {
    const { nowMs, heldFromMs } = this
    this.eventMs = heldFromMs > nowMs ? nowMs : Math.min(nowMs, Math.max(tsMs, heldFromMs))
  }

  /** @param span what passes again */
  rewindTo(timeMs: number, span: RewoundSpan): void {
    this.rewound = [...this.rewound, span].slice(-REWOUND_KEPT_MAX)
    this.nowMs = timeMs
    this.sinceMs = Math.min(this.sinceMs, timeMs)
    this.firstEventAtMs = Math.min(this.firstEventAtMs, timeMs)
  }
}
