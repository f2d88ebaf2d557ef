import type { EventSink, MarketEvent } from '../schema/event.ts'

/** Passes events on to a sink and counts which it accepted and which it rejected, by reason. */
export class EventCounters implements EventSink {
  accepted = 0
  readonly rejected: Record<string, number> = {}
  readonly #sink: EventSink

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  apply(event: MarketEvent, receivedAtMs: number): ReturnType<EventSink['apply']> {
    const rejection = this.#sink.apply(event, receivedAtMs)
    if (rejection === null) this.accepted++
    else this.countRejected(rejection)
    return rejection
  }

  /** Counts input that was rejected before it became an event. */
  countRejected(reason: string): void {
    this.rejected[reason] = (this.rejected[reason] ?? 0) + 1
  }
}
