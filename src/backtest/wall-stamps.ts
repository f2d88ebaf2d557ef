// Which market time a program's own clock stands for: the server knows what it served when.
import { BoundedMap } from '../lib/collections/bounded-map.ts'
import { DAY_MS, SECOND_MS } from '../lib/time.ts'
import type { SnapshotStamps } from '../submissions/types.ts'
import { SERVED_MINTS_MAX, SERVED_TIMES_MAX, STAMP_SLACK_MS, STEPS_REMEMBERED_MAX } from './limits.ts'

interface Step {
  wallMs: number
  marketMs: number
}

/** What a list of one has; null: it has none, or more. */
const single = ([first, ...others]: readonly number[]): number | null =>
  first === undefined || others.length > 0 ? null : first

/** A stamp that is within a day of the machine's clock is taken for one of it. */
const NEAR_MS = DAY_MS

export class WallStamps implements SnapshotStamps {
  readonly #now: () => number
  /** Oldest first. A market time was in effect until the next one. */
  #steps: Step[] = []
  /** Market times at which a DataPoint was served, by mint, the newest last. */
  readonly #served = new BoundedMap<string, number[]>({ entriesMax: SERVED_MINTS_MAX })

  /** @param now the machine's clock, Unix ms */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** From now on this is market time. */
  note(marketMs: number): void {
    this.#steps.push({ wallMs: this.#now(), marketMs })
    if (this.#steps.length > 2 * STEPS_REMEMBERED_MAX) this.#steps = this.#steps.slice(-STEPS_REMEMBERED_MAX)
  }

  /** A DataPoint was served. */
  noteServed(mint: string): void {
    const marketMs = this.#steps.at(-1)?.marketMs
    if (marketMs === undefined) return
    const times = this.#served.get(mint) ?? []
    if (times.at(-1) === marketMs) return
    times.push(marketMs)
    if (times.length > SERVED_TIMES_MAX) times.shift()
    this.#served.set(mint, times)
  }

  marketTimeOf(mint: string, stampMs: number): number | 'ambiguous' | null {
    const nowMs = this.#now()
    if (Math.abs(stampMs - nowMs) > NEAR_MS) return null
    // A clock that is read in whole seconds has been cut off.
    const isWhole = stampMs % SECOND_MS === 0
    const found = this.#between(stampMs - STAMP_SLACK_MS, stampMs + (isWhole ? SECOND_MS : STAMP_SLACK_MS))
    // Before the first step nothing was served: it is no time of this clock, but one of a market that was recorded lately.
    if (found.length === 0) return null
    const only = single(found)
    if (only !== null) return only
    const served = (this.#served.get(mint) ?? []).filter((marketMs) => found.includes(marketMs))
    return single(served) ?? 'ambiguous'
  }

  /** The market times that were in effect between two times of the machine. */
  #between(fromMs: number, toMs: number): number[] {
    // Stamps are of lately: it is looked for from the end.
    const first = this.#steps.findLastIndex(({ wallMs }) => wallMs <= fromMs)
    const last = this.#steps.findLastIndex(({ wallMs }) => wallMs <= toMs)
    return this.#steps.slice(Math.max(0, first), last + 1).map(({ marketMs }) => marketMs)
  }
}
