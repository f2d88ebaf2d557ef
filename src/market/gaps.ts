// Intervals in which events may be missing: a feed was away, the server did not run, or events were lost. Bars that such an interval
// touches are incomplete.
import { z } from 'zod'
import {
  type DisconnectEvent,
  GAP_REASONS,
  type Gap,
  type GapEvent,
  type ReconnectEvent,
} from '../schema/event.ts'
import { jsonSection, type Saved, type Section, type SectionReader } from './checkpoint/sections.ts'
import { FEEDS_AWAY_MAX, GAP_CHANGES_MAX, GAPS_ANSWERED_MAX, GAPS_MAX } from './limits.ts'
import type { MarketTime } from './market-time.ts'

/** A gap that has ended. */
interface EndedGap extends Gap {
  toMs: number
}

const reason = z.enum(GAP_REASONS)
const savedSchema = z.object({
  ended: z.array(z.object({ fromMs: z.number(), toMs: z.number(), reason, feed: z.string().nullable() })),
  open: z.array(z.object({ fromMs: z.number(), toMs: z.null(), reason, feed: z.string() })),
  count: z.number(),
  changeCount: z.number(),
  changedAtMs: z.number().default(0),
})

/** Gaps that began or ended since a caller asked last, and the number with which to ask next. */
export interface GapChanges {
  gaps: readonly Gap[]
  next: number
}

const NO_GAPS: readonly Gap[] = []

/** One gap that covers both and what lies between them. */
const joined = (a: EndedGap, b: EndedGap): EndedGap => ({
  fromMs: Math.min(a.fromMs, b.fromMs),
  toMs: Math.max(a.toMs, b.toMs),
  reason: 'several',
  feed: a.feed === b.feed ? a.feed : null,
})

export class Gaps implements Saved {
  readonly #time: MarketTime
  /** Gaps that have begun so far. */
  count = 0
  /** Changes with every gap that begins or ends. */
  changeCount = 0
  /** Market time of the latest change. */
  changedAtMs = 0
  /** By ascending end. */
  #ended: EndedGap[] = []
  /** By feed: since when it has been away. */
  readonly #open = new Map<string, Gap>()
  /** The latest gaps that began or ended, in order, and the number of the first one. Only for those who follow: not saved. */
  readonly #changes: Gap[] = []
  #firstChange = 0

  constructor(time: MarketTime) {
    this.#time = time
  }

