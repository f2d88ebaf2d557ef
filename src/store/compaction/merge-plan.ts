// Chooses which live files of a table to merge into one. Size-tiered, as in log-structured stores: eight files of one tier become
// one of the next, so that a row is rewritten a handful of times however many flushes there are. Files of a date that has
// had no new file for an hour are merged into one. Files of different dates are never merged.
import type { DataFile } from '../lake/lake-files.ts'
import type { ListedFile } from '../lake/manifest.ts'
import { MERGE_FILES_MIN, MERGED_ROWS_MAX, TIER_ROWS } from '../limits.ts'

/** Files of up to TIER_ROWS rows are in tier 0; each further tier is MERGE_FILES_MIN times as large. */
function findTier(rows: number): number {
  let tier = 0
  for (let limit = TIER_ROWS; rows > limit; limit *= MERGE_FILES_MIN) tier++
  return tier
}

const countRows = (files: readonly ListedFile[]): number => files.reduce((sum, { rows }) => sum + rows, 0)

/** Cuts a run of files into groups of at most MERGED_ROWS_MAX rows. Groups of one file are left out. */
function splitBySize(files: readonly ListedFile[]): ListedFile[][] {
  const groups: ListedFile[][] = []
  let group: ListedFile[] = []
  for (const file of files) {
    if (group.length > 0 && countRows(group) + file.rows > MERGED_ROWS_MAX) {
      groups.push(group)
      group = []
    }
    group.push(file)
  }
  groups.push(group)
  return groups.filter(({ length }) => length > 1)
}

/** Cuts files into runs at quarantined files, so that a restored one does not overlap a merged file. */
function splitAtGaps(files: readonly ListedFile[], gaps: readonly DataFile[]): ListedFile[][] {
  const runs: ListedFile[][] = []
  for (const file of files) {
    const run = runs.at(-1)
    const previous = run?.at(-1)
    const hasGap = gaps.some(
      ({ first }) => previous !== undefined && previous.first < first && first < file.first,
    )
    if (run === undefined || hasGap) runs.push([file])
    else run.push(file)
  }
  return runs
}

/** Groups neighbours of one tier, where there are at least MERGE_FILES_MIN of them. */
function groupByTier(files: readonly ListedFile[]): ListedFile[][] {
  const runs: ListedFile[][] = []
  for (const file of files) {
    const run = runs.at(-1)
    if (run !== undefined && findTier(run[0].rows) === findTier(file.rows)) run.push(file)
    else runs.push([file])
  }
  return runs.filter(({ length }) => length >= MERGE_FILES_MIN).flatMap(splitBySize)
}

/**
 * Chooses groups of files to merge, oldest first.
 * @param files live files of one table, by date and row number
 * @param quietSinceMs all files of a date without a newer file than this are merged, whatever their tiers
 * @param quarantined files that may be restored
 */
export function planMerges(
  files: readonly ListedFile[],
  quietSinceMs: number,
  quarantined: readonly DataFile[] = [],
): ListedFile[][] {
  const byDate = Map.groupBy(files, ({ date }) => date)
  return [...byDate].flatMap(([date, ofDate]) => {
    const isQuiet = ofDate.every(({ writtenAtMs }) => writtenAtMs <= quietSinceMs)
    const gaps = quarantined.filter((file) => file.table === ofDate[0].table && file.date === date)
    return splitAtGaps(ofDate, gaps).flatMap((run) => {
      const tiered = groupByTier(run)
      return tiered.length > 0 || !isQuiet ? tiered : splitBySize(run)
    })
  })
}
