// Intervals in which events may be missing: a feed was away, the server did not run, its clock leapt, or events were lost. Bars that one
// touches are incomplete. A feed may bring what is missing: then its gap ends as none, or as the parts that stay missing.
import { z } from 'zod'
import { jsonSection, type Saved, type Section, type SectionReader } from '../../lib/sections/sections.ts'
import { SECOND_MS } from '../../lib/time.ts'
import {
  type DisconnectEvent,
  GAP_REASONS,
  type Gap,
  type GapEvent,
  MISSING_PARTS_MAX,
  MISSING_REASONS,
  type MissingPart,
  type ReconnectEvent,
} from '../../schema/event.ts'
import {
  FEEDS_AWAY_MAX,
  GAP_CHANGES_MAX,
  GAPS_ANSWERED_MAX,
  GAPS_MAX,
  HEAL_MS_MAX,
  LATE_GRACE_MS,
} from './limits.ts'
import type { MarketTime } from './market-time.ts'

/** A gap that has ended. */
interface EndedGap extends Gap {
  toMs: number
}

const reason = z.enum(GAP_REASONS)
const missingPart = z.object({ fromMs: z.number(), toMs: z.number(), reason: z.enum(MISSING_REASONS) })
const savedSchema = z.object({
  ended: z.array(z.object({ fromMs: z.number(), toMs: z.number(), reason, feed: z.string().nullable() })),
  open: z.array(
    z.object({
      fromMs: z.number(),
      toMs: z.null(),
      reason,
      feed: z.string(),
      healUntilMs: z.number().optional(),
      missing: z.array(missingPart).optional(),
    }),
  ),
  count: z.number(),
  changeCount: z.number(),
  /** Of checkpoints of format 3. */
  healed: z.number().optional(),
  /** Of earlier checkpoints: refused trades of all gaps. Now each gap has its own. */
  refused: z.object({ fromMs: z.number(), toMs: z.number() }).nullish(),
  changedAtMs: z.number().default(0),
})

const NO_GAPS: readonly Gap[] = []

/** One gap that covers both and what lies between them. */
const joined = (a: EndedGap, b: EndedGap): EndedGap => ({
  fromMs: Math.min(a.fromMs, b.fromMs),
  toMs: Math.max(a.toMs, b.toMs),
  reason: 'several',
  feed: a.feed === b.feed ? a.feed : null,
})

/** Why all of these parts are missing; null: for more than one reason, or there are none. */
function onlyReason(parts: readonly MissingPart[]): MissingPart['reason'] | null {
  const reasons = new Set(parts.map(({ reason }) => reason))
  return reasons.size === 1 ? parts[0].reason : null
}

/**
 * Parts of one gap that were told one after another: those of one reason that meet are one. At most MISSING_PARTS_MAX, of more the last
 * one covers the rest.
 */
function allParts(known: readonly MissingPart[] = [], told: readonly MissingPart[] = []): MissingPart[] {
  let parts = [...known]
  for (const part of told) {
    const meets = ({ reason, fromMs, toMs }: MissingPart) =>
      reason === part.reason && fromMs <= part.toMs + 1 && toMs >= part.fromMs - 1
    const met = parts.filter(meets)
    const last = parts[MISSING_PARTS_MAX - 1]
    if (met.length > 0) parts = parts.with(parts.indexOf(met[0]), covering([...met, part]))
    else if (last === undefined) parts.push({ ...part })
    else parts[MISSING_PARTS_MAX - 1] = covering([last, part])
    parts = parts.filter((each) => !met.includes(each))
  }
  return parts
}

/** One part from the first moment of these to the last, with the reason of the first. */
const covering = (parts: readonly MissingPart[]): MissingPart => ({
  fromMs: Math.min(...parts.map(({ fromMs }) => fromMs)),
  toMs: Math.max(...parts.map(({ toMs }) => toMs)),
  reason: parts[0].reason,
})

