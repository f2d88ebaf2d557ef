import type { Clock } from '../lib/clock.ts'
import type { EventCounters } from './event-counters.ts'
import { SINK_FAULT_LOG_EVERY_MS } from './limits.ts'
import { LogThrottle } from './log-throttle.ts'
import type { FeedLog } from './types.ts'

/** What a feed does when the market throws, which is a fault of the program: the event counts as rejected, and the feed goes on. */
export class SinkFaults {
  readonly #throttle = new LogThrottle(SINK_FAULT_LOG_EVERY_MS)
  readonly #feed: string
  readonly #counters: EventCounters
  readonly #clock: Clock
  readonly #log: FeedLog

  constructor(feed: string, counters: EventCounters, clock: Clock, log: FeedLog) {
    this.#feed = feed
    this.#counters = counters
    this.#clock = clock
    this.#log = log
  }

  /** Counts the event and logs the error, or only counts it where another was logged a short time ago. */
  note(error: unknown): void {
    this.#counters.countRejected('fault')
    const suppressed = this.#throttle.due(this.#clock.monotonicMs())
    if (suppressed !== null)
      this.#log.error({ feed: this.#feed, err: error, suppressed }, 'an event could not be applied')
  }
}
