import { isFigureSort, type RangeFigure, type Sort, type Tab } from '../../schema/vocabulary.ts'
import { KEY_UNKNOWN, sliceAscending } from '../rankings/chunk.ts'
import type { RankingSnapshot } from '../rankings/ranking.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { MarketTime } from '../time/market-time.ts'
import type { SearchIndex } from '../tokens/search-index.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { FigureRange, ListFilter } from '../types.ts'

/** What tells whether a token passes. */
export interface FilterParts {
  tokens: TokenTable
  rankings: Rankings
  searchIndex: SearchIndex
  time: MarketTime
}

/** Whether a token passes. */
type Test = (slot: number) => boolean

/** The tokens of a list that pass a filter now, in the list's order of now. */
export function filterRanking(
  { tab, sort }: { tab: Tab; sort: Sort },
  filter: ListFilter,
  parts: FilterParts,
): RankingSnapshot {
  const { rankings } = parts
  const tests = [...rangeTests(filter.ranges ?? [], parts), ...otherTests(filter, parts)]
  const slots =
    filter.mints == null
      ? allOf(rankings.of(tab, sort))
      : rankings.sort(slotsOf(filter.mints, tab, parts), sort)
  const passing = tests.reduce((left, test) => left.subarray(0, keep(left, test)), slots).slice()
  return rankingOf(passing, countKnown(passing, rankings.keysOf(sort)))
}

/** Changes when the passing of time may have changed a list: its order, or which tokens pass. */
export const timeStateOf = (
  sort: Sort,
  filter: ListFilter | null,
  { rankings, time }: Pick<FilterParts, 'rankings' | 'time'>,
): string =>
  [sort, ...(filter?.ranges ?? []).map(({ figure }) => figure)]
    .map((figure) => (figure === 'age_ms' ? time.nowMs : rankings.versionOf(figure)))
    .join()

/** Moves those that pass to the front, in their order. There is no branch that the processor would guess wrongly. @returns how many pass */
function keep(slots: Uint32Array, test: Test): number {
  let count = 0
  for (let at = 0; at < slots.length; at++) {
    const slot = slots[at]
    slots[count] = slot
    count += test(slot) ? 1 : 0
  }
  return count
}

/** How many have a known key: they come first. */
function countKnown(slots: Uint32Array, keys: ArrayLike<number>): number {
  let [known, end] = [0, slots.length]
  while (known < end) {
    const middle = (known + end) >>> 1
    if (keys[slots[middle]] === KEY_UNKNOWN) end = middle
    else known = middle + 1
  }
  return known
}

const allOf = (ranking: RankingSnapshot): Uint32Array => ranking.slice(0, ranking.size, true)

function slotsOf(mints: readonly string[], tab: Tab, { tokens, rankings }: FilterParts): Uint32Array {
  const slots = mints.map((mint) => tokens.slotOf(mint))
  return Uint32Array.from(new Set(slots.filter((slot) => slot !== -1 && rankings.has(slot, tab))))
}

function otherTests({ search, analysesMax }: ListFilter, { searchIndex, tokens }: FilterParts): Test[] {
  const tests: Test[] = []
  const { analysisCounts } = tokens
  if (analysesMax !== null) tests.push((slot) => analysisCounts[slot] <= analysesMax)
  if (search !== null) {
    const found = searchIndex.find(search)
    tests.push((slot) => found[slot] === 1)
  }
  return tests
}

/** Tests of figures. NaN and -Infinity stand for unknown, which is in no range. */
function rangeTests(ranges: readonly FigureRange[], parts: FilterParts): Test[] {
  return ranges.map(({ figure, min, max }) => {
    const read = readerOf(figure, parts)
    const [from, to] = [min ?? -Number.MAX_VALUE, max ?? Number.MAX_VALUE]
    return (slot) => {
      const value = read(slot)
      return value >= from && value <= to
    }
  })
}

function readerOf(figure: RangeFigure, { tokens, rankings, time }: FilterParts): (slot: number) => number {
  const { marketCap, createdAtMs } = tokens.columns
  const { nowMs } = time
  if (isFigureSort(figure)) {
    const keys = rankings.figureOrders.read(figure).keys
    return (slot) => keys[slot]
  }
  if (figure === 'market_cap') return (slot) => marketCap[rowIndex(slot)]
  if (figure === 'created_timestamp') return (slot) => createdAtMs[rowIndex(slot)]
  return (slot) => nowMs - createdAtMs[rowIndex(slot)]
}

/** @param slots in descending order; those whose key is not known follow the first `known`. */
function rankingOf(slots: Uint32Array, known: number): RankingSnapshot {
  const size = slots.length
  const descendingSlice = (offset: number, limit: number) =>
    slots.slice(Math.min(offset, size), Math.min(offset + limit, size))
  return {
    size,
    slice: (offset, limit, descending) =>
      descending ? descendingSlice(offset, limit) : sliceAscending(known, offset, limit, descendingSlice),
  }
}
