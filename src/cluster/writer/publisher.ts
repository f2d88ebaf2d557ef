// Publishes what the journal has written, and market time, to the stream of the bus. While the bus is away nothing waits for it but a
// bounded number of batches: what is missing is read back from the journal.

import { setTimeout as sleep } from 'node:timers/promises'
import type { WrittenBatch } from '../../journal/types.ts'
import { Backoff } from '../../lib/backoff.ts'
import { within } from '../../lib/wait.ts'
import type { RunToPublish } from '../../server/market-publisher.ts'
import { type Bus, connectBus } from '../bus.ts'
import { busTrouble } from '../bus-errors.ts'
import { LAST_EVENTS_MS_MAX, RETRY_MS, RETRY_MS_MAX, TICK_MS } from '../limits.ts'
import type { ToldSubmission } from '../messages.ts'
import { TroubleLog } from '../trouble-log.ts'
import { FrameSource, type FrameSourceOptions } from './frame-source.ts'
import { Lease } from './lease.ts'
import { MarketTimes } from './market-times.ts'
import { makeMessages, type PublishedRun } from './outgoing.ts'
import { FencedError, RefusedError } from './refused.ts'
import { isWrongSequence } from './stream-state.ts'
import { StreamTail, type StreamTailOptions } from './stream-tail.ts'
import { ToldSubmissions } from './told-submissions.ts'

export interface PublisherOptions extends FrameSourceOptions, StreamTailOptions {
  /** Called on each connection, once it is known where the stream goes on. @param lostFromEventNo checkpoints of this event or later
   *  ones, made by runs before this one, are not of this market; null: all are. */
  onConnected(lostFromEventNo: number | null): void
  /** Readers need a newer checkpoint: the journal did not have all that they lack. */
  onHole(): void
  /** Another writer is active. To be called once; nothing may be acknowledged afterwards. */
  onFenced(sentence: string): void
}

export type PublisherStatus = ReturnType<Publisher['status']>

