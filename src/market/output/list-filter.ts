import { isFigureSort, type RangeFigure, type Sort, type Tab } from '../../schema/vocabulary.ts'
import type { MarketState } from '../market-state.ts'
import { KEY_UNKNOWN, sliceAscending } from '../rankings/chunk.ts'
import type { RankingSnapshot } from '../rankings/ranking.ts'
import { rowIndex } from '../tokens/token-table.ts'
import type { FigureRange, ListFilter } from '../types.ts'

/** Whether a token passes. */
type Test = (slot: number) => boolean

/** The tokens of a list that pass a filter now, in the list's order of now. */
export function filterRanking(
  { tab, sort }: { tab: Tab; sort: Sort },
  filter: ListFilter,
  sources: MarketState,
): RankingSnapshot {
  const { rankings } = sources
  const tests = [...rangeTests(filter.ranges ?? [], sources), ...otherTests(filter, sources)]
  const slots =
    filter.mints == null
      ? allOf(rankings.of(tab, sort))
      : rankings.sort(slotsOf(filter.mints, tab, sources), sort)
  const keys = rankings.keysOf(sort)
  let count = 0
  let known = 0
  for (let at = 0; at < slots.length; at++) {
    const slot = slots[at]
    if (!passes(tests, slot)) continue
    if (keys[slot] !== KEY_UNKNOWN) known++
    slots[count++] = slot
  }
  return rankingOf(slots.slice(0, count), known)
}

function passes(tests: readonly Test[], slot: number): boolean {
  for (const test of tests) if (!test(slot)) return false
  return true
}

const allOf = (ranking: RankingSnapshot): Uint32Array => ranking.slice(0, ranking.size, true)

function slotsOf(mints: readonly string[], tab: Tab, { tokens, rankings }: MarketState): Uint32Array {
  const slots = mints.map((mint) => tokens.slotOf(mint))
  return Uint32Array.from(new Set(slots.filter((slot) => slot !== -1 && rankings.has(slot, tab))))
}

function otherTests({ search, analysesMax }: ListFilter, { searchIndex, tokens }: MarketState): Test[] {
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
function rangeTests(ranges: readonly FigureRange[], sources: MarketState): Test[] {
  return ranges.map(({ figure, min, max }) => {
    const read = readerOf(figure, sources)
    const [from, to] = [min ?? -Number.MAX_VALUE, max ?? Number.MAX_VALUE]
    return (slot) => {
      const value = read(slot)
      return value >= from && value <= to
    }
  })
}

function readerOf(figure: RangeFigure, { tokens, rankings, time }: MarketState): (slot: number) => number {
  const { marketCap, createdAtMs } = tokens.columns
  const { nowMs } = time
  if (isFigureSort(figure)) {
    const keys = rankings.figureOrders.keys(figure)
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
