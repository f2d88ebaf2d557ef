import type { Clock } from '../lib/clock.ts'
import type { EventRejection, EventSink, MarketEvent } from '../schema/event.ts'
import { RefusalWatch } from './refusals.ts'
import type { FeedLog, FeedStatus } from './types.ts'

/** Passes events on to a sink, counts which it accepted and which it rejected, by reason, and tells when that is too much. */
export class EventCounters implements EventSink {
  accepted = 0
  readonly rejected: Record<string, number> = {}
  readonly #sink: EventSink
  readonly #refusals: RefusalWatch

  /** @param feed its name. */
  constructor(feed: string, sink: EventSink, clock: Clock, log: FeedLog) {
    this.#sink = sink
    this.#refusals = new RefusalWatch(feed, clock, log)
  }

  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null {
    const rejection = this.#sink.apply(event, receivedAtMs)
    if (rejection === null) {
      this.accepted++
      this.#refusals.accept()
    } else this.countRejected(rejection, () => describeEvent(event))
    return rejection
  }

  prefetch(mints: readonly string[]): void {
    this.#sink.prefetch?.(mints)
  }

  /**
   * Counts input that was rejected, before or after it became an event.
   * @param sample what was wrong, for people: only asked where it is shown. It must not hold a secret.
   */
  countRejected(reason: string, sample: () => string = () => ''): void {
    this.rejected[reason] = (this.rejected[reason] ?? 0) + 1
    this.#refusals.refuse(reason, sample)
  }

  /** Counts that the source did not answer, which is no input. */
  countFailure(reason: string): void {
    this.rejected[reason] = (this.rejected[reason] ?? 0) + 1
  }

  /** The feed has come to its end. @returns a sentence that tells how much it has refused; null where that is not too much. */
  end(): string | null {
    return this.#refusals.end()
  }

  /** Their part of a feed's status. */
  describe(): Pick<FeedStatus, 'accepted' | 'rejected' | 'refusals'> {
    return { accepted: this.accepted, rejected: { ...this.rejected }, refusals: this.#refusals.status() }
  }
}

/** An event that the market has refused, in a few words. */
function describeEvent(event: MarketEvent): string {
  const mint = 'mint' in event ? ` of ${event.mint}` : ''
  return `${event.type}${mint} at ${new Date(event.ts).toISOString()}`
}
