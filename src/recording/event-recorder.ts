// Records the events that the market takes. Each feed has a sink of its own, so that the record says where an event came from.
import type { EventJournal } from '../journal/journal.ts'
import type { Market } from '../market/market.ts'
import type { EventRejection, MarketEvent } from '../schema/event.ts'

/** What a feed delivers to. */
export interface FeedSink {
  /** Market time, Unix ms. */
  readonly timeMs: number
  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null
  /** See EventSink. */
  prefetch(mints: readonly string[]): void
}

/** What the server itself delivers, such as counts of analyses. */
export const SERVER_FEED = 'server'

/** Which bars were open when a loss became known: what keeps bars in files knows by it which of them it may have as complete. */
function withHeldFrom(event: MarketEvent, heldFromMs: number): MarketEvent {
  if (event.type !== 'disconnect' || heldFromMs === Number.POSITIVE_INFINITY) return event
  return { ...event, heldFromMs }
}

/** The market, as far as it is recorded. */
type RecordedMarket = Pick<
  Market,
  'apply' | 'prefetch' | 'timeMs' | 'heldFromMs' | 'solPriceUsdAt' | 'refusalsOf'
>

/** The sink of a feed: its events are recorded as those of this feed. */
export type SinkOf = (feed: string) => FeedSink

/**
 * @param journal null: nothing is recorded.
 * @param appliesLost whether the market also takes events that the journal loses: a server that is alone goes on without its disk,
 * but other processes that have the recorded events would be at the same position with another market
 * @param noteData called before the first event of each feed, and again until it returns true
 */
export const recordedSinks =
  (
    market: RecordedMarket,
    journal: Pick<EventJournal, 'append' | 'isLosing'> | null,
    appliesLost = true,
    noteData: () => boolean = () => true,
  ): SinkOf =>
  (feed) => {
    let isNoted = feed === SERVER_FEED
    const sink: FeedSink = {
      get timeMs() {
        return market.timeMs
      },
      prefetch: (mints) => market.prefetch(mints),
      apply(event, receivedAtMs) {
        if (!isNoted) isNoted = noteData()
        const isLost = !appliesLost && journal?.isLosing === true
        const recorded = journal === null ? event : withHeldFrom(event, market.heldFromMs)
        const rejection = isLost ? 'not_recorded' : market.apply(event, receivedAtMs)
        // What is lost is counted there, with the time that it is of.
        if (rejection === null || isLost)
          journal?.append(recorded, market.timeMs, receivedAtMs, feed, market.solPriceUsdAt(event.ts))
        // What is refused is not recorded: that it is missing is an event of its own, so that a replay and readers know it too.
        if (rejection === 'late')
          for (const told of market.refusalsOf(event.ts)) sink.apply(told, receivedAtMs)
        return rejection
      },
    }
    return sink
  }