/** Until when a feed heals: as it said last. One that is away without healing cannot begin to: bars have closed since. */
function healUntilOf(known: Gap | undefined, told: number | undefined, nowMs: number): number | undefined {
  if (known !== undefined && known.healUntilMs === undefined) return undefined
  const untilMs = told ?? known?.healUntilMs
  return untilMs !== undefined && untilMs > nowMs ? Math.min(untilMs, nowMs + HEAL_MS_MAX) : undefined
}

export class Gaps implements Saved {
  readonly #time: MarketTime
  readonly #position: { readonly seq: number }
  /** Gaps that have begun so far, and those of them that were healed, wholly or in part. */
  count = 0
  healedCount = 0
  /** Changes with every gap that begins or ends. */
  changeCount = 0
  /** Market time of the latest change. */
  changedAtMs = 0
  /** By ascending end. */
  #ended: EndedGap[] = []
  /** By feed: since when it has been away. */
  readonly #open = new Map<string, Gap>()
  /** The latest gaps that began or ended, in order, each with the market's position then, and the number of the first one. Only for
   *  those who follow: not saved. */
  readonly #changes: { gap: Gap; seq: number }[] = []
  #firstChange = 0

  /** @param position of the market */
  constructor(time: MarketTime, position: { readonly seq: number }) {
    this.#time = time
    this.#position = position
  }

  /** Gaps that go on, by the time of their event. */
  get open(): Gap[] {
    return [...this.#open.values()]
  }

  /** The newest gaps that have ended, the newest first. */
  latest(limit: number): Gap[] {
    return this.#ended.slice(-limit).reverse()
  }

  /** Start of the earliest gap whose feed heals; Infinity: none does. Bars that it touches stay open. */
  get heldFromMs(): number {
    return this.#leastOfHealing((gap) => gap.fromMs)
  }

  /** The earliest market time by which a feed said that it will have healed; Infinity: none heals. */
  get healDeadlineMs(): number {
    return this.#leastOfHealing((gap) => gap.healUntilMs)
  }

  #leastOfHealing(timeOf: (gap: Gap) => number | undefined): number {
    let least = Number.POSITIVE_INFINITY
    for (const gap of this.#open.values())
      if (gap.healUntilMs !== undefined) least = Math.min(least, timeOf(gap) ?? least)
    return least
  }

  /** @param nowMs market time: a feed may heal until HEAL_MS_MAX from now at most. @returns whether the feed was not away before */
  disconnect({ feed, ts, sinceMs = ts, healUntilMs, missing = [] }: DisconnectEvent, nowMs: number): boolean {
    const known = this.#open.get(feed)
    const fromMs = Math.min(sinceMs, ts, known?.fromMs ?? ts)
    const untilMs = healUntilOf(known, healUntilMs, nowMs)
    const gap: Gap = { fromMs, toMs: null, reason: 'disconnect', feed }
    if (untilMs !== undefined) {
      gap.healUntilMs = untilMs
      const parts = allParts(known?.missing, missing)
      if (parts.length > 0) gap.missing = parts
    }
    if (known?.fromMs === fromMs && known.healUntilMs === untilMs) {
      // The gap is told as it was.
      this.#open.set(feed, gap)
      return false
    }
    if (known === undefined) this.count++
    if (known === undefined && this.#open.size === FEEDS_AWAY_MAX)
      this.#end({ fromMs, toMs: ts, reason: 'disconnect', feed })
    else {
      this.#open.set(feed, gap)
      this.#changed(gap)
    }
    return known === undefined
  }

  /**
   * The feed is back. What it has healed is no gap; of what it has not, each part that it tells is one.
   * @param nowMs market time: of a gap that began within the grace of late trades, none was refused and no bar has closed
   */
  reconnect({ feed, ts, healed = false, missing = [] }: ReconnectEvent, nowMs: number): void {
    const gap = this.#open.get(feed)
    if (gap === undefined) return
    this.#open.delete(feed)
    const { healUntilMs, missing: known, ...away } = gap
    const whole: EndedGap = { ...away, toMs: Math.max(gap.fromMs, ts) }
    if (!healed || (healUntilMs === undefined && nowMs - gap.fromMs > LATE_GRACE_MS)) {
      this.#end({ ...whole, reason: healed ? (onlyReason(missing) ?? whole.reason) : whole.reason })
      return
    }
    this.healedCount++
    this.#changed({ ...whole, isHealed: true })
    // The clock of what a feed reads may be ahead of the one that says when it is back.
    for (const part of allParts(known, missing))
      if (part.toMs >= whole.fromMs && part.fromMs <= whole.toMs)
        this.#end({
          fromMs: Math.max(part.fromMs, whole.fromMs),
          toMs: Math.min(part.toMs, whole.toMs + LATE_GRACE_MS),
          reason: part.reason,
          feed,
        })
  }

