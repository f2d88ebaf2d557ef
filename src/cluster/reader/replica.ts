// Keeps a market the same as the writer's: begins with a checkpoint from the bus, follows the stream, and begins again with a
// checkpoint whenever the numbers show that something is missing or was undone.

import { setTimeout as sleep } from 'node:timers/promises'
import type { JsMsg } from '@nats-io/jetstream'
import { Backoff } from '../../lib/backoff.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import { nextTurn } from '../../lib/wait.ts'
import { Waiters } from '../../lib/waiters.ts'
import { Market } from '../../market/market.ts'
import type { Bus } from '../bus.ts'
import { busTrouble } from '../bus-errors.ts'
import { RETRY_MS, RETRY_MS_MAX } from '../limits.ts'
import { type BusMessage, DamagedMessageError, decodeMessage, type ToldSubmission } from '../messages.ts'
import { TroubleLog } from '../trouble-log.ts'
import { AppliedMarket } from './applied-market.ts'
import { listBusCheckpoints, restoreFromBus } from './bus-checkpoints.ts'
import { BusWatch } from './bus-watch.ts'
import { Lag } from './lag.ts'
import { CHECKPOINT_ASKED_EVERY_MS, CONSUMED, WRITER_AWAY_MS } from './limits.ts'
import { findPlace, findToldAt, isEmpty, rangeOf, readFirstRun, type StreamRange } from './stream-place.ts'

export interface ReplicaOptions {
  bus: Bus
  /** Becomes the replica; it is an empty one until then. */
  market: Market
  clock: Clock
  log: Log
  /** Asks the writer to upload a checkpoint. May reject. */
  askForCheckpoint(): Promise<unknown>
  onSubmission(submission: ToldSubmission): void
}

export type ReplicaState = 'waiting' | 'restoring' | 'catching_up' | 'following'

