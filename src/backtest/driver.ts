// Takes a market on in steps, each only when every program has had its turn: then a slow program or machine loses no accuracy.

import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../app.ts'
import type { StepPace } from '../ingest/replay/pace.ts'
import { nextTurn } from '../lib/wait.ts'
import { LAKE_FLUSH_MARKET_MS, PENDING_LOOK_MS, TURN_MS_MIN } from './limits.ts'
import type { WallStamps } from './wall-stamps.ts'

/** What is driven. */
export interface Driven {
  app: App
  steps: StepPace
  stamps: WallStamps
}

/** How fast it goes. */
export interface Pacing {
  /** Market time of one step. */
  marketStepMs: number
  /** How long programs have to be silent before a step. */
  silenceMs: number
  /** How long a step waits for that at most. */
  waitMsMax: number
  /** Market time for each unit of real time, at most. */
  speed: number | 'max'
  signal: AbortSignal
}

export interface DriverStats {
  /** Steps that programs saw. */
  steps: number
  /** Steps behind which a program was not silent for long enough within the time that a step waits for one. */
  stepsCut: number
  /** Steps during which a request came in: what it was answered with depends on the machine. */
  stepsMet: number
  /** Steps while a program had its turn: it asked nothing, and neither waited for market time nor followed a stream. */
  stepsInTurn: number
  /** Real time of these steps. */
  playedMs: number
  /** Market time of these steps. */
  marketMs: number
}

export class Driver {
  /** The keys of the programs that run, in the order in which they were started. */
  programs: () => readonly string[] = () => []
  readonly stats: DriverStats = {
    steps: 0,
    stepsCut: 0,
    stepsMet: 0,
    stepsInTurn: 0,
    playedMs: 0,
    marketMs: 0,
  }
  readonly #driven: Driven
  readonly #pacing: Pacing
  #marketMs: number
  #flushDueMs: number
  /** When the last step was due at the speed that is allowed. */
  #dueAtMs = 0
  /** The flush that was begun last. */
  #flushing: Promise<void> = Promise.resolve()
  /** What of the programs could be seen when they were last active, and when that was. */
  #seen = ''
  #activeAtMs = 0
  /** When the last step ended. */
  #steppedAtMs = 0
  /** It was cut short: once, however many programs it did so to. */
  #isCut = false

  /** @param fromMs market time at which it begins, Unix ms */
  constructor(driven: Driven, pacing: Pacing, fromMs: number) {
    this.#driven = driven
    this.#pacing = pacing
    this.#marketMs = fromMs
    this.#flushDueMs = fromMs + LAKE_FLUSH_MARKET_MS
  }

  /** Market time, Unix ms. */
  get marketMs(): number {
    return this.#marketMs
  }

  /**
   * Takes the market to a time, with programs that watch. Returns earlier when the signal is aborted, or `isOver`.
   * @param isOver asked before each step. @param onStep called after each, before the programs know of it
   */
  async runTo(
    untilMs: number,
    isOver: () => boolean = () => false,
    onStep?: (marketMs: number) => Promise<void>,
  ): Promise<void> {
    const { marketStepMs, signal } = this.#pacing
    const [beganMs, fromMs] = [performance.now(), this.#marketMs]
    while (this.#marketMs < untilMs && !signal.aborted && !isOver()) {
      await this.#untilDue()
      await this.untilSilent()
      const requests = this.#driven.app.http.requestCount()
      if (this.#isInTurn()) this.stats.stepsInTurn++
      await this.#advanceTo(Math.min(this.#marketMs + marketStepMs, untilMs))
      await onStep?.(this.#marketMs)
      this.stats.steps++
      if (this.#driven.app.http.requestCount() !== requests) this.stats.stepsMet++
      await this.#tell()
    }
    this.stats.playedMs += performance.now() - beganMs
    this.stats.marketMs += this.#marketMs - fromMs
  }

  /** Takes the market to a time at once, and lets streams and waits know. */
  async stepTo(marketMs: number): Promise<void> {
    await this.#advanceTo(marketMs)
    await this.#tell()
  }

  async #advanceTo(marketMs: number): Promise<void> {
    await this.#flushIfDue()
    await this.#driven.steps.stepTo(marketMs)
    this.#arrive(marketMs)
  }

  /** Takes the market to a recorded event, and to a time that is not before it: the market in which a submission was made. */
  async stepToEvent(eventNo: number, marketMs: number): Promise<void> {
    await this.#flushIfDue()
    await this.#driven.steps.stepToEvent(eventNo)
    this.#arrive(marketMs)
    await this.#tell()
  }

  #arrive(marketMs: number): void {
    const { app, stamps } = this.#driven
    app.market.advanceTo(marketMs)
    this.#marketMs = marketMs
    this.#isCut = false
    stamps.note(marketMs)
  }

  /**
   * Lets waits and streams know of the time. Who waited for it goes on one after the other, each when the one before waits again or is
   * silent: of several that want the same thing, such as a bonus of the first, the same one has it each time.
   */
  async #tell(): Promise<void> {
    const { timeWaits, broadcaster } = this.#driven.app
    // Whoever is told of this time may ask the lake.
    if (timeWaits.isDue || broadcaster.size > 0) await this.#flushing
    // First: who waits and follows a stream too has what is new of it in its turn.
    broadcaster.deliver()
    const programs = this.programs()
    while (timeWaits.wakeNext((key) => programs.indexOf(key))) {
      const waiting = timeWaits.size
      if (timeWaits.isDue) await this.untilSilent(() => timeWaits.size > waiting)
    }
    this.#steppedAtMs = performance.now()
  }

  /** Brings everything up to now to the lake, and outcomes that have become due. */
  async flush(): Promise<void> {
    await this.#beginFlush()
    await this.#flushing
  }

  /** Before a step, when programs have had their turn: nobody asks the lake while it is written, and what they said then is in it. */
  async #flushIfDue(): Promise<void> {
    if (this.#marketMs < this.#flushDueMs) return
    this.#flushDueMs = this.#marketMs + LAKE_FLUSH_MARKET_MS
    await this.#beginFlush()
  }

  /** Settles what the flush brings to the lake. The market goes on beside it, but not past the next one. */
  async #beginFlush(): Promise<void> {
    const { app } = this.#driven
    await this.#flushing
    app.recorder.emitAllBars()
    await app.recorded()
    await new Promise<void>((resolve, reject) => {
      this.#flushing = app.store.flushLake(resolve)
      // One that has failed ends the backtest, at the latest with the next one.
      this.#flushing.then(resolve, reject)
    })
  }

