// Replays what a server has recorded: every event in its order, with the market time that was in effect, so that the engine does
// again what it did.

import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { nextTurn } from '../../lib/wait.ts'
import type { EventSink, MarketEvent } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { REPLAY_PROGRESS_MS, REPLAY_SLICE_ROWS } from '../limits.ts'
import { ALWAYS_ROOM, type Feed, type FeedLog, type FeedStatus, type Room } from '../types.ts'
import { unlessAborted, untilRoom } from '../wait.ts'
import { type Pace, type ReplaySpeed, SpeedPace } from './pace.ts'
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
  /** The position of the market: a recorded run continues there, since positions never go back. */
  seq(): number
  /** Instead of `speed`: who says when events are due. What lies ahead is told to nobody then. */
  steps?: Pace | undefined
  /** From `playFromNo` on this server counts analyses by itself: the recorded counts are left out. */
  countsAnalyses?: boolean
  /** Shows how far it is. */
  report?: ProgressReport
}

export interface LakeReplayProgress {
  events: number
  eventsTotal: number
  percent: number
  /** Time until the end at the rate so far; null: none came yet. */
  etaMs: number | null
  eventsPerSecond: number
  /** Market time of the latest event, Unix ms. */
  atMs: number | null
}

/** Starts a replay. It is ready when it has reached `playFromNo`; `ready` rejects when the source fails before that. */
export function startLakeReplay(
  options: LakeReplayOptions,
  sink: EventSink,
  clock: Clock,
  log: FeedLog,
  room: Room = ALWAYS_ROOM,
): LakeReplay {
  return new LakeReplay(options, sink, clock, log, room)
}

export class LakeReplay implements Feed {
  readonly ready: Promise<void>
  /** Resolves when the last event is applied, the replay was stopped or its source failed; `describe` says which. */
  readonly done: Promise<void>
  #error: string | null = null
  #events = 0
  #latestMs: number | null = null
  readonly #startedAtMs: number
  #endedAtMs: number | null = null
  #reportedAtMs: number
  readonly #options: LakeReplayOptions
  readonly #pace: Pace
  readonly #clock: Clock
  readonly #room: Room
  readonly #parts: FeedParts
  readonly #readiness = Promise.withResolvers<void>()

  constructor(options: LakeReplayOptions, sink: EventSink, clock: Clock, log: FeedLog, room: Room) {
    this.#options = options
    this.#pace = options.steps ?? new SpeedPace(options.speed, () => clock.monotonicMs())
    this.#parts = new FeedParts('replay', sink, clock, log)
    this.#clock = clock
    this.#room = room
    this.#startedAtMs = this.#reportedAtMs = clock.monotonicMs()
    this.ready = this.#readiness.promise
    this.done = this.#run()
  }

  async #run(): Promise<void> {
    const { signal } = this.#parts.stopping
    const batches = this.#options.events[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await unlessAborted(batches.next(), signal)
        if (next === null || next.done === true) break
        await this.#play(next.value)
      }
    } catch (error) {
      this.#fail(error)
    }
    // A source that hangs must not hold up the end.
    await unlessAborted(Promise.resolve(batches.return?.()), signal)
    this.#end()
  }

  #fail(error: unknown): void {
    this.#parts.state.set('failed')
    this.#error = errorMessage(error)
    const { label } = this.#options
    this.#parts.log.error({ error: this.#error, events: this.#events, label }, 'the replay failed')
    this.#readiness.reject(error)
    const atMs = this.#latestMs ?? this.#clock.now()
    this.#parts.linkOf().lose(atMs, atMs)
  }

  #end(): void {
    this.#pace.end()
    this.#endedAtMs = this.#clock.monotonicMs()
    this.#readiness.resolve()
    if (this.#parts.state.current !== 'failed')
      this.#parts.state.set(this.#parts.stopping.signal.aborted ? 'stopped' : 'finished')
    this.#options.report?.end()
    const refused = this.#parts.counters.end()
    if (refused === null) this.#parts.log.info(this.describe(), `the replay has ${this.#parts.state.current}`)
    else this.#parts.log.warn(this.describe(), `the replay has ${this.#parts.state.current}: ${refused}`)
  }

  async #play(batch: readonly ReplayedEvent[]): Promise<void> {
    for (let next = 0; next < batch.length && !this.#parts.stopping.signal.aborted; ) {
      next = this.#applyDue(batch, next)
      this.#report()
      await (next < batch.length ? this.#untilDue(batch[next]) : nextTurn())
      await untilRoom(this.#room, this.#parts.stopping.signal)
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
    if (this.#parts.state.current === 'starting') {
      this.#parts.state.set('running')
      this.#pace.begin(atMs)
      this.#readiness.resolve()
    }
    return atMs <= this.#pace.dueMs() || eventNo <= this.#pace.dueNo()
  }

  #untilDue(event: ReplayedEvent): Promise<unknown> {
    if (this.#isDue(event)) return nextTurn()
    return this.#pace.untilDue(event, this.#parts.stopping.signal)
  }

  #apply({ event, eventNo, atMs }: ReplayedEvent): void {
    this.#events++
    this.#latestMs = atMs
    const { countsAnalyses, playFromNo } = this.#options
    if (countsAnalyses && event.type === 'analysisCount' && eventNo >= playFromNo) return
    this.#parts.guarded(() => this.#parts.counters.apply(this.#placed(event), atMs))
  }

  /** The event as it is applied here. */
  #placed(event: MarketEvent): MarketEvent {
    return event.type === 'run' ? { ...event, firstSeq: this.#options.seq() } : event
  }

  #report(): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#reportedAtMs < REPLAY_PROGRESS_MS) return
    this.#reportedAtMs = nowMs
    const {
      events: done,
      eventsTotal: total,
      percent,
      eventsPerSecond: perSecond,
      etaMs,
      atMs,
    } = this.progress()
    this.#options.report?.note({ done, total, percent, perSecond, etaMs }, { atMs })
  }

  /** One that goes as fast as it can brings the market to its state: until then half of it is there. */
  whyWarming(): string | null {
    if (this.#options.speed !== 'max' || this.#parts.state.current !== 'running') return null
    const { events, eventsTotal, percent } = this.progress()
    return `The replay has brought ${events} of ${eventsTotal} events (${Math.floor(percent)} %) so far`
  }

  progress(): LakeReplayProgress {
    const elapsedMs = (this.#endedAtMs ?? this.#clock.monotonicMs()) - this.#startedAtMs
    const { eventsTotal } = this.#options
    const events = this.#events
    return {
      events,
      eventsTotal,
      percent: eventsTotal === 0 ? 100 : Math.min(100, (100 * events) / eventsTotal),
      etaMs: events === 0 ? null : Math.max(0, Math.round((elapsedMs / events) * (eventsTotal - events))),
      eventsPerSecond: elapsedMs > 0 ? Math.round((1_000 * this.#events) / elapsedMs) : 0,
      atMs: this.#latestMs,
    }
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await this.done
  }

  describe(): FeedStatus {
    const { label, speed, simulated, approximate, endsEarly, steps } = this.#options
    const { eventsTotal, ...progress } = this.progress()
    const status = this.#parts.status({
      simulated,
      label,
      speed,
      time: 'recorded',
      approximate,
      ...(steps === undefined && { endsEarly, eventsTotal }),
      ...progress,
    })
    return { ...status, error: this.#error }
  }
}
