// In: events for the market. Out: the same events delivered, with what became of them counted by reason.
// Never decides anything: the sink does.
import type { EventSink, MarketEvent } from '../schema/event.ts'

/** Counts what a sink takes and refuses. */
export class EventCounters implements EventSink {
  accepted = 0
  readonly rejected: Record<string, number> = {}
  private readonly sink: EventSink

  constructor(sink: EventSink) {
    this.sink = sink
  }

  apply(event: MarketEvent, receivedAtMs: number): ReturnType<EventSink['apply']> {
    const rejection = this.sink.apply(event, receivedAtMs)
    if (rejection === null) this.accepted++
    else this.refuse(rejection)
    return rejection
  }

  /** Counts something that never became an event. */
  refuse(reason: string): void {
    this.rejected[reason] = (this.rejected[reason] ?? 0) + 1
  }
}
