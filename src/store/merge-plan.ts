// In: the live files of a table. Out: which of them to make one file of. Size-tiered, as in log-structured stores: eight
// files of one tier become one of the next, so that a row is written a handful of times however many flushes there are;
// the files of a date that nothing was written to for an hour are made one. Never merges across dates, never touches a file.
import { MERGE_FILES_MIN, MERGED_ROWS_MAX, TIER_ROWS } from './limits.ts'
import type { ListedPart } from './manifest.ts'

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
 */
export function planMerges(parts: readonly ListedPart[], quietSinceMs: number): ListedPart[][] {
  const byDate = Map.groupBy(parts, ({ date }) => date)
  return [...byDate.values()].flatMap((ofDate) => {
    const tiered = sameTier(ofDate)
    const isQuiet = ofDate.every(({ writtenAtMs }) => writtenAtMs <= quietSinceMs)
    return tiered.length > 0 || !isQuiet ? tiered : withinLargest(ofDate)
  })
}
