import type { Clock } from '../lib/clock.ts'
import { LogThrottle } from '../lib/log-throttle.ts'
import type { EventSink } from '../schema/event.ts'
import { EventCounters } from './event-counters.ts'
import { FEED_LOG_EVERY_MS } from './limits.ts'
import { SourceLink } from './source-link.ts'
import type { FeedLog, FeedStatus } from './types.ts'

/** The state of a feed, and since when it has been in it. */
class FeedState {
  #state: FeedStatus['state']
  #sinceMs: number
  readonly #clock: Clock

  constructor(clock: Clock, state: FeedStatus['state'] = 'starting') {
    this.#clock = clock
    this.#state = state
    this.#sinceMs = clock.now()
  }

  get current(): FeedStatus['state'] {
    return this.#state
  }

  set(state: FeedStatus['state']): void {
    if (state === this.#state) return
    this.#state = state
    this.#sinceMs = this.#clock.now()
  }

  /** Its part of a feed's status. */
  describe(): Pick<FeedStatus, 'state' | 'stateSinceMs'> {
    return { state: this.#state, stateSinceMs: this.#sinceMs }
  }
}

/** What every feed is made of: its state, its way into the market, its lines in the log, and its end. */
export class FeedParts {
  readonly name: string
  readonly clock: Clock
  readonly log: FeedLog
  readonly state: FeedState
  /** Events go there. */
  readonly counters: EventCounters
  readonly stopping = new AbortController()
  readonly #sink: EventSink
  readonly #throttle: LogThrottle

  /** @param state in which it begins */
  constructor(name: string, sink: EventSink, clock: Clock, log: FeedLog, state?: FeedStatus['state']) {
    this.name = name
    this.clock = clock
    this.log = log
    this.state = new FeedState(clock, state)
    this.counters = new EventCounters(name, sink, clock, log)
    this.#sink = sink
    this.#throttle = new LogThrottle(FEED_LOG_EVERY_MS, clock)
  }

  /** Tells the market of the loss of a source, by default that of the feed. */
  linkOf(source: string = this.name): SourceLink {
    return new SourceLink(source, this.#sink, (error) => this.noteFault(error))
  }

  /** One event that cannot be handled, which is a fault of the program, does not take others with it. */
  guarded(handle: () => void): void {
    try {
      handle()
    } catch (error) {
      this.noteFault(error)
    }
  }

  /** The market has thrown, which is a fault of the program: the event counts as rejected, and the feed goes on. */
  noteFault(error: unknown): void {
    this.counters.countRejected('fault')
    this.logSeldom('error', { err: error }, 'an event could not be applied')
  }

  /** Writes a line of this kind, or leaves it out where one was written a short time ago. */
  logSeldom(level: keyof FeedLog, details: object, sentence: string, kind = sentence): void {
    const suppressed = this.#throttle.due(kind)
    if (suppressed !== null) this.log[level]({ feed: this.name, ...details, suppressed }, sentence)
  }

  /** The feed's status. @param details what only this one has; `simulated` where its data is made up */
  status(
    details: Record<string, unknown> & Pick<Partial<FeedStatus>, 'simulated' | 'latestError' | 'problem'>,
  ): FeedStatus {
    return {
      feed: this.name,
      ...this.state.describe(),
      simulated: false,
      ...details,
      ...this.counters.describe(),
    }
  }
}
