import type { Clock } from '../../lib/clock.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { EventSink } from '../../schema/event.ts'
import { EventCounters } from '../event-counters.ts'
import { FeedState } from '../feed-state.ts'
import type { Feed, FeedLog, FeedStatus, TimedSink } from '../types.ts'
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
  readonly #bodies = new Set<Promise<IngestResult>>()
  readonly #state: FeedState
  readonly #counters: EventCounters
  readonly #market: Pick<TimedSink, 'timeMs'>
  readonly #clock: Clock

  /** @param market whose time the records of a body must not lag behind. */
  constructor(sink: EventSink, market: Pick<TimedSink, 'timeMs'>, clock: Clock, log: FeedLog) {
    this.#state = new FeedState(clock)
    this.#counters = new EventCounters(PUSH_FEED, sink, clock, log)
    this.#market = market
    this.#clock = clock
  }

  /** Records are taken from now on: the market is where they are to be added. */
  begin(): void {
    if (this.#state.current === 'starting') this.#state.set('running')
  }

  /**
   * Applies the records of a body, see `ingestInSlices`.
   * @throws ServiceError `unsupported_media_type`, `payload_too_large`, `warming_up`, `draining`.
   */
  async ingest(body: Uint8Array, contentType: string | null): Promise<IngestResult> {
    this.#admit()
    const applied = ingestInSlices(body, contentType, this.#counters, this.#market, this.#clock)
    this.#bodies.add(applied)
    try {
      return await applied
    } catch (error) {
      throw this.#noteFault(error)
    } finally {
      this.#bodies.delete(applied)
    }
  }

  /** Applies the records of a WebSocket frame, see `ingestFrame`.
   *  @throws ServiceError `payload_too_large`, `warming_up`, `draining`. */
  ingestFrame(frame: Uint8Array, isBinary: boolean): IngestResult {
    this.#admit()
    try {
      return ingestFrame(frame, isBinary, this.#counters, this.#clock.now())
    } catch (error) {
      throw this.#noteFault(error)
    }
  }

  /** Counts an exception of the market; whoever has sent the record gets an answer that says so. */
  #noteFault(error: unknown): unknown {
    if (!(error instanceof ServiceError)) this.#counters.countRejected('fault')
    return error
  }

  #admit(): void {
    const { current } = this.#state
    if (current === 'stopped') throw new ServiceError('draining', 'The server is shutting down.')
    if (current === 'starting')
      throw new ServiceError('warming_up', 'The server is warming up.', {}, { 'Retry-After': '1' })
    this.#latestAtMs = this.#clock.now()
  }

  /** Bodies that are being applied are applied to their end. */
  async stop(): Promise<void> {
    this.#state.set('stopped')
    await Promise.allSettled(this.#bodies)
  }

  describe(): FeedStatus {
    return {
      feed: PUSH_FEED,
      ...this.#state.describe(),
      simulated: false,
      latestAtMs: this.#latestAtMs,
      ...this.#counters.describe(),
    }
  }
}
