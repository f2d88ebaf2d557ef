// Publishes what the journal has written, and market time, to the stream of the bus. While the bus is away nothing waits for it but a
// bounded number of batches: what is missing is read back from the journal.

import { setTimeout as sleep } from 'node:timers/promises'
import type { WrittenBatch } from '../../journal/types.ts'
import { Backoff } from '../../lib/backoff.ts'
import type { Log } from '../../lib/log.ts'
import { within } from '../../lib/wait.ts'
import { connectBus } from '../bus.ts'
import { busTrouble } from '../bus-errors.ts'
import {
  BUS_CALL_MS_MAX,
  LAST_EVENTS_MS_MAX,
  LEASE_MS,
  RETRY_MS,
  RETRY_MS_MAX,
  SILENT_MS,
  TICK_MS,
} from '../limits.ts'
import type { ToldSubmission } from '../messages.ts'
import type { BusSettings } from '../settings.ts'
import { TroubleLog } from '../trouble-log.ts'
import { FrameSource, type FrameSourceOptions } from './frame-source.ts'
import { type Link, linkOf } from './link.ts'
import { MarketTimes } from './market-times.ts'
import { makeMessages, type OutgoingMessage, type PublishedRun } from './outgoing.ts'
import { FencedError, fenced, type LastPublished, nextStep } from './standing.ts'
import {
  ensureStream,
  isWrongSequence,
  purgeStream,
  readStreamEnd,
  removeCheckpoints,
} from './stream-state.ts'
import { ToldSubmissions } from './told-submissions.ts'

export interface PublisherOptions extends FrameSourceOptions {
  settings: BusSettings
  log: Log
  /** The run that recorded an event; null: the journal does not tell. */
  findRunOf(eventNo: number): Promise<string | null>
  /** The stream has to be begun anew. @returns the event behind which it begins: readers restore a checkpoint of it */
  beginAnew(): number
  /** Called on each connection, once it is known where the stream goes on. @param lostFromEventNo checkpoints of this event or later
   *  ones, made by runs before this one, are not of this market; null: all are. */
  onConnected(lostFromEventNo: number | null): void
  /** Readers need a newer checkpoint: the journal did not have all that they lack. */
  onHole(): void
  /** Another writer is active. To be called once; nothing may be acknowledged afterwards. */
  onFenced(sentence: string): void
}

export interface PublisherStatus {
  /** Why nothing is published at present; null while it is. */
  trouble: string | null
  /** Since when, for how long, ms; null while it is. */
  troubleMs: number | null
  /** Whether it has been tried, in vain. */
  hasFailed: boolean
  publishedEventNo: number
  writtenEventNo: number
  waitingBytes: number
  /** In this run. */
  messages: number
  bytes: number
  connects: number
}

/** What the publisher reads of a run. */
export interface RunToPublish {
  run: PublishedRun
  /** Number of the last event, and market time, at this moment. */
  now(): { eventNo: number; timeMs: number }
}

