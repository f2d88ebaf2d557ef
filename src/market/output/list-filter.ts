import type { RankingSnapshot } from '../rankings/ranking.ts'
import type { SearchIndex } from '../tokens/search-index.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { ListFilter } from '../types.ts'

/** The tokens of a list that pass a filter now, in the list's order of now. */
export function filterRanking(
  ranking: RankingSnapshot,
  { search, analysesMax }: ListFilter,
  { analysisCounts }: TokenTable,
  index: SearchIndex,
): RankingSnapshot {
  const found = search === null ? null : index.find(search)
  const slots = ranking.slice(0, ranking.size, true)
  let count = 0
  for (const slot of slots) {
    if (found !== null && found[slot] === 0) continue
    if (analysesMax === null || analysisCounts[slot] <= analysesMax) slots[count++] = slot
  }
  return rankingOf(slots.slice(0, count))
}

/** @param slots in descending order. */
function rankingOf(slots: Uint32Array): RankingSnapshot {
  const size = slots.length
  return {
    size,
    slice(offset, limit, descending) {
      const from = Math.min(offset, size)
      const to = Math.min(offset + limit, size)
      return descending ? slots.slice(from, to) : slots.slice(size - to, size - from).reverse()
    },
  }
}
