// Copies Parquet files of one table into one sorted file. Rows that are too many to sort in memory are cut by key into slices,
// which are sorted one after another and concatenated: memory depends on the slice, not on the files. Files that are sorted among
// themselves (`sortedBy`) are only concatenated.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { queryRows } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import {
  identifier,
  keepsNewestOnly,
  type LakeTable,
  literal,
  sortColumns,
  sortOrderSql,
} from '../duckdb/sql.ts'
import {
  copyToParquet,
  newestOnlySql,
  type ReadableFile,
  selectAllRows,
  shapeOf,
} from '../lake/parquet-sql.ts'
import {
  LAKE_ROW_GROUP_ROWS,
  MERGE_MEMORY_LIMIT,
  MERGE_SAMPLE_ROWS,
  MERGE_SLICE_ROWS,
  MERGE_SLICE_ROWS_MIN,
  MERGE_THREADS,
} from '../limits.ts'

export interface SortedCopy {
  table: LakeTable
  /** Oldest rows first. */
  files: readonly ReadableFile[]
  /** Rows of all files together. */
  rows: number
  /** Path of the file to write. */
  target: string
  /** A folder that only this copy uses, for slices and spilled data. */
  spillDir: string
  /** In DuckDB's notation, such as `384MB`. */
  memoryLimit?: string
  /** Rows sorted at once; halved where they do not fit in memory. */
  sliceRows?: number
}

/** The first two sort columns of a row, as text. Rows with the same key are in the same slice. */
type SortKey = readonly [first: string, second: string]

const isOutOfMemory = (error: unknown): boolean => /Out of Memory Error/i.test(errorMessage(error))

/** Selects the rows to write. All versions of a row have the same key, so one slice sees them all. */
const selectSql = ({ table, files }: SortedCopy, condition: string): string =>
  `SELECT * FROM (${selectAllRows(table, files)}) ${condition}${keepsNewestOnly(table) ? newestOnlySql(table) : ''}
   ORDER BY ${sortOrderSql(table)}`

/** Samples the rows for the `count - 1` keys that cut them into `count` slices of about the same size. */
async function findCuts(connection: DuckDBConnection, work: SortedCopy, count: number): Promise<SortKey[]> {
  const [first, second] = sortColumns(work.table).map(({ name }) => identifier(name))
  const sampled = await queryRows(
    connection,
    `SELECT ${first}::VARCHAR AS first, ${second}::VARCHAR AS second FROM
       (SELECT ${first}, ${second} FROM (${selectAllRows(work.table, work.files)})
        USING SAMPLE reservoir(${MERGE_SAMPLE_ROWS} ROWS) REPEATABLE (1)) AS sample
     ORDER BY sample.${first}, sample.${second}`,
    { first: 'string', second: 'string' },
  )
  return Array.from({ length: count - 1 }, (_, cut) => {
    const key = sampled[Math.floor(((cut + 1) * sampled.length) / count)]
    return [key.first, key.second]
  })
}

/** WHERE clause for the rows from `low` (inclusive) to `high` (exclusive); undefined: no bound. */
function rangeSql(table: LakeTable, low: SortKey | undefined, high: SortKey | undefined): string {
  const [first, second] = sortColumns(table)
  const bound = (key: SortKey, firstOp: '<' | '>', secondOp: '<' | '>='): string => {
    const [one, other] = [first, second].map(({ type }, index) => `${literal(key[index])}::${type}`)
    // The separate comparison of the first column lets DuckDB skip whole row groups.
    return `${identifier(first.name)} ${firstOp}= ${one}
      AND (${identifier(first.name)} ${firstOp} ${one} OR ${identifier(second.name)} ${secondOp} ${other})`
  }
  const bounds = [
    ...(low === undefined ? [] : [bound(low, '>', '>=')]),
    ...(high === undefined ? [] : [bound(high, '<', '<')]),
  ]
  return bounds.length === 0 ? '' : `WHERE ${bounds.join(' AND ')}`
}

/** Sorts each slice into a file of its own, then concatenates them into the target. */
async function copyInSlices(
  connection: DuckDBConnection,
  work: SortedCopy,
  count: number,
  rowGroupRows: number,
): Promise<number> {
  const { table, target, spillDir } = work
  const folder = join(spillDir, 'slices')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  try {
    const cuts = await findCuts(connection, work, count)
    const slices: string[] = []
    for (let slice = 0; slice < count; slice++) {
      const path = join(folder, `${slice}.parquet`)
      const rows = selectSql(work, rangeSql(table, cuts[slice - 1], cuts[slice]))
      await connection.run(copyToParquet(rows, path, { compression: 'lz4', rowGroupRows }))
      slices.push(literal(path))
    }
    const joined = `FROM read_parquet([${slices.join(', ')}], hive_partitioning=false)`
    const copy = copyToParquet(joined, target, { ...shapeOf(table), rowGroupRows })
    return (await connection.run(copy)).rowsChanged
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes the sorted copy. Rejects with `unavailable` where even the smallest slice does not fit in memory. @returns its rows */
export function copySorted(work: SortedCopy): Promise<number> {
  const settings = {
    threads: String(MERGE_THREADS),
    memory_limit: work.memoryLimit ?? MERGE_MEMORY_LIMIT,
    temp_directory: work.spillDir,
  }
  return withScratchDatabase(':memory:', settings, async (connection) => {
    const isInOrder = work.table.sortedBy !== undefined
    for (let sliceRows = work.sliceRows ?? MERGE_SLICE_ROWS; ; sliceRows /= 2) {
      const count = Math.ceil(work.rows / sliceRows)
      const rowGroupRows = Math.min(sliceRows, LAKE_ROW_GROUP_ROWS)
      try {
        if (count > 1 && !isInOrder) return await copyInSlices(connection, work, count, rowGroupRows)
        const rows = isInOrder ? selectAllRows(work.table, work.files) : selectSql(work, '')
        const copy = copyToParquet(rows, work.target, { ...shapeOf(work.table), rowGroupRows })
        return (await connection.run(copy)).rowsChanged
      } catch (error) {
        // Rows may be wider than expected.
        if (!isOutOfMemory(error) || sliceRows <= MERGE_SLICE_ROWS_MIN) throw error
      }
    }
  })
}
