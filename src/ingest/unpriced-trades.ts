import type { EventRejection, EventSink, MarketEvent } from '../schema/event.ts'
import { MARKET_QUOTES } from '../schema/quote.ts'
import type { SourceLink } from './source-link.ts'

/**
 * Passes on the events of a feed that cannot send them again. While its trades are refused for lack of a price of SOL, they are
 * missing from the market: that is told as a loss of the price's source, from the first refused trade to the next that is taken.
 */
export class UnpricedTrades implements EventSink {
  readonly #sink: EventSink
  readonly #link: SourceLink

  /** @param link by which the loss is told. */
  constructor(sink: EventSink, link: SourceLink) {
    this.#sink = sink
    this.#link = link
  }

  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null {
    const rejection = this.#sink.apply(event, receivedAtMs)
    if (event.type !== 'trade' || event.priceUsd != null) return rejection
    if (event.quoteMint != null && event.quoteMint !== MARKET_QUOTES.sol) return rejection
    if (rejection === null) this.#link.restore(receivedAtMs)
    else if (rejection === 'sol_price_unknown' || rejection === 'sol_price_stale')
      this.#link.lose(event.ts, receivedAtMs)
    return rejection
  }
}
