import type { FeedLog } from '../../src/ingest/types.ts'
import type {
  DisconnectEvent,
  EventRejection,
  EventSink,
  MarketEvent,
  ReconnectEvent,
} from '../../src/schema/event.ts'

export interface Received {
  event: MarketEvent
  receivedAtMs: number
}

const isLink = (event: MarketEvent): event is DisconnectEvent | ReconnectEvent =>
  event.type === 'disconnect' || event.type === 'reconnect'

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

  /** What came from the sources. */
  get data(): MarketEvent[] {
    return this.events.filter((event) => !isLink(event))
  }

  /** What feeds told of their sources: losses and returns. */
  get links(): (DisconnectEvent | ReconnectEvent)[] {
    return this.events.filter(isLink)
  }
}

/** A log that keeps nothing. */
export const silentLog: FeedLog = { info() {}, warn() {}, error() {} }

export interface LogLine {
  level: 'info' | 'warn' | 'error'
  message: string
  [detail: string]: unknown
}

/** A log that keeps its lines. */
export class MemoryLog implements FeedLog {
  readonly lines: LogLine[] = []

  info(details: object, message: string): void {
    this.lines.push({ ...details, level: 'info', message })
  }

  warn(details: object, message: string): void {
    this.lines.push({ ...details, level: 'warn', message })
  }

  error(details: object, message: string): void {
    this.lines.push({ ...details, level: 'error', message })
  }
}
