// In: Parquet files of one table. Out: one file of the same rows, sorted. What is too large to be sorted in memory is cut by
// key into slices, sorted one after another, and then joined: memory depends on the slice, not on the files. Works in a
// database in memory of its own. Never touches the files it reads, never leaves a slice behind.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { query } from '../duckdb/query.ts'
import { inScratchDatabase } from '../duckdb/scratch-database.ts'
import { identifier, type LakeTable, lakeKey, lakeOrder, literal, mayBeReplaced } from '../duckdb/sql.ts'
import { copyToParquet, newestOnly, type ReadableFile, selectEveryRow } from '../lake/parquet-sql.ts'
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
  files: readonly ReadableFile[]
  /** How many the files have. */
  rows: number
  /** Path of the file to write. */
  target: string
  /** A folder of this work's own, for slices and for what does not fit in memory. */
  spillDir: string
  /** As DuckDB writes it. */
  memoryLimit?: string
  /** Rows that are sorted at once; where they do not fit, half as many, and so on. */
  sliceRows?: number
}

/** The first two columns of the order, of one row, as text. Rows of one key lie in one slice. */
type Key = readonly [first: string, second: string]

const isOutOfMemory = (error: unknown): boolean => /Out of Memory Error/i.test(errorMessage(error))

/** The rows to write that `condition` holds of: all versions of a row have one key, so they are in one slice. */
const select = ({ table, files }: SortedCopy, condition: string): string =>
  `SELECT * FROM (${selectEveryRow(table, files)}) ${condition}${mayBeReplaced(table) ? newestOnly(table) : ''}
   ORDER BY ${lakeOrder(table)}`

async function run(connection: DuckDBConnection, copy: string): Promise<number> {
  return Number((await query<{ Count: bigint }>(connection, copy))[0].Count)
}

/** Keys that cut the rows into `count` slices of about one size, as a sample has it; one cut less than slices. */
async function cutsOf(connection: DuckDBConnection, work: SortedCopy, count: number): Promise<Key[]> {
  const [first, second] = lakeKey(work.table).map(({ name }) => identifier(name))
  const sampled = await query<{ first: string; second: string }>(
    connection,
    `SELECT ${first}::VARCHAR AS first, ${second}::VARCHAR AS second FROM
       (SELECT ${first}, ${second} FROM (${selectEveryRow(work.table, work.files)})
        USING SAMPLE reservoir(${MERGE_SAMPLE_ROWS} ROWS) REPEATABLE (1)) AS sample
     ORDER BY sample.${first}, sample.${second}`,
  )
  return Array.from({ length: count - 1 }, (_, cut) => {
    const key = sampled[Math.floor(((cut + 1) * sampled.length) / count)]
    return [key.first, key.second]
  })
}

/** SQL that holds of the rows from `low` on and below `high`; undefined: no bound. */
function within(table: LakeTable, low: Key | undefined, high: Key | undefined): string {
  const [first, second] = lakeKey(table)
  const bound = (key: Key, outside: '<' | '>', second_: '<' | '>='): string => {
    const [one, other] = [first, second].map(({ type }, index) => `${literal(key[index])}::${type}`)
    // The first comparison alone is what lets whole row groups be skipped.
    return `${identifier(first.name)} ${outside}= ${one}
      AND (${identifier(first.name)} ${outside} ${one} OR ${identifier(second.name)} ${second_} ${other})`
  }
  const bounds = [
    ...(low === undefined ? [] : [bound(low, '>', '>=')]),
    ...(high === undefined ? [] : [bound(high, '<', '<')]),
  ]
  return bounds.length === 0 ? '' : `WHERE ${bounds.join(' AND ')}`
}

/** Sorts slice after slice into files of their own, then writes them one behind the other into the target. */
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
    const cuts = await cutsOf(connection, work, count)
    const slices: string[] = []
    for (let slice = 0; slice < count; slice++) {
      const path = join(folder, `${slice}.parquet`)
      const rows = select(work, within(table, cuts[slice - 1], cuts[slice]))
      await connection.run(copyToParquet(rows, path, { compression: 'lz4', rowGroupRows }))
      slices.push(literal(path))
    }
    const joined = `FROM read_parquet([${slices.join(', ')}], hive_partitioning=false)`
    return await run(connection, copyToParquet(joined, target, { rowGroupRows }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes the target. @returns its rows. Rejects with `store_unavailable` where even the smallest slice does not fit. */
export function copySorted(work: SortedCopy): Promise<number> {
  const settings = {
    threads: String(MERGE_THREADS),
    memory_limit: work.memoryLimit ?? MERGE_MEMORY_LIMIT,
    temp_directory: work.spillDir,
  }
  return inScratchDatabase(':memory:', settings, async (connection) => {
    for (let sliceRows = work.sliceRows ?? MERGE_SLICE_ROWS; ; sliceRows /= 2) {
      const count = Math.ceil(work.rows / sliceRows)
      const rowGroupRows = Math.min(sliceRows, LAKE_ROW_GROUP_ROWS)
      try {
        if (count > 1) return await copyInSlices(connection, work, count, rowGroupRows)
        return await run(connection, copyToParquet(select(work, ''), work.target, { rowGroupRows }))
      } catch (error) {
        // Rows may be wider than they were thought to be.
        if (!isOutOfMemory(error) || sliceRows <= MERGE_SLICE_ROWS_MIN) throw error
      }
    }
  })
}