export class Replica {
  readonly lag = new Lag()
  state: ReplicaState = 'waiting'
  /** Checkpoints restored so far. */
  restored = 0
  /** When the last message arrived, on the monotonic clock. */
  arrivedAtMs: number
  /** The last message that is applied, and the stream that it is of. */
  sequence = 0
  created = ''
  readonly #options: ReplicaOptions
  readonly #waiters = new Waiters()
  /** What is applied; null: nothing is that the stream could continue. Its market is `options.market` once it has caught up. */
  #applied: AppliedMarket | null = null
  /** The message before which events are missing in the stream: what is restored has to have them. */
  #brokenAt: { created: string; sequence: number } | null = null
  /** Of the newest state that was told: its market time, and the bus's time of the message that told it first; 0: not known. */
  #news = { timeMs: 0, busMs: 0 }
  /** Names the checkpoint that was restored last, and one that the stream does not continue. */
  #begunWith = ''
  #refused = ''
  /** Of the market that is read. */
  #folderId: string | null = null
  /** Of the market that is read, while that is not what is applied. */
  #runId: string | null = null
  #isStopped = false
  #stopFollowing: () => void = () => {}
  #askedAtMs = Number.NEGATIVE_INFINITY
  readonly #troubles: TroubleLog
  readonly #ended: Promise<void>

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.#troubles = new TroubleLog(options.log, 'warn', 'the market does not follow the writer', null)
    this.arrivedAtMs = options.clock.monotonicMs()
    this.#ended = this.#run()
  }

  /** The last event that the market has. */
  get eventNo(): number {
    return this.isCurrent ? (this.#applied?.eventNo ?? 0) : 0
  }

  /** The writer's run that the market which is read is of; null: it was not told yet. */
  get runId(): string | null {
    return this.#applied !== null && this.isCurrent ? this.#applied.runId : this.#runId
  }

  /** Whether the market is made up. */
  get simulated(): boolean {
    return this.#applied?.simulated ?? false
  }

  /** Whether what is applied is what is read; false while a restored market catches up. */
  get isCurrent(): boolean {
    return this.#applied !== null && this.#applied.market === this.#options.market
  }

  /** For how long the stream has had nothing of the writer, ms; 0: it has, or this reader does not know it at present. */
  writerSilentMs(): number {
    const nowMs = this.#options.clock.monotonicMs()
    return this.lag.behindMs(nowMs) < WRITER_AWAY_MS ? this.lag.silentMs(nowMs) : 0
  }

  /** Resolves with whether the market has that event within that time. */
  reached(eventNo: number, timeoutMs: number): Promise<boolean> {
    return this.#waiters.until(() => this.eventNo >= eventNo, timeoutMs)
  }

  /** Resolves with whether the market is at that position within that time. */
  reachedPosition(seq: number, timeoutMs: number): Promise<boolean> {
    return this.#waiters.until(() => this.#options.market.seq >= seq, timeoutMs)
  }

  /** Resolves when nothing is applied any more. The connection is to be closed meanwhile, so that no call to the bus waits. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopFollowing()
    this.#waiters.end()
    await this.#ended
  }

  /** Why it does not follow at present, as a sentence; null: it does. */
  get trouble(): string | null {
    return this.#troubles.trouble
  }

  async #run(): Promise<void> {
    const backoff = new Backoff(RETRY_MS, RETRY_MS_MAX)
    while (!this.#isStopped) {
      try {
        await this.#follow()
      } catch (error) {
        this.#troubles.note(busTrouble(error))
      }
      if (this.state === 'following') backoff.reset()
      this.state = 'waiting'
      if (!this.#isStopped) await sleep(backoff.nextMs())
    }
  }

  /** Follows the stream for as long as that goes well. */
  async #follow(): Promise<void> {
    const { bus, clock, log } = this.#options
    const { client, manager, names } = bus
    const range = rangeOf(await manager.streams.info(names.stream))
    const { applied, place } = await this.#begin(range)
    const consumer = await client.consumers.get(names.stream, { opt_start_seq: Math.max(1, place) })
    this.lag.compareClocks(Date.parse((await consumer.info(true)).created), clock.monotonicMs())
    const messages = await consumer.consume(CONSUMED)
    this.sequence = place - 1
    this.created = range.created
    this.arrivedAtMs = clock.monotonicMs()
    const stop = () => messages.stop()
    this.#stopFollowing = stop
    const watch = new BusWatch(bus, clock, this.lag, this, stop)
    try {
      await this.#catchUp(applied, range, range.lastAtMs, false)
      for await (const message of messages) {
        await this.#take(applied, message, range)
        watch.check()
        if (this.#isStopped) return
      }
      log.info({}, 'the stream is asked for its messages anew')
    } finally {
      watch.stop()
      stop()
      // Not awaited: the bus may be gone, and forgets it by itself.
      consumer.delete().catch(() => undefined)
    }
  }

  /** What is applied from now on. What is read stays until that has caught up. */
  #setApplied(applied: AppliedMarket | null): void {
    this.#runId = this.runId
    this.#applied = applied
    this.created = ''
  }

  async #take(applied: AppliedMarket, { data, seq, info, timestampNanos }: JsMsg, range: StreamRange) {
    const { clock, onSubmission } = this.#options
    const busMs = Number(timestampNanos) / 1e6
    this.arrivedAtMs = clock.monotonicMs()
    // One that others wait behind has waited itself.
    if (info.pending === 0) this.lag.compareClocks(busMs, this.arrivedAtMs)
    const { eventNo } = applied
    const { message, misfit } = await this.#applyUnlessDamaged(applied, data, seq >= range.last)
    if (misfit !== null) {
      this.#giveUp(applied, message, range, seq)
      throw new Error(`${misfit}: it begins again with a checkpoint`)
    }
    this.sequence = seq
    for (const submission of message?.submissions ?? []) onSubmission(submission)
    // Of older messages the market takes no time.
    const timeMs = Math.max(applied.market.timeMs, message?.timeMs ?? 0)
    const isNew = applied.eventNo > eventNo || timeMs !== this.#news.timeMs
    if (isNew) this.#news = { timeMs, busMs }
    await this.#catchUp(applied, range, busMs, isNew)
  }

  #giveUp(
    applied: AppliedMarket,
    message: BusMessage | null,
    { created }: StreamRange,
    sequence: number,
  ): void {
    this.#setApplied(null)
    if (message !== null && message.firstEventNo > applied.eventNo + 1) this.#brokenAt = { created, sequence }
    // Where the stream could not even be followed to where it was then, the next attempt would end there too.
    if (applied.market !== this.#options.market) this.#refused = this.#begunWith
  }

  /**
   * One that is damaged is skipped: if it had events, the message behind it shows by its numbers that they are missing.
   * @returns the message, if it can be read, and why the market cannot go on with it
   */
  async #applyUnlessDamaged(applied: AppliedMarket, data: Uint8Array, withTime: boolean) {
    let message: BusMessage | null = null
    try {
      message = decodeMessage(data)
      return { message, misfit: await applied.apply(message, withTime) }
    } catch (error) {
      if (!(error instanceof DamagedMessageError)) throw error
      this.#options.log.error({ reason: error.message }, 'a message of the stream is skipped')
      return { message, misfit: null }
    }
  }

  /**
   * What was restored becomes what is read, once it has all that the stream had when it was.
   * @param busMs of the last message that is applied
   * @param isNew whether the market is in another state by it
   */
  async #catchUp(
    applied: AppliedMarket,
    { last }: StreamRange,
    busMs: number,
    isNew: boolean,
  ): Promise<void> {
    const { market } = this.#options
    if (this.sequence < last) return
    const isRestored = applied.market !== market
    if (isRestored) {
      // A client never goes back: the writer publishes again what the bus has lost.
      if (applied.market.seq < market.seq && this.#folderId === applied.folderId) return
      // Before the first reader has to wait for it.
      for (const _ of applied.market.ranking()) await nextTurn()
      applied.moveTo(market)
      this.#folderId = applied.folderId
    }
    // An empty stream has no such time.
    if (busMs > 0 && (isNew || isRestored)) this.lag.applied(this.#news.busMs || busMs)
    if (busMs > 0) this.lag.heard(busMs)
    this.state = 'following'
    this.#troubles.note(null)
    this.#waiters.check()
  }

  /** What to go on with, and where in the stream. Throws where there is nothing. */
  async #begin(range: StreamRange): Promise<{ applied: AppliedMarket; place: number }> {
    const held = this.#applied
    const place = held === null ? null : await this.#placeOf(held, range)
    if (held !== null && place !== null) {
      this.state = 'catching_up'
      if (this.created !== '' && this.created !== range.created) held.followAnew()
      return { applied: held, place }
    }
    this.state = 'restoring'
    const begun = (await this.#restore(range)) ?? (await this.#beginEmpty(range))
    if (begun === null) {
      await this.#ask()
      throw new Error(
        'neither the checkpoints on the bus nor its events go back far enough: waiting for the writer',
      )
    }
    this.#setApplied(begun.applied)
    this.state = 'catching_up'
    return begun
  }

  /** Where the stream goes on behind what is held; null: events may be missing in between. */
  async #placeOf({ eventNo }: AppliedMarket, range: StreamRange): Promise<number | null> {
    const { first, last, lastAtMs, created } = range
    if (isEmpty(range)) return this.created === created && this.sequence === last ? first : null
    const place = await findPlace(this.#options.bus, eventNo, range)
    // Where nothing follows, a stream that was made anew may have told the time alone, or be of a writer that has lost events of here.
    return place !== null && place > last && this.lag.isBefore(lastAtMs) ? last : place
  }

  /** The newest checkpoint that the stream continues; null: there is none. */
  async #restore(range: StreamRange): Promise<{ applied: AppliedMarket; place: number } | null> {
    const { bus, log } = this.#options
    for (const checkpoint of await listBusCheckpoints(bus)) {
      const place = await findPlace(bus, checkpoint.eventNo, range)
      const isRefused = checkpoint.nuid === this.#refused || this.#isBeforeBreak(place ?? 0, range)
      if (place === null || isRefused) continue
      try {
        const base = await restoreFromBus(bus, checkpoint)
        this.restored++
        this.#begunWith = checkpoint.nuid
        log.info({ eventNo: base.eventNo, tokens: base.market.stats().tokens }, 'restored a checkpoint')
        const told = await findToldAt(bus, base.eventNo, place, range)
        // Where nothing follows, nothing else brings the time of before.
        if (told !== null && place > range.last) base.market.advanceTo(told.timeMs)
        const timeMs = Math.max(base.market.timeMs, told?.timeMs ?? 0)
        this.#news = { timeMs, busMs: told?.sinceBusMs ?? 0 }
        return { applied: new AppliedMarket({ ...base, runId: told?.runId ?? null }), place }
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error
        log.error({ eventNo: checkpoint.eventNo, reason: error.message }, 'a checkpoint cannot be used')
      }
    }
    return null
  }

  /** The empty market with which a stream begins that has everything from the beginning; null: it has not. */
  async #beginEmpty(range: StreamRange): Promise<{ applied: AppliedMarket; place: number } | null> {
    const found = await readFirstRun(this.#options.bus, range)
    this.#begunWith = ''
    this.#news = { timeMs: 0, busMs: 0 }
    if (found === null || this.#isBeforeBreak(range.first, range)) return null
    const { folderId, eventNo, run } = found
    const { settings } = run.header
    const base = { market: new Market(settings), folderId, eventNo: eventNo - 1, lostEvents: 0, settings }
    const applied = new AppliedMarket({ ...base, runId: null, uploaderRunId: null })
    return { applied, place: range.first }
  }

  #isBeforeBreak(place: number, { created }: StreamRange): boolean {
    const broken = this.#brokenAt
    return broken !== null && broken.created === created && place < broken.sequence
  }

  async #ask(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs - this.#askedAtMs < CHECKPOINT_ASKED_EVERY_MS) return
    this.#askedAtMs = nowMs
    // Without a writer there is nobody to ask.
    await this.#options.askForCheckpoint().catch(() => undefined)
  }
}
