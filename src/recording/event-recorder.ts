// Records the events that the market takes. Each feed has a sink of its own, so that the record says where an event came from.
import type { EventJournal } from '../journal/types.ts'
import type { Market } from '../market/market.ts'
import type { EventRejection, MarketEvent } from '../schema/event.ts'

/** What a feed delivers to. */
export interface FeedSink {
  /** Market time, Unix ms. */
  readonly timeMs: number
  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null
}

/** What the server itself delivers, such as counts of analyses. */
export const SERVER_FEED = 'server'

export class EventRecorder {
  readonly #market: Pick<Market, 'apply' | 'timeMs' | 'solPriceUsdAt'>
  readonly #journal: Pick<EventJournal, 'append'> | null

  /** @param journal null: nothing is recorded. */
  constructor(
    market: Pick<Market, 'apply' | 'timeMs' | 'solPriceUsdAt'>,
    journal: Pick<EventJournal, 'append'> | null,
  ) {
    this.#market = market
    this.#journal = journal
  }

  /** A sink whose events are recorded as those of this feed. */
  sinkOf(feed: string): FeedSink {
    const market = this.#market
    const journal = this.#journal
    return {
      get timeMs() {
        return market.timeMs
      },
      apply(event, receivedAtMs) {
        const rejection = market.apply(event, receivedAtMs)
        if (rejection === null)
          journal?.append(event, market.timeMs, receivedAtMs, feed, market.solPriceUsdAt(event.ts))
        return rejection
      },
    }
  }
}
