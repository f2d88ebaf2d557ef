// Chooses which live files of a table to merge into one. Size-tiered, as in log-structured stores: eight files of one tier become
// one of the next, so that a row is rewritten a handful of times however many flushes there are. Files of a date that has
// had no new file for an hour are merged into one. Files of different dates are never merged.
import { findLakeTable } from '../duckdb/sql.ts'
import type { DataFile } from '../lake/lake-files.ts'
import type { ListedFile } from '../lake/manifest.ts'
import { MERGE_FILES_MIN, MERGED_EVENTS_MAX, MERGED_ROWS_MAX, TIER_ROWS } from '../limits.ts'

/** Files of up to TIER_ROWS rows are in tier 0; each further tier is MERGE_FILES_MIN times as large. */
function findTier(rows: number): number {
  let tier = 0
  for (let limit = TIER_ROWS; rows > limit; limit *= MERGE_FILES_MIN) tier++
  return tier
}

const countRows = (files: readonly ListedFile[]): number => files.reduce((sum, { rows }) => sum + rows, 0)

/** The most rows of a merged file. Recorded events leave the lake file by file, so theirs are smaller. */
const rowsMaxOf = (table: string): number =>
  findLakeTable(table)?.origin === 'journal' ? MERGED_EVENTS_MAX : MERGED_ROWS_MAX

/** Cuts a run of files into groups that are not too large to merge. Groups of one file are left out. */
function splitBySize(files: readonly ListedFile[]): ListedFile[][] {
  const groups: ListedFile[][] = []
  let group: ListedFile[] = []
  for (const file of files) {
    if (group.length > 0 && countRows(group) + file.rows > rowsMaxOf(file.table)) {
      groups.push(group)
      group = []
    }
    group.push(file)
  }
  groups.push(group)
  return groups.filter(({ length }) => length > 1)
}

/** Cuts files into runs at each file of `between`. */
function splitAt(files: readonly ListedFile[], between: readonly DataFile[]): ListedFile[][] {
  const runs: ListedFile[][] = []
  for (const file of files) {
    const run = runs.at(-1)
    const previous = run?.at(-1)
    const isCut = between.some(
      ({ first }) => previous !== undefined && previous.first < first && first < file.first,
    )
    if (run === undefined || isCut) runs.push([file])
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
 * @param quietMs all files of a date without a newer file than this are merged, whatever their tiers
 * @param quarantined files that may be restored
 */
export function planMerges(
  files: readonly ListedFile[],
  nowMs: number,
  quietMs: number,
  quarantined: readonly DataFile[] = [],
): ListedFile[][] {
  const byDate = Map.groupBy(files, ({ date }) => date)
  return [...byDate].flatMap(([date, ofDate]) => {
    // One of the future was written by a clock that was wrong: it says nothing, and must not hold up a date until then.
    const isQuiet = ofDate.every(({ writtenAtMs }) => writtenAtMs <= nowMs - quietMs || writtenAtMs > nowMs)
    const { table } = ofDate[0]
    // A restored file must not overlap a merged one. Where files are in order among each other they stay so across dates, which
    // may go back from one run of the server to the next.
    const isInOrder = findLakeTable(table)?.sortedBy !== undefined
    const between = [
      ...quarantined.filter((file) => file.table === table && file.date === date),
      ...(isInOrder ? files.filter((file) => file.date !== date) : []),
    ]
    return splitAt(ofDate, between).flatMap((run) => {
      const tiered = groupByTier(run)
      return tiered.length > 0 || !isQuiet ? tiered : splitBySize(run)
    })
  })
}
