import type { Order, Sort, Tab } from '../../schema/vocabulary.ts'
import type { RankingSnapshot } from '../rankings/ranking.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { FrozenList, ListFilter, Page, RowFields } from '../types.ts'
import type { Pages } from './pages.ts'

export interface FrozenRankingParts {
  tab: Tab
  sort: Sort
  filter: ListFilter | null
  ranking: RankingSnapshot
  tokens: TokenTable
  pages: Pages
  version: number
  isNewest(): boolean
}

/** The order that a list has now; its pages show the rows as they are when they are read. */
export class FrozenRanking implements FrozenList {
  readonly tab: Tab
  readonly sort: Sort
  readonly filter: ListFilter | null
  readonly version: number
  readonly #parts: FrozenRankingParts

  constructor(parts: FrozenRankingParts) {
    this.tab = parts.tab
    this.sort = parts.sort
    this.filter = parts.filter
    this.version = parts.version
    this.#parts = parts
  }

  get size(): number {
    return this.#parts.ranking.size
  }

  isNewest(): boolean {
    return this.#parts.isNewest()
  }

  page(order: Order, offset: number, limit: number, fields: RowFields | null = null): Page {
    return this.#parts.pages.join(this.#slots(order, offset, limit), {
      total: this.size,
      version: this.version,
      fields,
      isOrderNewest: () => false,
    })
  }

  preparePage(
    order: Order,
    offset: number,
    limit: number,
    rowsMax: number,
    fields: RowFields | null = null,
  ): boolean {
    return this.#parts.pages.prepare(this.#slots(order, offset, limit), rowsMax, fields)
  }

  /** Tokens that were evicted since are left out: their slots may hold others, which were not on this list. */
  #slots(order: Order, offset: number, limit: number): Uint32Array {
    return this.#parts.ranking
      .slice(offset, limit, order === 'desc')
      .filter((slot) => this.#parts.tokens.isHeldSince(slot, this.version))
  }
}