  /** Gaps that go on, by the time of their event. */
  get open(): Gap[] {
    return [...this.#open.values()]
  }

  get openCount(): number {
    return this.#open.size
  }

  /** The newest gaps that have ended, the newest first. */
  latest(limit: number): Gap[] {
    return this.#ended.slice(-limit).reverse()
  }

  disconnect({ feed, ts, sinceMs = ts }: DisconnectEvent): void {
    const known = this.#open.get(feed)
    const fromMs = Math.min(sinceMs, ts, known?.fromMs ?? ts)
    if (known?.fromMs === fromMs) return
    if (known === undefined) this.count++
    const gap: Gap = { fromMs, toMs: null, reason: 'disconnect', feed }
    if (known === undefined && this.#open.size === FEEDS_AWAY_MAX) this.#end({ ...gap, toMs: ts })
    else {
      this.#open.set(feed, gap)
      this.#changed(gap)
    }
  }

  reconnect({ feed, ts }: ReconnectEvent): void {
    const gap = this.#open.get(feed)
    if (gap === undefined) return
    this.#open.delete(feed)
    this.#end({ ...gap, toMs: Math.max(gap.fromMs, ts) })
  }

  add({ fromMs, toMs, reason }: GapEvent): void {
    this.count++
    this.#end({ fromMs: Math.min(fromMs, toMs), toMs: Math.max(fromMs, toMs), reason, feed: null })
  }

  /** Market time has gone back: no gap reaches beyond it. */
  rewindTo(timeMs: number): void {
    this.changedAtMs = Math.min(this.changedAtMs, timeMs)
    const reaching = this.#ended.filter(({ toMs }) => toMs > timeMs)
    if (reaching.length > 0) this.#countChange()
    this.#ended = this.#ended.filter(({ toMs }) => toMs <= timeMs)
    for (const gap of reaching)
      this.#ended.push({ ...gap, fromMs: Math.min(gap.fromMs, timeMs), toMs: timeMs })
    for (const [feed, gap] of this.#open)
      this.#open.set(feed, { ...gap, fromMs: Math.min(gap.fromMs, timeMs) })
  }

  /** Every feed that is away is back, as far as that can be known: another process delivers events from now on. */
  endAll(atMs: number): void {
    for (const feed of [...this.#open.keys()]) this.reconnect({ type: 'reconnect', ts: atMs, feed })
  }

  /** Whether a gap has a moment from `fromMs` to before `beforeMs`. */
  touches(fromMs: number, beforeMs: number): boolean {
    for (const gap of this.#open.values()) if (gap.fromMs < beforeMs) return true
    for (let index = this.#ended.length - 1; index >= 0 && this.#ended[index].toMs >= fromMs; index--)
      if (this.#ended[index].fromMs < beforeMs) return true
    return false
  }

  /**
   * The gaps that have a moment from `fromMs` to before `beforeMs`, by their start. Of more than GAPS_ANSWERED_MAX the oldest are
   * one that covers them.
   */
  within(fromMs: number, beforeMs: number): readonly Gap[] {
    if (!this.touches(fromMs, beforeMs)) return NO_GAPS
    const ended = this.#ended
      .filter((gap) => gap.toMs >= fromMs && gap.fromMs < beforeMs)
      .sort((a, b) => a.fromMs - b.fromMs)
    const open = this.open.filter((gap) => gap.fromMs < beforeMs)
    const excess = ended.length + open.length - GAPS_ANSWERED_MAX
    if (excess > 0) ended.splice(0, excess + 1, ended.slice(0, excess + 1).reduce(joined))
    return [...ended, ...open].sort((a, b) => a.fromMs - b.fromMs)
  }

  /**
   * Gaps that began or ended after an earlier call, each as it was then. The oldest of very many are left out.
   * @param next of the earlier call; null: none.
   */
  changesAfter(next: number | null): GapChanges {
    const end = this.#firstChange + this.#changes.length
    const gaps =
      next === null || next >= end ? NO_GAPS : this.#changes.slice(Math.max(0, next - this.#firstChange))
    return { gaps, next: end }
  }

  *save(): Iterable<Section> {
    const { open, count, changeCount, changedAtMs } = this
    yield jsonSection('gaps', { ended: this.#ended, open, count, changeCount, changedAtMs })
  }

  restore(sections: SectionReader): void {
    const { ended, open, count, changeCount, changedAtMs } = sections.json('gaps', savedSchema)
    this.#ended = ended
    for (const gap of open) this.#open.set(gap.feed, gap)
    this.count = count
    this.changeCount = changeCount
    this.changedAtMs = changedAtMs
  }

  #end(gap: EndedGap): void {
    let index = this.#ended.length
    while (index > 0 && this.#ended[index - 1].toMs > gap.toMs) index--
    this.#ended.splice(index, 0, gap)
    if (this.#ended.length > GAPS_MAX) this.#joinNearest()
    this.#changed(gap)
  }

  /** The two gaps with the least time between them become one. */
  #joinNearest(): void {
    let nearest = 1
    let leastMs = Number.POSITIVE_INFINITY
    for (let index = 1; index < this.#ended.length; index++) {
      const betweenMs = this.#ended[index].fromMs - this.#ended[index - 1].toMs
      if (betweenMs >= leastMs) continue
      leastMs = betweenMs
      nearest = index
    }
    const [a, b] = this.#ended.slice(nearest - 1, nearest + 1)
    this.#ended.splice(nearest - 1, 2, joined(a, b))
  }

  #countChange(): void {
    this.changeCount++
    this.changedAtMs = this.#time.nowMs
  }

  #changed(gap: Gap): void {
    this.#countChange()
    this.#changes.push(gap)
    if (this.#changes.length <= GAP_CHANGES_MAX) return
    this.#changes.shift()
    this.#firstChange++
  }
}
