// A market, and how far it has followed the stream.

import { EventReplayer } from '../../checkpoint/event-replayer.ts'
import { withSettings } from '../../checkpoint/market-options.ts'
import { decodeBatch } from '../../journal/batch/batch-decoder.ts'
import type { EventBatch } from '../../journal/event-batch.ts'
import { nextTurn } from '../../lib/wait.ts'
import { Market } from '../../market/market.ts'
import type { EngineSettings } from '../../schema/event.ts'
import { type BusMessage, DamagedMessageError } from '../messages.ts'
import { FrameParts } from './frame-parts.ts'

export interface MarketBase {
  market: Market
  /** Identity of the data folder that the market is of. */
  folderId: string
  /** The market has the events up to this one. */
  eventNo: number
  settings: EngineSettings
  /** How many of these the market lacks. */
  lostEvents: number
  /** The writer's run at that event; null: it is not known. */
  runId: string | null
  /** A run that had these events: it uploaded the checkpoint; null: there was none. */
  uploaderRunId: string | null
}

export class AppliedMarket {
  readonly folderId: string
  /** Of the latest message; null: there was none. */
  #toldRunId: string | null = null
  readonly #firstRunId: string | null
  /** The run that uploaded the checkpoint that this began with. */
  readonly #uploaderRunId: string | null
  /** Whether the market is made up, as the latest message said. */
  simulated = false
  #replayer: EventReplayer
  #settings: EngineSettings
  /** Another stream than that which this market has followed is to continue it. */
  #isStreamNew = false
  readonly #lostEvents: number
  readonly #parts = new FrameParts()

  constructor({ market, folderId, eventNo, settings, lostEvents, runId, uploaderRunId }: MarketBase) {
    this.folderId = folderId
    this.#firstRunId = runId
    this.#uploaderRunId = uploaderRunId
    this.#settings = settings
    this.#lostEvents = lostEvents
    this.#replayer = this.#replayerFor(market, eventNo)
  }

  get market(): Market {
    return this.#replayer.market
  }

  /** The writer's run at that event; null: it is not known. */
  get runId(): string | null {
    return this.#toldRunId ?? this.#firstRunId
  }

  /** The last event that the market has. */
  get eventNo(): number {
    return this.#replayer.lastEventNo
  }

  /** The stream was made anew. Until it has told a message that continues this market, only the run that is known here is known to do so. */
  followAnew(): void {
    this.#isStreamNew = true
  }

  /** `market` becomes what this market is, and is the one that goes on. */
  moveTo(market: Market): void {
    market.adopt(this.market)
    this.#replayer = this.#replayerFor(market, this.eventNo)
  }

  /**
   * Applies a message, in slices between which the event loop has a turn.
   * @param withTime false while older messages are caught up on: their events carry the time
   * @returns why this market cannot go on, as a sentence; null: it can
   * @throws DamagedMessageError for a frame that cannot be read; the market is as it was before it
   */
  async apply(message: BusMessage, withTime: boolean): Promise<string | null> {
    const trouble = this.#misfitOf(message)
    if (trouble !== null) return trouble
    this.#isStreamNew = false
    this.simulated = message.simulated
    const frame = this.#parts.add(message)
    // A frame in parts does not begin before its last one.
    if (frame !== null || message.frame === null) this.#toldRunId = message.runId
    if (frame !== null) {
      const misfit = await this.#applyFrame(frame)
      if (misfit !== null) return misfit
    }
    if (withTime && this.eventNo >= message.lastEventNo) this.market.advanceTo(message.timeMs)
    return null
  }

  #misfitOf({ folderId, runId, runEventNo, lostEvents, firstEventNo }: BusMessage): string | null {
    if (folderId !== this.folderId) return 'the stream is of another data folder now'
    const knownRunId = this.#toldRunId ?? this.#uploaderRunId
    // A later run has looked whether it has what was in its stream. Of another stream nobody can tell: a run in between may have begun
    // at an earlier event, and have told so there.
    const hasBeenAsked = !this.#isStreamNew && runEventNo > this.eventNo
    const isOfRun = knownRunId === null || runId === knownRunId || hasBeenAsked
    // A damaged journal may have taken events of any run.
    if (!isOfRun || lostEvents !== this.#lostEvents)
      return 'the writer does not have the events that this reader has'
    if (firstEventNo > this.eventNo + 1) return missing(this.eventNo, firstEventNo)
    return null
  }

  async #applyFrame(frame: Buffer): Promise<string | null> {
    const batch = decodeBatch(frame)
    if (batch === null) throw new DamagedMessageError('the stream has a batch that cannot be read')
    if (batch.lastEventNo <= this.eventNo) return null
    // A writer with another clock has taken over: this market has seen more time pass than that one. A rewind says so itself.
    const isNext = batch.firstEventNo === this.eventNo + 1
    if (isNext && !beginsWithRewind(batch) && firstAtMs(batch) < this.market.timeMs)
      return 'the market of the writer is at an earlier time than the one here'
    for (const _ of this.#replayer.apply(batch)) await nextTurn()
    return null
  }

  #replayerFor(market: Market, afterEventNo: number): EventReplayer {
    const goOnWith = (before: Market, settings: EngineSettings, after: Market): Market => {
      this.#settings = settings
      before.adopt(after)
      return before
    }
    return new EventReplayer({
      market,
      afterEventNo,
      settings: this.#settings,
      onSettings: (before, settings) => goOnWith(before, settings, withSettings(before, settings)),
      onEmpty: (before, settings) => goOnWith(before, settings, new Market(settings)),
    })
  }
}

const missing = (eventNo: number, firstEventNo: number): string =>
  `the stream has no events ${eventNo + 1} to ${firstEventNo - 1}`

const beginsWithRewind = ({ events: [event], firstEventNo }: EventBatch): boolean =>
  event?.eventNo === firstEventNo && event.event.type === 'rewind'

function firstAtMs({ trades, events, firstEventNo }: EventBatch): number {
  const [event] = events
  return event !== undefined && event.eventNo === firstEventNo ? event.atMs : (trades.atMs[0] ?? Number.NaN)
}