export class Publisher {
  readonly lease = new Lease()
  /** Whether the stream is another writer's, as far as this run could see the last time. */
  isRefused = false
  readonly #options: PublisherOptions
  readonly #source: FrameSource
  readonly #times = new MarketTimes()
  readonly #submissions = new ToldSubmissions()
  readonly #tail: StreamTail
  readonly #troubles: TroubleLog
  readonly #createdMs = performance.now()
  #now: RunToPublish['now'] = () => ({ eventNo: 0, timeMs: 0 })
  #publishedEventNo = 0
  #connects = 0
  /** Whose the stream is, or that the bus does not tell, is known for the first time. */
  readonly #looked = Promise.withResolvers<void>()
  #isTickDue = false
  #ticker: NodeJS.Timeout | null = null
  #working: Promise<void> | null = null
  #wake: () => void = () => {}
  /** What is left is published, and then that this run has ended. */
  #isEnding = false
  readonly #ended = Promise.withResolvers<void>()
  readonly #closing = new AbortController()

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#source = new FrameSource(options)
    this.#tail = new StreamTail(options, this.#submissions)
    void this.#tail.observe()
    const [what, over] = [
      'events are not published on the bus; trying again',
      'events are published on the bus',
    ]
    this.#troubles = new TroubleLog(options.log, 'error', what, over)
  }

  /** A batch was written. */
  add(batch: WrittenBatch): void {
    this.#source.add(batch)
    this.#wake()
  }

  /** From now on this run is published; what earlier runs have recorded and not published comes first. */
  begin({ simulated, runId, runEventNo, lostEvents, now }: RunToPublish): void {
    const { folderId } = this.#options
    this.#now = now
    this.#source.writtenEventNo = Math.max(this.#source.writtenEventNo, runEventNo - 1)
    this.#ticker = setInterval(() => this.#tick(), TICK_MS)
    this.#working = this.#work({ folderId, simulated, runId, runEventNo, lostEvents })
  }

  /** A submission was judged. */
  tell(submission: ToldSubmission): void {
    this.#submissions.add({ eventNo: this.#now().eventNo, submission })
  }

  /** Waits for the first look at whose the stream is, for at most `msMax`: where the bus is away, nobody knows. */
  async looked(msMax: number): Promise<void> {
    await within(msMax, this.#looked.promise)
  }

  status() {
    const { hasWorked, sinceMs, trouble } = this.#troubles
    const awaySinceMs = hasWorked ? sinceMs : this.#createdMs
    return {
      /** Why nothing is published at present; null while it is. */
      trouble: trouble ?? (hasWorked ? null : 'the bus was not reached yet'),
      /** Since when, for how long, ms; null while it is. */
      troubleMs: awaySinceMs === null ? null : Math.floor(performance.now() - awaySinceMs),
      /** Whether it has been tried, in vain. */
      hasFailed: trouble !== null,
      publishedEventNo: this.#publishedEventNo,
      writtenEventNo: this.#source.writtenEventNo,
      waitingBytes: this.#source.waitingBytes,
      /** In this run. */
      messages: this.#tail.messages,
      bytes: this.#tail.bytes,
      connects: this.#connects,
    }
  }

  /**
   * To be called when journal and store are closed, and nothing is acknowledged any more. Publishes what waits and that this run has ended, for
   * at most LAST_EVENTS_MS_MAX, and disconnects. Never rejects.
   */
  async stop(): Promise<void> {
    if (this.#ticker !== null) clearInterval(this.#ticker)
    if (this.#isPublishing) {
      this.#isEnding = this.#isTickDue = true
      this.#wake()
      await within(LAST_EVENTS_MS_MAX, this.#ended.promise)
    }
    this.#close()
    await this.#working
  }

  #close(): void {
    this.#closing.abort()
    this.#looked.resolve()
    this.lease.close()
    this.#wake()
  }

  /** The market time of now is told with the last event of now, and none of before. */
  noteTime(): void {
    const { eventNo, timeMs } = this.#now()
    this.#times.note(eventNo, timeMs)
  }

  #tick(): void {
    this.noteTime()
    this.#isTickDue = true
    this.#wake()
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  /** Whether the last try has worked. */
  get #isPublishing(): boolean {
    return this.#troubles.hasWorked && this.#troubles.trouble === null
  }

  /** Connects and publishes, again and again, until it is stopped or fenced. Never rejects. */
  async #work(run: PublishedRun): Promise<void> {
    const backoff = new Backoff(RETRY_MS, RETRY_MS_MAX)
    while (!this.#isClosed) {
      try {
        const bus = await connectBus(this.#options.settings, `mintlake writer ${run.runId}`)
        try {
          await this.#serve(bus, run)
        } finally {
          await bus.close()
        }
      } catch (error) {
        this.isRefused ||= error instanceof RefusedError
        if (error instanceof FencedError) return this.#stopFenced(error.message)
        if (this.#isPublishing) backoff.reset()
        // Said only where it lasts: most often the next look at the stream settles it.
        if (!isWrongSequence(error)) this.#troubles.note(busTrouble(error))
        this.#looked.resolve()
      }
      // Not a race with a promise of the whole run, which would keep something of each try while the bus is away.
      await sleep(backoff.nextMs(), undefined, { signal: this.#closing.signal }).catch(() => undefined)
    }
    await this.#source.stopReading()
  }

  async #serve(bus: Bus, run: PublishedRun): Promise<void> {
    const { afterEventNo, lostFromEventNo } = await this.#tail.findPlace(bus, run)
    this.isRefused = false
    this.#looked.resolve()
    this.#publishedEventNo = afterEventNo
    this.#connects++
    this.#options.onConnected(lostFromEventNo)
    this.#isTickDue = true
    while (!this.#isClosed) {
      const hasEnded = await this.#turn(bus, run)
      this.#troubles.note(null)
      if (hasEnded) {
        this.#ended.resolve()
        this.#close()
      }
      if (this.#publishedEventNo >= this.#source.writtenEventNo) await this.#waitForWork(bus)
    }
  }

  /** @returns whether the last message of this run is published */
  async #turn(bus: Bus, run: PublishedRun): Promise<boolean> {
    const publishedEventNo = this.#publishedEventNo
    const batches = await this.#source.after(publishedEventNo)
    if (batches.length === 0 && !this.#isTickDue && !this.#isEnding) return false
    this.#isTickDue = false
    const [first] = batches
    if (first !== undefined && first.firstEventNo > publishedEventNo + 1) this.#options.onHole()
    const ended = this.#isEnding && batches.length === 0
    const messages = makeMessages(run, batches, publishedEventNo, this.#times, this.#submissions, ended)
    const sentMs = performance.now()
    await this.#tail.append(bus, messages)
    this.lease.confirm(sentMs)
    this.#publishedEventNo = messages.at(-1)?.throughEventNo ?? publishedEventNo
    this.#source.dropThrough(this.#publishedEventNo)
    return ended
  }

  #stopFenced(sentence: string): void {
    this.#troubles.note(sentence)
    this.#looked.resolve()
    if (this.#ticker !== null) clearInterval(this.#ticker)
    this.#options.onFenced(sentence)
  }

  async #waitForWork({ watch }: Bus): Promise<void> {
    if (this.#isTickDue || this.#isClosed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    await watch.untilLost(promise)
  }
}
