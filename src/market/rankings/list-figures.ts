import type { FigureSort } from '../../schema/vocabulary.ts'
import type { ListWindowName } from '../bars/limits.ts'
import { type Windows, windowFromMs } from '../bars/windows.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'

/** The window that a figure covers: its value moves with time. null: only events change it. */
export const FIGURE_WINDOWS: Readonly<Record<FigureSort, ListWindowName | null>> = {
  price: null,
  volume_24h: '24h',
  volume_1h: '1h',
  change_5m: '5m',
  change_1h: '1h',
  change_6h: '6h',
  change_24h: '24h',
  liquidity: null,
  holders: null,
  trades_24h: '24h',
  buys_24h: '24h',
  sells_24h: '24h',
  last_trade: null,
  analyses: null,
}

/** The windows that rows show something of. */
export const ROW_WINDOWS = [...new Set(Object.values(FIGURE_WINDOWS))].filter((window) => window !== null)

/** The figures that lists are sorted and filtered by when somebody asks. */
export class ListFigures {
  readonly #tokens: TokenTable
  readonly #windows: Windows

  constructor(tokens: TokenTable, windows: Windows) {
    this.#tokens = tokens
    this.#windows = windows
  }

  /** A token's figure as of `nowMs`, which is no earlier than its last change; NaN for unknown. */
  value(slot: number, figure: FigureSort, nowMs: number): number {
    const { columns, analysisCounts } = this.#tokens
    const row = rowIndex(slot)
    switch (figure) {
      case 'price':
        return columns.priceUsd[row]
      case 'liquidity':
        return columns.liquidity[row]
      case 'holders':
        return columns.holderCount[row]
      case 'last_trade':
        return columns.lastTradeAtMs[row]
      case 'analyses':
        return analysisCounts[slot]
      case 'volume_24h':
        return this.#windows.day(slot, nowMs).volume24h
      case 'buys_24h':
        return this.#windows.day(slot, nowMs).buys24h
      case 'sells_24h':
        return this.#windows.day(slot, nowMs).sells24h
      case 'trades_24h': {
        const { buys24h, sells24h } = this.#windows.day(slot, nowMs)
        return buys24h + sells24h
      }
      case 'volume_1h':
        return this.#windows.hourVolume(slot, nowMs)
      case 'change_5m':
        return this.#windows.change(slot, '5m', columns.priceUsd[row], nowMs)
      case 'change_1h':
        return this.#windows.change(slot, '1h', columns.priceUsd[row], nowMs)
      case 'change_6h':
        return this.#windows.change(slot, '6h', columns.priceUsd[row], nowMs)
      case 'change_24h':
        return this.#windows.change(slot, '24h', columns.priceUsd[row], nowMs)
    }
  }

  /** Start of the window that a figure covers at `nowMs`; 0 for a figure that time does not move. */
  fromMs(figure: FigureSort, nowMs: number): number {
    const window = FIGURE_WINDOWS[figure]
    return window === null ? 0 : windowFromMs(window, nowMs)
  }

  /** Whether the passing of time may move figures of a token whose window began at `fromMs` so far. */
  mayMove(slot: number, fromMs: number): boolean {
    return this.#tokens.columns.lastTradeAtMs[rowIndex(slot)] >= fromMs || this.#windows.isPatched(slot)
  }
}
