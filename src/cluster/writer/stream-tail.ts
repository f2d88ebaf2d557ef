// The end of the stream, as the run knows it that appends to it: where it goes on after each connection, which message is the newest, and
// of which it is in doubt whether the stream has them.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../lib/log.ts'
import { type Bus, connectBus } from '../bus.ts'
import { BUS_CALL_MS_MAX, SILENT_MS } from '../limits.ts'
import type { BusMessage } from '../messages.ts'
import type { BusSettings } from '../settings.ts'
import type { OutgoingMessage, PublishedRun } from './outgoing.ts'
import { type FencedError, fenced, fencedByStranger, refused } from './refused.ts'
import { ensureStream, readStreamEnd, removeCheckpoints } from './stream-state.ts'
import type { ToldSubmissions } from './told-submissions.ts'

export interface StreamTailOptions {
  settings: BusSettings
  log: Log
  /** The run that recorded an event; null: the journal does not tell. */
  findRunOf(eventNo: number): Promise<string | null>
  /** The stream has to be begun anew. @returns the event behind which it begins: readers restore a checkpoint of it */
  beginAnew(): number
}

/** Where a run goes on. */
export interface Place {
  /** The last event that is on the bus. */
  afterEventNo: number
  /** The first event that the stream had and this market never had; null: there is none. */
  lostFromEventNo: number | null
}

export class StreamTail {
  /** What the bus has taken. */
  messages = 0
  bytes = 0
  readonly #options: StreamTailOptions
  readonly #submissions: ToldSubmissions
  /** Of the newest message of the stream. */
  #sequence = 0
  /** Of the newest message that this process knows to have published; null: none yet. */
  #ackedSequence: number | null = null
  /** Where the stream ended before this run began. */
  #seen = { sequence: -1, atMs: 0 }
  /** Messages of which it is not known whether the stream has them, and the sequence before the first of them. */
  #doubtful: { messages: readonly OutgoingMessage[]; sequence: number } | null = null

  /** @param submissions to which those return that have not arrived */
  constructor(options: StreamTailOptions, submissions: ToldSubmissions) {
    this.#options = options
    this.#submissions = submissions
  }

  /** Looks where the stream ends, long before the run begins: where it then ends there still, nobody else publishes. Never rejects. */
  async observe(): Promise<void> {
    try {
      const bus = await connectBus(this.#options.settings, 'mintlake writer')
      const { lastSequence } = await readStreamEnd(bus).finally(() => bus.close())
      this.#seen = { sequence: lastSequence, atMs: performance.now() }
    } catch {
      // It is looked at later, and waited for.
    }
  }

  /** Looks where the stream ends, and whether the run may go on from there. @throws FencedError, RefusedError */
  async findPlace(bus: Bus, run: PublishedRun): Promise<Place> {
    const { untilLost } = bus.watch
    await untilLost(ensureStream(bus, this.#options.settings))
    const { message, lastSequence } = await untilLost(readStreamEnd(bus))
    const isOwn = message?.folderId === run.folderId
    const isThisRun = isOwn && message.runId === run.runId
    if (isOwn && !isThisRun && this.#isReplaced(message, lastSequence, run)) throw fenced()
    this.#sequence = lastSequence
    this.#settleDoubtful(isThisRun ? lastSequence : null)
    if (message === null) return this.#beginAnew(bus, null)
    const isWhole = message.part === message.parts - 1
    const eventNo = isWhole ? message.lastEventNo : message.firstEventNo - 1
    if (isThisRun) return { afterEventNo: eventNo, lostFromEventNo: null }
    // Another run published last, which may still be alive unless it has ended.
    if (!message.ended) await this.#requireSilence(bus, lastSequence, isOwn ? fenced : fencedByStranger)
    if (!isOwn) throw refused()
    const { runEventNo, lostEvents } = message
    const isRecorded = await this.#isRecorded(eventNo, message, run)
    if (isRecorded && lostEvents === run.lostEvents) return { afterEventNo: eventNo, lostFromEventNo: null }
    this.#options.log.warn({ eventNo }, 'the bus has events that the journal lacks: its stream begins anew')
    // A power cut has taken events that were written and published, or the data folder is an older copy.
    if (!isRecorded) run.runEventNo = Math.min(run.runEventNo, runEventNo)
    // The numbers of messages that are removed are not used again.
    await untilLost(bus.manager.streams.purge(bus.names.stream))
    // Otherwise the journal was damaged, anywhere.
    return this.#beginAnew(bus, isRecorded ? 1 : run.runEventNo)
  }

  /** Whether the message of another run of this folder came after one that this run has published, or is of a later run. */
  #isReplaced({ runEventNo }: BusMessage, lastSequence: number, run: PublishedRun): boolean {
    if (this.#ackedSequence === null) return false
    return lastSequence >= this.#ackedSequence || runEventNo > run.runEventNo
  }

  /** Throws what `published` makes where the stream goes on within SILENT_MS: who publishes there is alive. */
  async #requireSilence(bus: Bus, lastSequence: number, published: () => FencedError): Promise<void> {
    const { untilLost } = bus.watch
    await untilLost(sleep(this.#silentMsLeft(lastSequence)))
    if ((await untilLost(readStreamEnd(bus))).lastSequence > lastSequence) throw published()
  }

  /** Before anything is published, so that no reader combines an older checkpoint with it. */
  async #beginAnew(bus: Bus, lostFromEventNo: number | null): Promise<Place> {
    const afterEventNo = this.#options.beginAnew()
    const fromEventNo = Math.min(afterEventNo, lostFromEventNo ?? Infinity)
    await bus.watch.untilLost(removeCheckpoints(bus, fromEventNo))
    return { afterEventNo, lostFromEventNo }
  }

  /** How long the stream has to stay as it is until it is certain that nobody else publishes. */
  #silentMsLeft(lastSequence: number): number {
    const { sequence, atMs } = this.#seen
    const seenForMs = sequence === lastSequence ? performance.now() - atMs : 0
    return Math.max(0, SILENT_MS - seenForMs)
  }

  /** Whether what another run has published up to an event is what the journal has. */
  async #isRecorded(eventNo: number, { runId, runEventNo }: BusMessage, run: PublishedRun): Promise<boolean> {
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

  /** Each message expects the one before: where one is refused, all behind it are. */
  async append({ client, names, watch }: Bus, messages: readonly OutgoingMessage[]): Promise<void> {
    const sequence = this.#sequence
    this.#doubtful = { messages, sequence }
    const publishing = Promise.allSettled(
      messages.map(({ bytes }, index) =>
        client.publish(names.subject, bytes, {
          expect: { streamName: names.stream, lastSequence: sequence + index },
          timeout: BUS_CALL_MS_MAX,
        }),
      ),
    )
    for (const result of await watch.untilLost(publishing)) {
      if (result.status === 'rejected') throw result.reason
      this.#sequence = this.#ackedSequence = result.value.seq
    }
    this.#doubtful = null
    this.messages += messages.length
    for (const { bytes } of messages) this.bytes += bytes.length
  }
}
