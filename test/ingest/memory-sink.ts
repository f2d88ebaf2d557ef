import type { EventRejection, EventSink, MarketEvent } from '../../src/schema/event.ts'

export interface Received {
  event: MarketEvent
  receivedAtMs: number
}

export class MemorySink implements EventSink {
  readonly received: Received[] = []
  timeMs = 0
  reject: (event: MarketEvent) => EventRejection | null = () => null

  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null {
    this.timeMs = Math.max(this.timeMs, receivedAtMs)
    const rejection = this.reject(event)
    if (rejection === null) this.received.push({ event, receivedAtMs })
    return rejection
  }

  get events(): MarketEvent[] {
    return this.received.map(({ event }) => event)
  }
}

/** A log that keeps nothing. */
export const silentLog = { info() {}, warn() {}, error() {} }
