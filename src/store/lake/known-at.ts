// Times for `known_at` of rows that do not come from the log: each later than all before it of its table, also where the clock was set
// back, so that who has the rows of a table up to one finds all later ones behind it.
import type { DuckDBConnection } from '@duckdb/node-api'
import { queryValue } from '../duckdb/query.ts'
import { LAKE_TABLES, MANIFEST } from '../duckdb/sql.ts'
import type { LiveFileReader } from './live-file-reader.ts'
import { selectAllRows } from './parquet-sql.ts'

/** Earlier versions kept none: theirs are none but times at which files were written. */
const LAST_SQL = `coalesce(last_known_ms, (SELECT epoch_ms(max(written_at)) FROM ${MANIFEST}), 0)`

const nextSql = (nowMs: number): string => `greatest(${LAST_SQL} + 1, ${nowMs})`

/**
 * A time for rows that are written now. It is kept before a row has it, so that a start, or what is written after a failure, goes
 * on behind it; one that no row has in the end does no harm.
 */
export const takeKnownMs = (connection: DuckDBConnection, nowMs: number): Promise<number> =>
  queryValue(
    connection,
    `UPDATE state_position SET last_known_ms = ${nextSql(nowMs)} RETURNING last_known_ms::DOUBLE`,
    'number',
  )

/** The same, for rows that are listed or deleted: `saveLastKnown` keeps it, in the transaction that lists them. */
export const nextKnownMs = (connection: DuckDBConnection, nowMs: number): Promise<number> =>
  queryValue(connection, `SELECT ${nextSql(nowMs)}::DOUBLE FROM state_position`, 'number')

/** The last one that a row of the lake has, where the state is lost; 0 without any. */
export async function findLastKnownMs(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  nowMs: number,
): Promise<number> {
  let lastMs = 0
  for (const table of LAKE_TABLES.filter(({ origin }) => origin !== undefined)) {
    const ms = await reader.read(connection, {
      ...{ table, nowMs, isNeeded: () => true },
      work: (files) => {
        const sql = `SELECT coalesce(epoch_ms(max(known_at)), 0)::DOUBLE FROM (${selectAllRows(table, files)})`
        return queryValue(connection, sql, 'number')
      },
    })
    lastMs = Math.max(lastMs, ms)
  }
  return lastMs
}

export const saveLastKnown = (connection: DuckDBConnection, ms: number) =>
  connection.run(`UPDATE state_position SET last_known_ms = greatest(${LAST_SQL}, ${ms})`)
