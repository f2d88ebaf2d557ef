// In: the order that a list had at a version. Out: pages of that order, whose rows are the newest. Never holds a row.
import type { Order, Sort, Tab } from '../../schema/vocabulary.ts'
import type { PageCache } from '../output/page-cache.ts'
import type { FrozenList } from '../types.ts'
import type { RankingSnapshot } from './ranking.ts'

interface Frozen {
  tab: Tab
  sort: Sort
  /** Position of the market when it was frozen. */
  version: number
  ranking: RankingSnapshot
  /** Whether a slot still holds the token that it held then. */
  isThere(slot: number): boolean
  /** Position and time of the market, Unix ms. */
  now(): { seq: number; timeMs: number }
}

export function frozenList(pages: PageCache, list: Frozen): FrozenList {
  const { tab, sort, version, ranking, isThere, now } = list
  const slots = (order: Order, offset: number, limit: number) =>
    ranking.slice(offset, limit, order === 'desc').filter(isThere)
  return {
    tab,
    sort,
    version,
    size: ranking.size,
    page(order, offset, limit) {
      const { seq, timeMs } = now()
      return pages.join(slots(order, offset, limit), ranking.size, version, seq, timeMs)
    },
    preparePage: (order, offset, limit, rowsMax) =>
      pages.prepare(slots(order, offset, limit), now().timeMs, rowsMax),
  }
}
