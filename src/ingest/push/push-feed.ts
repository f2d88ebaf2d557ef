import pLimit from 'p-limit'
import type { Clock } from '../../lib/clock.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { INGEST_FRAMES_WAITING_BYTES_MAX } from '../limits.ts'
import { ALWAYS_ROOM, type Feed, type FeedLog, type FeedStatus, type Room, type TimedSink } from '../types.ts'
import type { IngestResult } from './ingest-batch.ts'
import { ingestFrame, ingestInSlices } from './push.ts'
import { PUSH_FEED } from './record.ts'

/**
 * The feed of everything that is pushed, over HTTP and WebSocket, by whoever holds the key. The server cannot tell whether a
 * program that sends nothing has nothing to send or is gone, nor whether one whose WebSocket ended will send the rest later: who
 * has missed data says so, with records `disconnect` and `reconnect`.
 */
export class PushFeed implements Feed {
  readonly ready = Promise.resolve()
  #latestAtMs: number | null = null
  /** Bodies and frames that are not applied to their end yet. */
  readonly #applying = new Set<Promise<IngestResult>>()
  readonly #parts: FeedParts
  readonly #market: Pick<TimedSink, 'timeMs'>
  readonly #room: Room
  /** Frames that wait for room, in the order in which they came. */
  readonly #frames = pLimit(1)
  #framesBytes = 0

  /**
   * @param market whose time the records of a body must not lag behind
   * @param room bodies and frames wait for it
   */
  constructor(
    sink: EventSink,
    market: Pick<TimedSink, 'timeMs'>,
    clock: Clock,
    log: FeedLog,
    room: Room = ALWAYS_ROOM,
  ) {
    this.#parts = new FeedParts(PUSH_FEED, sink, clock, log)
    this.#market = market
    this.#room = room
  }

  /** Records are taken from now on: the market is where they are to be added. */
  begin(): void {
    const { state } = this.#parts
    if (state.current === 'starting') state.set('running')
  }

  /**
   * Applies the records of a body, see `ingestInSlices`.
   * @throws ServiceError `unsupported_media_type`, `payload_too_large`, `warming_up`, `draining`.
   */
  async ingest(body: Uint8Array, contentType: string | null): Promise<IngestResult> {
    this.#admit()
    const { counters, clock } = this.#parts
    try {
      return await this.#untilApplied(
        ingestInSlices(body, contentType, counters, this.#market, clock, this.#room),
      )
    } catch (error) {
      throw this.#noteFault(error)
    }
  }

  /**
   * Applies the records of a WebSocket frame, see `ingestFrame`: at once where there is room, else when those before it are applied.
   * @throws ServiceError `payload_too_large`, `warming_up`, `draining`; `overloaded` where too many frames wait.
   */
  ingestFrame(frame: Uint8Array, isBinary: boolean): IngestResult | Promise<IngestResult> {
    this.#admit()
    if (this.#framesBytes === 0 && this.#room() === null) return this.#applyFrame(frame, isBinary)
    const bytes = frame.byteLength
    if (this.#framesBytes + bytes > INGEST_FRAMES_WAITING_BYTES_MAX)
      throw new ServiceError(
        'overloaded',
        'As many frames wait for the disk as there is memory for; send it again later.',
        { retryAfterMs: 1_000 },
      )
    this.#framesBytes += bytes
    // The buffer of a frame is valid only now.
    const copy = Uint8Array.from(frame)
    return this.#untilApplied(
      this.#frames(async () => {
        for (let waiting = this.#room(); waiting !== null; waiting = this.#room()) await waiting
        this.#framesBytes -= bytes
        return this.#applyFrame(copy, isBinary)
      }),
    )
  }

  #applyFrame(frame: Uint8Array, isBinary: boolean): IngestResult {
    const { counters, clock } = this.#parts
    try {
      return ingestFrame(frame, isBinary, counters, clock.now())
    } catch (error) {
      throw this.#noteFault(error)
    }
  }

  async #untilApplied(applied: Promise<IngestResult>): Promise<IngestResult> {
    this.#applying.add(applied)
    try {
      return await applied
    } finally {
      this.#applying.delete(applied)
    }
  }

  /** Counts an exception of the market; whoever has sent the record gets an answer that says so. */
  #noteFault(error: unknown): unknown {
    if (!(error instanceof ServiceError)) this.#parts.counters.countRejected('fault')
    return error
  }

  #admit(): void {
    const { current } = this.#parts.state
    if (current === 'stopped') throw new ServiceError('draining', 'The server is shutting down.')
    if (current === 'starting')
      throw new ServiceError('warming_up', 'The server is warming up.', {}, { 'Retry-After': '1' })
    this.#latestAtMs = this.#parts.clock.now()
  }

  /** What has been taken is applied to its end. */
  async stop(): Promise<void> {
    this.#parts.state.set('stopped')
    await Promise.allSettled(this.#applying)
  }

  describe(): FeedStatus {
    return this.#parts.status({ latestAtMs: this.#latestAtMs })
  }
}
