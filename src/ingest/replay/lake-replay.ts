// Replays what a server has recorded: every event in its order, with the market time that was in effect, so that the engine does
// again what it did.

import type { Clock } from '../../lib/clock.ts'
import type { NumberRange } from '../../lib/segments/types.ts'
import { nextTurn } from '../../lib/wait.ts'
import type { EventSink, MarketEvent } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { REPLAY_SLICE_ROWS } from '../limits.ts'
import type { SourceLink } from '../source-link.ts'
import { ALWAYS_ROOM, type FeedLog, type FeedStatus, type Room } from '../types.ts'
import { untilRoom } from '../wait.ts'
import { type Pace, type ReplaySpeed, SpeedPace } from './pace.ts'
import { Playback } from './playback.ts'
import type { ProgressReport } from './progress-report.ts'

/** An event that a server recorded. */
export interface ReplayedEvent {
  eventNo: number
  /** Market time in effect, Unix ms. */
  atMs: number
  event: MarketEvent
}

export interface LakeReplayOptions {
  /** In order of their numbers. Iterated once to its end, or closed early when the replay is stopped. */
  events: AsyncIterable<readonly ReplayedEvent[]>
  eventsTotal: number
  /** Events before this number only bring the market to its state: they come as fast as possible. */
  playFromNo: number
  speed: ReplaySpeed
  /** Whether the market was simulated. */
  simulated: boolean
  /** Why the market may differ from the one that was recorded; null: it does not. */
  approximate: string | null
  /** Why it ends before the last wanted event; null: it does not. */
  endsEarly: string | null
  /** A name of the source, for people. */
  label: string
  /** Ranges of numbers, of those that are due, in which some are lost, in order; no two meet. */
  lost: readonly NumberRange[]
  /** Where it is: a recorded run continues at its position, since positions never go back. Its time in Unix ms. */
  market: { readonly seq: number; readonly timeMs: number }
  /** Instead of `speed`: who says when events are due. What lies ahead is told to nobody then. */
  steps?: Pace | undefined
  /** From `playFromNo` on this server counts analyses by itself: the recorded counts are left out. */
  countsAnalyses?: boolean
  /** Shows how far it is. */
  report?: ProgressReport
}

/** A replay of recorded events. It is ready when it has reached `playFromNo`; `ready` rejects when the source fails before that. */
export class LakeReplay extends Playback<readonly ReplayedEvent[]> {
  readonly #options: LakeReplayOptions
  readonly #pace: Pace
  readonly #room: Room
  readonly #link: SourceLink
  /** The number that follows, if it is not lost. */
  #nextNo: number

  constructor(
    options: LakeReplayOptions,
    sink: EventSink,
    clock: Clock,
    log: FeedLog,
    room: Room = ALWAYS_ROOM,
  ) {
    const { events: batches, eventsTotal: total, speed, steps, label, report } = options
    const pace = steps ?? new SpeedPace(speed, () => clock.monotonicMs())
    const parts = new FeedParts('replay', sink, clock, log)
    super(parts, { batches, unit: 'events', total, speed, pace, label, report })
    this.#options = options
    this.#pace = pace
    this.#room = room
    this.#link = parts.linkOf()
    this.#nextNo = options.lost[0]?.from ?? Number.POSITIVE_INFINITY
  }

  protected async play(batch: readonly ReplayedEvent[]): Promise<void> {
    const { signal } = this.parts.stopping
    for (let next = 0; next < batch.length && !signal.aborted; ) {
      next = this.#applyDue(batch, next)
      this.report()
      await (next < batch.length ? this.#untilDue(batch[next]) : nextTurn())
      await untilRoom(this.#room, signal)
    }
  }

  /** Applies the events from `from` that are due, a slice at most. @returns the first that was not applied */
  #applyDue(batch: readonly ReplayedEvent[], from: number): number {
    const end = Math.min(from + REPLAY_SLICE_ROWS, batch.length)
    let next = from
    for (; next < end && this.#isDue(batch[next]); next++) this.#apply(batch[next])
    return next
  }

  #isDue({ eventNo, atMs }: ReplayedEvent): boolean {
    if (eventNo < this.#options.playFromNo) return true
    if (this.parts.state.current === 'starting') {
      this.#pace.begin(atMs)
      this.markReady()
    }
    return atMs <= this.#pace.dueMs() || eventNo <= this.#pace.dueNo()
  }

  #untilDue(event: ReplayedEvent): Promise<unknown> {
    if (this.#isDue(event)) return nextTurn()
    return this.#pace.untilDue(event, this.parts.stopping.signal)
  }

  #apply(recorded: ReplayedEvent): void {
    const { event, eventNo, atMs } = recorded
    this.#noteLosses(recorded)
    this.count++
    this.latestMs = atMs
    const { countsAnalyses, playFromNo } = this.#options
    if (countsAnalyses && event.type === 'analysisCount' && eventNo >= playFromNo) return
    this.parts.guarded(() => this.parts.counters.apply(this.#placed(event), atMs))
  }

  /** The market has a gap from the last event before lost ones to the first behind the range in which they are. */
  #noteLosses({ event, eventNo, atMs }: ReplayedEvent): void {
    const { lost, market } = this.#options
    if (eventNo > this.#nextNo) this.#link.lose(this.latestMs ?? market.timeMs, atMs)
    this.#nextNo = eventNo + 1
    if (this.#link.isUp) return
    const isWithin = lost.some(({ from, to }) => from <= eventNo && eventNo <= to)
    // A run ends all gaps.
    if (!isWithin || event.type === 'run') this.#link.restore(atMs)
  }

  /** The event as it is applied here. */
  #placed(event: MarketEvent): MarketEvent {
    return event.type === 'run' ? { ...event, firstSeq: this.#options.market.seq } : event
  }

  describe(): FeedStatus {
    const { label, speed, simulated, approximate, endsEarly, eventsTotal, steps } = this.#options
    const { done: events, percent, etaMs, perSecond: eventsPerSecond } = this.part()
    return this.status({
      simulated,
      label,
      speed,
      time: 'recorded',
      approximate,
      // A share of what is played tells how much lies ahead.
      ...(steps === undefined && { endsEarly, eventsTotal, percent, etaMs }),
      events,
      eventsPerSecond,
      atMs: this.latestMs,
    })
  }
}
