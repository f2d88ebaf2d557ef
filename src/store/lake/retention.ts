// Expires whole UTC dates of a table. What left is recorded, so that row numbers are not used again and `lake verify` knows why
// rows are missing. The files are deleted after the readers' grace period, like merged ones.

import type { DuckDBConnection } from '@duckdb/node-api'
import { DAY_MS } from '../../lib/time.ts'
import type { TableName } from '../../schema/tables.ts'
import { transaction } from '../duckdb/database.ts'
import { queryOne } from '../duckdb/query.ts'
import { identifier, LAKE_TABLES, literal, MANIFEST, REMOVALS } from '../duckdb/sql.ts'
import { utcDate } from './lake-files.ts'
import {
  type ListedFile,
  listLiveFiles,
  listQuarantinedFiles,
  markReplaced,
  pathListSql,
} from './manifest.ts'

/** For how many full days before today a table's rows stay in the lake. Tables not named are kept for ever. */
export type RetainedDays = Partial<Record<TableName, number>>

/** The oldest UTC date that is kept. */
export const firstRetainedDate = (days: number, nowMs: number): string => utcDate(nowMs - days * DAY_MS)

/** The live and quarantined files whose date has expired. */
export async function listExpiredFiles(
  connection: DuckDBConnection,
  days: RetainedDays,
  nowMs: number,
): Promise<ListedFile[]> {
  const files: ListedFile[] = []
  const quarantined = await listQuarantinedFiles(connection)
  for (const { name } of LAKE_TABLES) {
    const retained = days[name]
    if (retained === undefined) continue
    const first = firstRetainedDate(retained, nowMs)
    const all = [
      ...(await listLiveFiles(connection, name)),
      ...quarantined.filter(({ table }) => table === name),
    ]
    files.push(...all.filter(({ date }) => date < first))
  }
  return files
}

const recordRemovals = (connection: DuckDBConnection, files: readonly ListedFile[], nowMs: number) =>
  connection.run(
    `INSERT INTO ${REMOVALS}
     SELECT table_name, dt, sum(coalesce(rows_lost, row_count)), max(seq_last), epoch_ms(${nowMs})
     FROM ${MANIFEST} WHERE path IN (${pathListSql(files)}) GROUP BY ALL`,
  )

/** Takes expired files off the live ones, and records how many rows left. */
export async function expireFiles(
  connection: DuckDBConnection,
  files: readonly ListedFile[],
  nowMs: number,
): Promise<void> {
  await transaction(connection, async () => {
    await recordRemovals(connection, files, nowMs)
    await markReplaced(connection, files, nowMs)
  })
}

/** Rows of a table that have expired so far. */
export interface RemovedRows {
  rows: number
  /** The highest row number among them; 0 without any. */
  lastSeq: number
}

export async function readRemoved(connection: DuckDBConnection, table: string): Promise<RemovedRows> {
  const sql = `SELECT coalesce(sum(row_count), 0)::DOUBLE AS rows, coalesce(max(seq_last), 0)::DOUBLE AS "lastSeq"
    FROM ${REMOVALS} WHERE table_name = $table`
  return queryOne(connection, sql, { rows: 'number', lastSeq: 'number' }, { table })
}

/** SQL condition: the UTC date of the time in `column` has not expired from `table`. */
export const isRetainedSql = (table: string, column: string): string =>
  `CAST(${identifier(column)} AS DATE) NOT IN (SELECT dt FROM ${REMOVALS} WHERE table_name = ${literal(table)})`
