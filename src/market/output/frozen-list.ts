import type { Order } from '../../schema/vocabulary.ts'
import type { RankingSnapshot } from '../rankings/ranking.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { FrozenList } from '../types.ts'
import type { Pages } from './pages.ts'

export interface FrozenListParts
  extends Pick<FrozenList, 'tab' | 'sort' | 'filter' | 'version' | 'isNewest'> {
  ranking: RankingSnapshot
  tokens: TokenTable
  pages: Pages
}

/** The order that a list has now; its pages show the rows as they are when they are read. */
export function frozenList(parts: FrozenListParts): FrozenList {
  const { tab, sort, filter, version, isNewest, ranking, tokens, pages } = parts
  const { size } = ranking
  // Tokens that were evicted since are left out: their slots may hold others, which were not on this list.
  const slotsAt = (order: Order, offset: number, limit: number): Uint32Array =>
    ranking.slice(offset, limit, order === 'desc').filter((slot) => tokens.heldSince(slot) <= version)
  return {
    tab,
    sort,
    filter,
    version,
    size,
    isNewest,
    page: (order, offset, limit, fields = null) =>
      pages.join(slotsAt(order, offset, limit), { total: size, version, fields, isOrderNewest: () => false }),
    preparePage: (order, offset, limit, rowsMax, fields = null) =>
      pages.prepare(slotsAt(order, offset, limit), rowsMax, fields),
  }
}
