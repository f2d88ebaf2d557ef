import { findLakeTable } from '../duckdb/sql.ts'
import { readLog } from '../log/reader.ts'
import type { ReadOptions, ReadReport } from '../log/types.ts'
import { applyCommit, type StoreState } from '../state/state.ts'
import { StateRowParser } from '../state/state-rows.ts'
import type { RowSplitter } from './row-splitter.ts'

/**
 * Reads the log's commits after `state.lsn`, applies each to `state`, and adds its rows of lake tables to the splitter. The flush and
 * `lake verify` share it, so that they agree.
 * @returns what the read found, damage included
 */
export function splitCommits(
  options: Omit<ReadOptions, 'afterLsn'>,
  state: StoreState,
  splitter: RowSplitter,
): Promise<ReadReport> {
  const parser = new StateRowParser()
  return readLog({ ...options, afterLsn: state.lsn }, ({ lsn, knownAtMs, payload }) => {
    const texts: Buffer[] = []
    const rows = parser.parse(payload, texts)
    applyCommit(state, { lsn, knownAtMs, rows })
    rows.forEach(([name, row], index) => {
      const table = findLakeTable(name)
      if (table !== undefined)
        splitter.addText(table, Number(row[table.lakeDateColumn]), texts[index], knownAtMs)
    })
  })
}
