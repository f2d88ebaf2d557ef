import type { Clock } from '../../lib/clock.ts'
import { nextTurn } from '../../lib/wait.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { SIMULATOR_LAG_MS_MAX, SIMULATOR_SLICE_EVENTS, SIMULATOR_TICK_MS } from '../limits.ts'
import type { SourceLink } from '../source-link.ts'
import { ALWAYS_ROOM, type Feed, type FeedLog, type FeedStatus, type Room } from '../types.ts'
import { untilRoom, wait } from '../wait.ts'
import { Simulation, type SimulationOptions } from './simulation.ts'

export interface SimulatorFeedOptions extends Omit<SimulationOptions, 'startMs'> {
  /** Now unless given; that of an earlier run is history by now. */
  startMs?: number
  /** Called when time was skipped: the same seed would no longer make this market. */
  onSkipped?(): void
}

/** A feed of simulated events: the history at once, then live by the clock. It is ready after the history. */
export class SimulatorFeed implements Feed {
  readonly ready: Promise<void>
  #skippedMs = 0
  readonly #options: Omit<SimulationOptions, 'startMs'>
  readonly #simulation: Simulation
  readonly #parts: FeedParts
  readonly #link: SourceLink
  readonly #room: Room
  readonly #onSkipped: () => void
  readonly #running: Promise<void>

  constructor(
    options: SimulatorFeedOptions,
    sink: EventSink,
    clock: Clock,
    log: FeedLog,
    room: Room = ALWAYS_ROOM,
  ) {
    const nowMs = clock.now()
    const { startMs = nowMs, onSkipped = () => {}, ...simulated } = options
    this.#options = simulated
    this.#simulation = new Simulation({ ...simulated, startMs })
    this.#onSkipped = onSkipped
    this.#parts = new FeedParts('simulator', sink, clock, log)
    this.#link = this.#parts.linkOf()
    this.#room = room
    this.ready = this.#deliverHistory(nowMs)
    this.#running = this.ready.then(() => this.#runLive(nowMs))
  }

  async #deliverHistory(nowMs: number): Promise<void> {
    await nextTurn()
    while (!this.#parts.stopping.signal.aborted) {
      if (this.#advance(nowMs)) break
      await nextTurn()
      await untilRoom(this.#room, this.#parts.stopping.signal)
    }
    this.#parts.state.set('running')
    this.#parts.log.info(this.describe(), 'the simulated market is running: all of its data is made up')
  }

  async #runLive(readyMs: number): Promise<void> {
    const { signal } = this.#parts.stopping
    for (let caughtUpMs = readyMs; !signal.aborted; ) {
      const nowMs = this.#parts.clock.now()
      if (nowMs - caughtUpMs > SIMULATOR_LAG_MS_MAX) this.#skipGap(caughtUpMs, nowMs)
      const isCaughtUp = this.#advance(nowMs)
      if (isCaughtUp) caughtUpMs = Math.max(caughtUpMs, nowMs)
      await (isCaughtUp ? wait(SIMULATOR_TICK_MS, signal) : nextTurn())
      await untilRoom(this.#room, signal)
    }
    this.#parts.state.set('stopped')
  }

  /** Delivers a slice of the events up to `untilMs`. @returns whether that were all. */
  #advance(untilMs: number): boolean {
    try {
      return this.#simulation.advance(untilMs, this.#parts.counters, SIMULATOR_SLICE_EVENTS)
    } catch (error) {
      this.#parts.noteFault(error)
      return false
    }
  }

  /** After the machine slept, the market continues from now; the time in between is told as lost. */
  #skipGap(fromMs: number, nowMs: number): void {
    this.#skippedMs += nowMs - fromMs
    this.#simulation.skipTo(nowMs)
    this.#onSkipped()
    this.#link.lose(fromMs, nowMs)
    this.#link.restore(nowMs)
    this.#parts.log.warn({ fromMs, nowMs }, 'the simulator was delayed: it skips the time in between')
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await this.#running
  }

  describe(): FeedStatus {
    return this.#parts.status({
      simulated: true,
      ...this.#options,
      tokensLaunched: this.#simulation.tokensLaunched,
      skippedMs: this.#skippedMs,
    })
  }
}
