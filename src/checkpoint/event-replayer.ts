// Applies recorded events to a market again, in their order and with the market time of then, which gives the market of then.
import { isDeepStrictEqual } from 'node:util'
import { readTrade } from '../journal/batch/read-trade.ts'
import type { EventBatch, RecordedEvent } from '../journal/event-batch.ts'
import { assert } from '../lib/assert.ts'
import type { Market } from '../market/market.ts'
import { type EngineSettings, PREFETCHED_MAX, type RunHeader, type TradeEvent } from '../schema/event.ts'
import { REDO_SLICE_EVENTS } from './limits.ts'

export interface EventReplayerOptions {
  market: Market
  /** The market has the events up to this one. */
  afterEventNo: number
  /** Called before a `run` event whose settings differ from those of the runs before. @returns the market to go on with */
  onSettings(market: Market, settings: EngineSettings): Market
  /** Called before a `run` event with which a market begins as an empty one; unset: there are no such events behind the one to begin
   *  after. @returns the market to go on with */
  onEmpty?(market: Market, settings: EngineSettings): Market
  settings: EngineSettings
}

export class EventReplayer {
  market: Market
  /** The last event that the market has. */
  lastEventNo: number
  /** Events applied. */
  count = 0
  #settings: EngineSettings
  readonly #options: EventReplayerOptions
  /** One for all trades: the market keeps no event. */
  readonly #trade: TradeEvent = { type: 'trade', mint: '', ts: 0, side: 'buy', tokenAmount: 0 }

  constructor(options: EventReplayerOptions) {
    this.#options = options
    this.market = options.market
    this.lastEventNo = options.afterEventNo
    this.#settings = options.settings
  }

  /**
   * Applies the events of a batch that were not applied yet. Where events before it are missing, the market has a gap, as if they
   * had been lost before they were recorded. Yields after each slice of REDO_SLICE_EVENTS.
   */
  *apply({ trades, events, firstEventNo, lastEventNo }: EventBatch): Generator<void, void> {
    let [trade, other] = [0, 0]
    for (let eventNo = firstEventNo; eventNo <= lastEventNo; eventNo++) {
      const event = events[other]?.eventNo === eventNo ? events[other++] : undefined
      const at = event === undefined ? trade++ : -1
      if (eventNo <= this.lastEventNo) continue
      const atMs = event?.atMs ?? trades.atMs[at] ?? Number.NaN
      if (eventNo > this.lastEventNo + 1) this.#applyLoss(atMs)
      if (event === undefined) {
        if (at % PREFETCHED_MAX === 0) this.market.prefetch(trades.mint.slice(at, at + PREFETCHED_MAX))
        this.market.apply(readTrade(trades, at, this.#trade), atMs)
      } else this.#applyOther(event)
      this.lastEventNo = eventNo
      if (++this.count % REDO_SLICE_EVENTS === 0) yield
    }
    assert(trade === trades.count && other === events.length, 'a batch has an event for each of its numbers')
  }

  #applyLoss(atMs: number): void {
    const { timeMs: fromMs } = this.market
    this.market.apply({ type: 'gap', ts: atMs, fromMs, toMs: Math.max(fromMs, atMs), reason: 'lost' }, atMs)
  }

  #applyOther({ event, atMs }: RecordedEvent): void {
    if (event.type === 'run') this.#beginRun(event.header)
    this.market.apply(event, atMs)
  }

  #beginRun({ settings, checkpointEventNo }: RunHeader): void {
    const { onSettings, onEmpty } = this.#options
    const isEmpty = checkpointEventNo === null && onEmpty !== undefined
    if (!isEmpty && isDeepStrictEqual(settings, this.#settings)) return
    this.#settings = settings
    this.market = (isEmpty ? onEmpty : onSettings)(this.market, settings)
  }
}
