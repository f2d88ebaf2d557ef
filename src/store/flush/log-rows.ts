import { findLakeTable } from '../duckdb/sql.ts'
import { readLog } from '../log/reader.ts'
import type { ReadOptions, ReadReport } from '../log/types.ts'
import { applyCommit, type StoreState } from '../state/state.ts'
import type { RowSplitter } from './row-splitter.ts'

/**
 * Reads the log's commits after `state.lsn`, applies each to `state`, and adds its rows of lake tables to the splitter. The flush and
 * `lake verify` share it, so that they agree.
 * @returns what the read found, damage included
 */
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
