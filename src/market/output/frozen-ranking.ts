import type { Order, Sort, Tab } from '../../schema/vocabulary.ts'
import type { RankingSnapshot } from '../rankings/ranking.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { FrozenList, ListFilter, Page, RowFields } from '../types.ts'
import type { Pages } from './pages.ts'
import type { RowChanges } from './row-changes.ts'

export interface FrozenRankingParts {
  tab: Tab
  sort: Sort
  filter: ListFilter | null
  /** Changes when time alone has changed the order by the sort. */
  orderVersion: number
  ranking: RankingSnapshot
  tokens: TokenTable
  pages: Pages
  changes: RowChanges
}

/** The order that a list has now; its pages show the rows as they are when they are read. */
export class FrozenRanking implements FrozenList {
  readonly tab: Tab
  readonly sort: Sort
  readonly filter: ListFilter | null
  readonly version: number
  readonly #orderVersion: number
  readonly #ranking: RankingSnapshot
  readonly #tokens: TokenTable
  readonly #pages: Pages

  constructor({ tab, sort, filter, orderVersion, ranking, tokens, pages, changes }: FrozenRankingParts) {
    this.tab = tab
    this.sort = sort
    this.filter = filter
    this.version = changes.seq
    this.#orderVersion = orderVersion
    this.#ranking = ranking
    this.#tokens = tokens
    this.#pages = pages
  }

  get size(): number {
    return this.#ranking.size
  }

  page(order: Order, offset: number, limit: number, fields: RowFields | null = null): Page {
    return this.#pages.join(this.#slots(order, offset, limit), {
      total: this.size,
      version: this.version,
      orderVersion: this.#orderVersion,
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
    return this.#pages.prepare(this.#slots(order, offset, limit), rowsMax, fields)
  }

  /** Tokens that were evicted since are left out: their slots may hold others, which were not on this list. */
  #slots(order: Order, offset: number, limit: number): Uint32Array {
    return this.#ranking
      .slice(offset, limit, order === 'desc')
      .filter((slot) => this.#tokens.isHeldSince(slot, this.version))
  }
}
