import { recordFrom } from '../../lib/record.ts'
import { FIGURE_SORTS, type FigureSort, type Tab } from '../../schema/vocabulary.ts'
import type { MarketTime } from '../time/market-time.ts'
import { FigureOrder, type FigureOrderSources } from './figure-order.ts'
import { FIGURE_ORDER_IDLE_MS, RANKED_PER_STEP_MAX } from './limits.ts'
import type { ListFigures } from './list-figures.ts'

export type FigureOrdersSources = Pick<FigureOrderSources, 'capacity' | 'slotsUsed' | 'has' | 'before'> & {
  figures: ListFigures
  time: MarketTime
}

/** The orders by figures that somebody has asked for lately. Those that nobody asks for cost an event nothing. */
export class FigureOrders {
  readonly #sources: FigureOrdersSources
  readonly #orders: Record<FigureSort, FigureOrder | null> = recordFrom(FIGURE_SORTS, () => null)
  /** The same, without those that do not exist. */
  #kept: readonly FigureOrder[] = []
  #versions = 0

  constructor(sources: FigureOrdersSources) {
    this.#sources = sources
  }

  /** The order by a figure for a reader of now. Valid until the next event. */
  read(figure: FigureSort): FigureOrder {
    const order = this.#order(figure)
    order.settleForReader(this.#sources.time.nowMs)
    return order
  }

  /** An event has changed a token. */
  changed(slot: number): void {
    for (let index = 0; index < this.#kept.length; index++) this.#kept[index].changed(slot)
  }

  setTab(slot: number, tab: Tab, isMember: boolean): void {
    for (const order of this.#kept) order.setTab(slot, tab, isMember)
  }

  /** A step of market time: a part of what is to be ranked anew, and an end for orders that nobody reads. */
  advance(): void {
    if (this.#kept.length === 0) return
    const { nowMs } = this.#sources.time
    for (const figure of FIGURE_SORTS) {
      const order = this.#orders[figure]
      if (order === null) continue
      if (nowMs - order.usedAtMs <= FIGURE_ORDER_IDLE_MS) order.settle(RANKED_PER_STEP_MAX)
      else this.#forget(figure, order)
    }
  }

  #order(figure: FigureSort): FigureOrder {
    const kept = this.#orders[figure]
    if (kept !== null) return kept
    const { figures, time } = this.#sources
    const order = new FigureOrder(
      {
        ...this.#sources,
        value: (slot) => figures.value(slot, figure, time.nowMs),
        fromMs: () => figures.fromMs(figure, time.nowMs),
        mayMove: (slot, fromMs) => figures.mayMove(slot, fromMs),
        nextVersion: () => ++this.#versions,
      },
      time.nowMs,
    )
    this.#orders[figure] = order
    this.#kept = [...this.#kept, order]
    return order
  }

  #forget(figure: FigureSort, order: FigureOrder): void {
    this.#orders[figure] = null
    this.#kept = this.#kept.filter((other) => other !== order)
  }
}
