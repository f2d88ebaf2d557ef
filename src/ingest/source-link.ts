import type { EventSink, MarketEvent } from '../schema/event.ts'
import type { SinkFaults } from './sink-faults.ts'

/**
 * Tells the market when a feed loses its source and when it has it again: a `disconnect` and a `reconnect` in turn, however often
 * the feed says so. Data of that time may be missing.
 */
export class SourceLink {
  #isUp = true
  readonly #feed: string
  readonly #sink: EventSink
  readonly #faults: SinkFaults

  constructor(feed: string, sink: EventSink, faults: SinkFaults) {
    this.#feed = feed
    this.#sink = sink
    this.#faults = faults
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** @param sinceMs when the feed last had data, Unix ms. */
  lose(sinceMs: number, nowMs: number): void {
    if (!this.#isUp) return
    this.#isUp = false
    this.#apply({ type: 'disconnect', ts: nowMs, feed: this.#feed, sinceMs: Math.min(sinceMs, nowMs) })
  }

  restore(nowMs: number): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#apply({ type: 'reconnect', ts: nowMs, feed: this.#feed })
  }

  #apply(event: MarketEvent): void {
    try {
      this.#sink.apply(event, event.ts)
    } catch (error) {
      this.#faults.note(error)
    }
  }
}
