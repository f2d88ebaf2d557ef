// In: the commits of a log beyond a state. Out: the state brought up to them, and their rows of the lake's tables in a
// splitter. Used by a flush and by a check of the log's tail, which must agree. Never writes to the log.
import { findLakeTable } from '../duckdb/sql.ts'
import { readLog } from '../log/reader.ts'
import type { ReadOptions, ReadReport } from '../log/types.ts'
import { applyCommit, type StoreState } from '../state/state.ts'
import type { RowSplitter } from './row-splitter.ts'

/** Reads the commits behind `state`, applies each to it, and splits their rows. @returns what the reading found. */
export const splitCommits = (
  options: Omit<ReadOptions, 'afterLsn'>,
  state: StoreState,
  splitter: RowSplitter,
): Promise<ReadReport> =>
  readLog({ ...options, afterLsn: state.lsn }, (commit) => {
    const { lsn, knownAtMs } = commit
    const rows = commit.rows()
    applyCommit(state, { lsn, knownAtMs, rows })
    for (const [name, row] of rows) {
      const table = findLakeTable(name)
      if (table !== undefined) splitter.add(table, row, knownAtMs)
    }
  })