export class Publisher {
  readonly #options: PublisherOptions
  readonly #source: FrameSource
  readonly #times = new MarketTimes()
  readonly #submissions = new ToldSubmissions()
  #now: RunToPublish['now'] = () => ({ eventNo: 0, timeMs: 0 })
  #publishedEventNo = 0
  /** Of the newest message of the stream. */
  #sequence = 0
  #ackedSequence: number | null = null
  /** Where the stream ended before this run began. */
  #seen = { sequence: -1, atMs: 0 }
  /** Messages of which it is not known whether the stream has them, and the sequence before the first of them. */
  #doubtful: { messages: readonly OutgoingMessage[]; sequence: number } | null = null
  #trouble: string | null = 'the bus was not reached yet'
  #hasFailed = false
  readonly #troubles: TroubleLog
  #troubleSinceMs = performance.now()
  #messages = 0
  #bytes = 0
  #connects = 0
  /** When the newest message that the bus has taken was sent, on the monotonic clock. */
  #confirmedMs = -Infinity
  readonly #onConfirmed = new Set<() => void>()
  #isClosed = false
  #isTickDue = false
  #ticker: NodeJS.Timeout | null = null
  #working: Promise<void> | null = null
  #wake: () => void = () => {}
  /** What is left is published, and then that this run has ended. */
  #isEnding = false
  #onEnded: () => void = () => {}

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#source = new FrameSource(options)
    const [what, over] = [
      'events are not published on the bus; trying again',
      'events are published on the bus',
    ]
    this.#troubles = new TroubleLog(options.log, 'error', what, over)
  }

  /** Looks where the stream ends, long before this run begins: where it then ends there still, nobody else publishes. Never rejects. */
  async observe(): Promise<void> {
    try {
      const bus = await connectBus(this.#options.settings, 'mintlake writer')
      const { lastSequence } = await readStreamEnd(bus).finally(() => bus.close())
      this.#seen = { sequence: lastSequence, atMs: performance.now() }
    } catch {
      // It is looked at later, and waited for.
    }
  }

  /** A batch was written. */
  add(batch: WrittenBatch): void {
    this.#source.add(batch)
    this.#wake()
  }

  /** From now on this run is published; what earlier runs have recorded and not published comes first. */
  begin({ run, now }: RunToPublish): void {
    this.#now = now
    this.#source.writtenEventNo = Math.max(this.#source.writtenEventNo, run.runEventNo - 1)
    this.#ticker = setInterval(() => this.#tick(), TICK_MS)
    this.#working = this.#work({ ...run })
  }

  /** A submission was judged. */
  tell(submission: ToldSubmission): void {
    this.#submissions.add({ eventNo: this.#now().eventNo, submission })
  }

  /**
   * Waits until the bus has taken a message that was sent less than LEASE_MS ago: no other writer, which would wait until the stream is
   * silent, can have begun. @returns whether that is so within `msMax`
   */
  async holds(msMax: number): Promise<boolean> {
    const untilMs = performance.now() + msMax
    while (performance.now() - this.#confirmedMs > LEASE_MS) {
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0 || this.#isClosed) return false
      await this.#whenConfirmed(leftMs)
    }
    return true
  }

  /** Resolves when a message was taken, or after a time. */
  async #whenConfirmed(msMax: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onConfirmed.add(resolve)
    await within(msMax, promise)
    this.#onConfirmed.delete(resolve)
  }

  status(): PublisherStatus {
    const isTrouble = this.#trouble !== null
    return {
      trouble: this.#trouble,
      troubleMs: isTrouble ? Math.floor(performance.now() - this.#troubleSinceMs) : null,
      hasFailed: this.#hasFailed,
      publishedEventNo: this.#publishedEventNo,
      writtenEventNo: this.#source.writtenEventNo,
      waitingBytes: this.#source.waitingBytes,
      ...{ messages: this.#messages, bytes: this.#bytes, connects: this.#connects },
    }
  }

  /**
   * To be called when journal and store are closed, and nothing is acknowledged any more. Publishes what waits and that this run has ended, for
   * at most LAST_EVENTS_MS_MAX, and disconnects. Never rejects.
   */
  async stop(): Promise<void> {
    if (this.#ticker !== null) clearInterval(this.#ticker)
    if (this.#trouble === null) {
      const ended = Promise.withResolvers<void>()
      this.#onEnded = ended.resolve
      this.#isEnding = this.#isTickDue = true
      this.#wake()
      await within(LAST_EVENTS_MS_MAX, ended.promise)
    }
    this.#isClosed = true
    for (const act of this.#onConfirmed) act()
    this.#wake()
    await this.#working
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

  /** Connects and publishes, again and again, until it is stopped or fenced. Never rejects. */
  async #work(run: PublishedRun): Promise<void> {
    const backoff = new Backoff(RETRY_MS, RETRY_MS_MAX)
    while (!this.#isClosed) {
      try {
        const bus = await connectBus(this.#options.settings, `mintlake writer ${run.runId}`)
        try {
          await this.#serve(linkOf(bus), run)
        } finally {
          await bus.close()
        }
      } catch (error) {
        if (error instanceof FencedError) return this.#stopFenced(error.message)
        if (this.#trouble === null) backoff.reset()
        // Said only where it lasts: most often the next look at the stream settles it.
        if (!isWrongSequence(error)) this.#noteTrouble(busTrouble(error))
      }
      await this.#sleep(backoff.nextMs())
    }
    await this.#source.stopReading()
  }

  async #serve(link: Link, run: PublishedRun): Promise<void> {
    const lostFromEventNo = await this.#findPlace(link, run)
    this.#connects++
    this.#options.onConnected(lostFromEventNo)
    this.#isTickDue = true
    while (!this.#isClosed) {
      const hasEnded = await this.#turn(link, run)
      this.#noteTrouble(null)
      if (hasEnded) {
        this.#isClosed = true
        this.#onEnded()
      }
      if (this.#publishedEventNo >= this.#source.writtenEventNo) await this.#waitForWork(link)
    }
  }

  /** Looks where the stream ends, and goes on from there. @returns the first event that the stream had and this market never had */
  async #findPlace({ bus, untilLost }: Link, run: PublishedRun): Promise<number | null> {
    await untilLost(ensureStream(bus, this.#options.settings))
    const own = { ...run, ackedSequence: this.#ackedSequence }
    const end = await untilLost(readStreamEnd(bus))
    const next = nextStep(end, own)
    this.#sequence = end.lastSequence
    this.#settleDoubtful(next.step === 'continue' ? end.lastSequence : null)
    if (next.step === 'continue') this.#publishedEventNo = next.afterEventNo
    if (next.step === 'anew') await this.#beginAnew({ bus, untilLost }, Infinity)
    if (next.step !== 'look_again') return null
    if (!next.ended) {
      await untilLost(sleep(this.#silentMsLeft(end.lastSequence)))
      if ((await untilLost(readStreamEnd(bus))).lastSequence > end.lastSequence) throw fenced()
    }
    const { eventNo, runEventNo } = next
    if (await this.#isRecorded(next, run)) {
      this.#publishedEventNo = eventNo
      return null
    }
    // A power cut has taken events that were written and published, or the data folder is an older copy.
    this.#options.log.warn({ eventNo }, 'the bus has events that the journal lacks: its stream begins anew')
    run.runEventNo = Math.min(run.runEventNo, runEventNo)
    await untilLost(purgeStream(bus))
    await this.#beginAnew({ bus, untilLost }, run.runEventNo)
    return run.runEventNo
  }

  /** Before anything is published, so that no reader combines an older checkpoint with it. @param lostFromEventNo see `onConnected` */
  async #beginAnew({ bus, untilLost }: Link, lostFromEventNo: number): Promise<void> {
    const afterEventNo = this.#options.beginAnew()
    await untilLost(removeCheckpoints(bus, Math.min(afterEventNo, lostFromEventNo)))
    this.#publishedEventNo = afterEventNo
  }

  /** How long the stream has to stay as it is until it is certain that nobody else publishes. */
  #silentMsLeft(lastSequence: number): number {
    const { sequence, atMs } = this.#seen
    const seenForMs = sequence === lastSequence ? performance.now() - atMs : 0
    return Math.max(0, SILENT_MS - seenForMs)
  }

  /** Whether what another run has published up to an event is what the journal has. */
  async #isRecorded({ eventNo, runId, runEventNo }: LastPublished, run: PublishedRun): Promise<boolean> {
    if (eventNo >= run.runEventNo) return false
    if (eventNo < runEventNo) return true
    const recordedBy = await this.#options.findRunOf(eventNo)
    return recordedBy === null || recordedBy === runId
  }

  /** @param lastSequence null: none of the messages is in the stream */
  #settleDoubtful(lastSequence: number | null): void {
    const doubtful = this.#doubtful
    this.#doubtful = null
    if (doubtful === null) return
    const { messages, sequence } = doubtful
    const landed = lastSequence === null ? 0 : Math.max(0, lastSequence - sequence)
    this.#submissions.putBack(messages.slice(landed).flatMap(({ submissions }) => submissions))
  }

  /** @returns whether the last message of this run is published */
  async #turn(link: Link, run: PublishedRun): Promise<boolean> {
    const batches = await this.#source.after(this.#publishedEventNo)
    if (batches.length === 0 && !this.#isTickDue && !this.#isEnding) return false
    this.#isTickDue = false
    const [first] = batches
    if (first !== undefined && first.firstEventNo > this.#publishedEventNo + 1) this.#options.onHole()
    const ended = this.#isEnding && batches.length === 0
    const messages = makeMessages(
      ...([run, batches, this.#publishedEventNo, this.#times, this.#submissions] as const),
      ended,
    )
    await this.#publish(link, messages)
    return ended
  }

  /** Each message expects the one before: where one is refused, all behind it are. */
  async #publish({ bus, untilLost }: Link, messages: readonly OutgoingMessage[]): Promise<void> {
    const { client, names } = bus
    const sequence = this.#sequence
    const sentMs = performance.now()
    this.#doubtful = { messages, sequence }
    const publishing = Promise.allSettled(
      messages.map(({ bytes }, index) =>
        client.publish(names.subject, bytes, {
          expect: { streamName: names.stream, lastSequence: sequence + index },
          timeout: BUS_CALL_MS_MAX,
        }),
      ),
    )
    for (const result of await untilLost(publishing)) {
      if (result.status === 'rejected') throw result.reason
      this.#sequence = this.#ackedSequence = result.value.seq
    }
    this.#confirmedMs = sentMs
    for (const act of this.#onConfirmed) act()
    this.#doubtful = null
    this.#messages += messages.length
    for (const { bytes } of messages) this.#bytes += bytes.length
    this.#publishedEventNo = messages.at(-1)?.throughEventNo ?? this.#publishedEventNo
    this.#source.dropThrough(this.#publishedEventNo)
  }

  #stopFenced(sentence: string): void {
    this.#noteTrouble(sentence)
    if (this.#ticker !== null) clearInterval(this.#ticker)
    this.#options.onFenced(sentence)
  }

  #noteTrouble(trouble: string | null): void {
    this.#troubles.note(trouble)
    this.#hasFailed = trouble !== null
    if (trouble !== null && this.#trouble === null) this.#troubleSinceMs = performance.now()
    this.#trouble = trouble
  }

  async #waitForWork({ untilLost }: Link): Promise<void> {
    if (this.#isTickDue || this.#isClosed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    await untilLost(promise)
  }

  /** Also ends when the publisher is stopped. */
  async #sleep(ms: number): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#wake = () => {
        if (this.#isClosed) resolve()
      }
    })
    if (!this.#isClosed) await within(ms, stopped)
  }
}