  /**
   * What tells that a trade of this time was refused as too late while feeds heal: it is missing, whatever they say. Whose it was is not
   * known, so that it is missing from each gap that it lies in. It is told as its second, since that is as fine as bars are.
   */
  refusalsOf(timeMs: number, nowMs: number): DisconnectEvent[] {
    const fromMs = timeMs - (timeMs % SECOND_MS)
    const part = { fromMs, toMs: fromMs + SECOND_MS - 1, reason: 'refused' } as const
    const events: DisconnectEvent[] = []
    for (const [feed, { fromMs: sinceMs, healUntilMs, missing = [] }] of this.#open) {
      if (healUntilMs === undefined || timeMs < sinceMs) continue
      // For whatever reason: behind the most parts that there may be, the last one covers all that comes.
      const isTold = missing.some((each) => each.fromMs <= part.fromMs && each.toMs >= part.toMs)
      if (!isTold) events.push({ type: 'disconnect', ts: nowMs, feed, sinceMs, healUntilMs, missing: [part] })
    }
    return events
  }

  /**
   * Feeds that should have healed by now have not: their gaps go on like those of feeds that do not heal. As of the deadline, whenever
   * market time came to pass it.
   */
  expire(nowMs: number): void {
    for (const [feed, { healUntilMs, missing: _, ...gap }] of [...this.#open])
      if (healUntilMs !== undefined && healUntilMs <= nowMs) {
        const { changedAtMs } = this
        this.#open.set(feed, gap)
        this.#changed(gap)
        this.changedAtMs = Math.max(changedAtMs, Math.min(this.#time.nowMs, healUntilMs))
      }
  }

  add({ fromMs, toMs, reason }: GapEvent): void {
    this.count++
    this.#end({ fromMs: Math.min(fromMs, toMs), toMs: Math.max(fromMs, toMs), reason, feed: null })
  }

  /** Market time from which on somebody watched: `timeMs`, or where that lies in a downtime, or a leap of the clock, the end of it. */
  watchedFromMs(timeMs: number): number {
    const isUnwatched = ({ fromMs, reason }: Gap) =>
      fromMs <= timeMs && (reason === 'downtime' || reason === 'leap')
    return Math.max(timeMs, ...this.#ended.filter(isUnwatched).map(({ toMs }) => toMs))
  }

  /** Market time has gone back: no gap reaches beyond it. */
  rewindTo(timeMs: number): void {
    this.changedAtMs = Math.min(this.changedAtMs, timeMs)
    const reaching = this.#ended.filter(({ toMs }) => toMs > timeMs)
    if (reaching.length > 0) this.#countChange()
    this.#ended = this.#ended.filter(({ toMs }) => toMs <= timeMs)
    for (const gap of reaching)
      this.#ended.push({ ...gap, fromMs: Math.min(gap.fromMs, timeMs), toMs: timeMs })
    for (const [feed, gap] of this.#open) {
      const moved = { ...gap, fromMs: Math.min(gap.fromMs, timeMs) }
      if (gap.healUntilMs !== undefined) moved.healUntilMs = Math.min(gap.healUntilMs, timeMs + HEAL_MS_MAX)
      this.#open.set(feed, moved)
    }
  }

  /**
   * Every feed that is away is back, as far as that can be known: another process delivers events from now on. One that heals goes on
   * with it, until its deadline.
   */
  endAll(atMs: number): void {
    for (const [feed, { healUntilMs }] of [...this.#open])
      if (healUntilMs === undefined) this.reconnect({ type: 'reconnect', ts: atMs, feed }, atMs)
  }

  /** Whether a gap has a moment from `fromMs` to before `beforeMs`. */
  touches(fromMs: number, beforeMs: number): boolean {
    for (const gap of this.#open.values()) if (gap.fromMs < beforeMs) return true
    for (let index = this.#ended.length - 1; index >= 0 && this.#ended[index].toMs >= fromMs; index--)
      if (this.#ended[index].fromMs < beforeMs) return true
    return false
  }

  /**
   * The gaps that have a moment from `fromMs` to before `beforeMs`, by their start. Of more than GAPS_ANSWERED_MAX the oldest that
   * have ended are one that covers them.
   */
  within(fromMs: number, beforeMs: number): readonly Gap[] {
    if (!this.touches(fromMs, beforeMs)) return NO_GAPS
    const ended = this.#ended
      .filter((gap) => gap.toMs >= fromMs && gap.fromMs < beforeMs)
      .sort((a, b) => a.fromMs - b.fromMs)
    const open = this.open.filter((gap) => gap.fromMs < beforeMs)
    const excess = ended.length + open.length - GAPS_ANSWERED_MAX
    // Each feed that is away is told, though they alone be more.
    if (excess > 0 && ended.length > 0) ended.splice(0, excess + 1, ended.slice(0, excess + 1).reduce(joined))
    return [...ended, ...open].sort((a, b) => a.fromMs - b.fromMs)
  }

  /**
   * Gaps that began or ended after an earlier call, each as it was then. The oldest of very many are left out.
   * @param next of the earlier call; null: none.
   * @param end the number before which they end
   * @returns them, and the number with which to ask next.
   */
  changesAfter(
    next: number | null,
    end = this.#firstChange + this.#changes.length,
  ): { gaps: readonly Gap[]; next: number } {
    if (next === null || next >= end) return { gaps: NO_GAPS, next: end }
    const indexOf = (number: number) => Math.max(0, number - this.#firstChange)
    const changes = this.#changes.slice(indexOf(next), indexOf(end))
    return { gaps: changes.map(({ gap }) => gap), next: end }
  }

  /** The number of the first change at a position of the market or later: whoever was there may have left before it. */
  changeAt(seq: number): number {
    const index = this.#changes.findIndex((each) => each.seq >= seq)
    return this.#firstChange + (index === -1 ? this.#changes.length : index)
  }

  *save(): Iterable<Section> {
    const { open, count, changeCount, changedAtMs, healedCount: healed } = this
    yield jsonSection('gaps', { ended: this.#ended, open, count, changeCount, changedAtMs, healed })
  }

  restore(sections: SectionReader): void {
    const saved = sections.json('gaps', savedSchema)
    const { open, count, changeCount, changedAtMs, healed = 0, refused = null } = saved
    this.#ended = saved.ended
    const refusedParts = refused === null ? [] : [{ ...refused, reason: 'refused' as const }]
    for (const { healUntilMs, missing, ...gap } of open) {
      const parts = allParts(missing, healUntilMs === undefined ? [] : refusedParts)
      this.#open.set(gap.feed, {
        ...gap,
        ...(healUntilMs !== undefined && { healUntilMs }),
        ...(parts.length > 0 && { missing: parts }),
      })
    }
    this.healedCount = healed
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
    this.#changes.push({ gap, seq: this.#position.seq })
    if (this.#changes.length <= GAP_CHANGES_MAX) return
    this.#changes.shift()
    this.#firstChange++
  }
}
