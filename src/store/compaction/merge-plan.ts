// In: the live files of a table. Out: which of them to make one file of. Size-tiered, as in log-structured stores: eight
// files of one tier become one of the next, so that a row is written a handful of times however many flushes there are;
// the files of a date that nothing was written to for an hour are made one. Never merges across dates, never touches a file.

import type { Part } from '../lake/lake-files.ts'
import type { ListedPart } from '../lake/manifest.ts'
import { MERGE_FILES_MIN, MERGED_ROWS_MAX, TIER_ROWS } from '../limits.ts'

/** Files of up to TIER_ROWS rows are of tier 0; each further tier is eight times as large. */
function tierOf(rows: number): number {
  let tier = 0
  for (let limit = TIER_ROWS; rows > limit; limit *= MERGE_FILES_MIN) tier++
  return tier
}

const rowsOf = (parts: readonly ListedPart[]): number => parts.reduce((sum, { rows }) => sum + rows, 0)

/** Runs of neighbours that together stay within the largest file; runs of one are left out. */
function withinLargest(parts: readonly ListedPart[]): ListedPart[][] {
  const groups: ListedPart[][] = []
  let group: ListedPart[] = []
  for (const part of parts) {
    if (group.length > 0 && rowsOf(group) + part.rows > MERGED_ROWS_MAX) {
      groups.push(group)
      group = []
    }
    group.push(part)
  }
  groups.push(group)
  return groups.filter(({ length }) => length > 1)
}

/** Runs of neighbours between which no file was set aside: one that comes back must find its place between them. */
function withoutGaps(parts: readonly ListedPart[], gaps: readonly Part[]): ListedPart[][] {
  const runs: ListedPart[][] = []
  let before: ListedPart | undefined
  for (const part of parts) {
    const isApart = gaps.some(
      ({ first }) => before !== undefined && before.first < first && first < part.first,
    )
    if (before === undefined || isApart) runs.push([])
    runs.at(-1)!.push(part)
    before = part
  }
  return runs
}

/** Neighbours of one tier, where there are enough of them. */
function sameTier(parts: readonly ListedPart[]): ListedPart[][] {
  const runs: ListedPart[][] = []
  for (const part of parts) {
    const run = runs.at(-1)
    if (run !== undefined && tierOf(run[0].rows) === tierOf(part.rows)) run.push(part)
    else runs.push([part])
  }
  return runs.filter(({ length }) => length >= MERGE_FILES_MIN).flatMap(withinLargest)
}

/**
 * What to merge, oldest first.
 * @param parts live files of one table, by date and row number.
 * @param quietSinceMs a date that got no file since then is over: all of its files are merged.
 * @param setAside files that may come back to their place.
 */
export function planMerges(
  parts: readonly ListedPart[],
  quietSinceMs: number,
  setAside: readonly Part[] = [],
): ListedPart[][] {
  const byDate = Map.groupBy(parts, ({ date }) => date)
  return [...byDate].flatMap(([date, ofDate]) => {
    const isQuiet = ofDate.every(({ writtenAtMs }) => writtenAtMs <= quietSinceMs)
    const gaps = setAside.filter((part) => part.table === ofDate[0].table && part.date === date)
    return withoutGaps(ofDate, gaps).flatMap((run) => {
      const tiered = sameTier(run)
      return tiered.length > 0 || !isQuiet ? tiered : withinLargest(run)
    })
  })
}