  /**
   * Resolves when no request of a program is pending, streams excepted, and nothing was heard of or said to one for long enough. A
   * program that has its turn is given longer, and after each step anew: a machine that is busy for a moment costs no step.
   * @param isEarly whether it need not be silent any more, once nothing is pending
   */
  async untilSilent(isEarly?: () => boolean): Promise<void> {
    const { signal, silenceMs, waitMsMax } = this.#pacing
    const beganMs = performance.now()
    while (!signal.aborted) {
      await nextTurn()
      const nowMs = performance.now()
      const isPending = this.#isPending()
      if (this.#hasMoved() || isPending) this.#activeAtMs = nowMs
      if (!isPending && isEarly?.()) return
      const dueMs = this.#isInTurn()
        ? Math.max(this.#activeAtMs + Math.max(silenceMs, TURN_MS_MIN), this.#steppedAtMs + silenceMs)
        : this.#activeAtMs + silenceMs
      const leftMs = dueMs - nowMs
      if (leftMs <= 0) return
      if (nowMs - beganMs >= waitMsMax) {
        if (!this.#isCut) this.stats.stepsCut++
        this.#isCut = true
        return
      }
      const isLooked = isPending || isEarly !== undefined
      await sleep(isLooked ? PENDING_LOOK_MS : Math.max(1, Math.min(leftMs, silenceMs / 4)))
    }
  }

  /** The last turn: resolves when every program waits, follows a stream or has ended, or after the time that a step waits at most. */
  async untilTurnsEnd(): Promise<void> {
    const untilMs = performance.now() + this.#pacing.waitMsMax
    do await this.untilSilent()
    while (this.#isInTurn() && performance.now() < untilMs && !this.#pacing.signal.aborted)
  }

  /** Whether a program does something else than to wait for market time or to follow a stream. Their keys tell them apart. */
  #isInTurn(): boolean {
    const { timeWaits, broadcaster } = this.#driven.app
    const keys = [...timeWaits.keys(), ...broadcaster.keys()]
    const unnamed = keys.filter((key) => key === '').length
    return this.programs().length > unnamed + new Set(keys.filter((key) => key !== '')).size
  }

  /**
   * Whether a program waits for an answer, or has not taken what was sent to it. Who waits for market time is idle, and reads its
   * streams later.
   */
  #isPending(): boolean {
    const { http, timeWaits, broadcaster } = this.#driven.app
    return http.inFlight() > timeWaits.size || (timeWaits.size === 0 && broadcaster.stalled > 0)
  }

  /** Whether a request came in, or something was said on a stream, since this was last asked. */
  #hasMoved(): boolean {
    const { http, timeWaits, broadcaster } = this.#driven.app
    const seen = `${http.requestCount()} ${timeWaits.size} ${broadcaster.writes}`
    const hasMoved = seen !== this.#seen
    this.#seen = seen
    return hasMoved
  }

  /** Waits where the market would be faster than it may be. It does not make up for time in which programs were slow, but for a step. */
  async #untilDue(): Promise<void> {
    const { marketStepMs, signal, speed } = this.#pacing
    if (speed === 'max') return
    const stepMs = marketStepMs / speed
    const nowMs = performance.now()
    this.#dueAtMs = Math.max(this.#dueAtMs + stepMs, nowMs - stepMs)
    // A timer may end a moment early.
    for (let leftMs = this.#dueAtMs - nowMs; leftMs > 0 && !signal.aborted; ) {
      await sleep(Math.ceil(leftMs), undefined, { signal }).catch(() => undefined)
      leftMs = this.#dueAtMs - performance.now()
    }
  }
}
