// In: for how many days each table stays in the lake. Out: older dates, whole, off the list of live files, and a note of
// what went: so a row number is never given out again, and a check knows why rows are missing. Never removes a file:
// that is done after the readers' grace, as for files that were merged.

import type { DuckDBConnection } from '@duckdb/node-api'
import { DAY_MS } from '../../lib/time.ts'
import type { TableName } from '../../schema/tables.ts'
import { transaction } from '../duckdb/database.ts'
import { query } from '../duckdb/query.ts'
import { identifier, LAKE_TABLES, literal, MANIFEST, REMOVALS } from '../duckdb/sql.ts'
import { utcDate } from './lake-files.ts'
import { type ListedPart, liveParts, pathsOf, retire, setAsideParts } from './manifest.ts'

/** Full days before today whose rows stay in the lake. A table that is not named stays for ever. */
export type RetainedDays = Partial<Record<TableName, number>>

/** The oldest UTC date that stays. */
export const firstRetainedDate = (days: number, nowMs: number): string => utcDate(nowMs - days * DAY_MS)

/** Files of dates that are over their table's time, those included that are set aside. */
export async function overdueParts(
  connection: DuckDBConnection,
  days: RetainedDays,
  nowMs: number,
): Promise<ListedPart[]> {
  const parts: ListedPart[] = []
  const aside = await setAsideParts(connection)
  for (const { name } of LAKE_TABLES) {
    const retained = days[name as TableName]
    if (retained === undefined) continue
    const first = firstRetainedDate(retained, nowMs)
    const all = [...(await liveParts(connection, name)), ...aside.filter(({ table }) => table === name)]
    parts.push(...all.filter(({ date }) => date < first))
  }
  return parts
}

const noteRemovals = (connection: DuckDBConnection, parts: readonly ListedPart[], nowMs: number) =>
  connection.run(
    `INSERT INTO ${REMOVALS}
     SELECT table_name, dt, sum(coalesce(rows_lost, row_count)), max(seq_last), epoch_ms(${nowMs})
     FROM ${MANIFEST} WHERE path IN (${pathsOf(parts)}) GROUP BY ALL`,
  )

/** Takes files of overdue dates off the list. */
export async function retireParts(
  connection: DuckDBConnection,
  parts: readonly ListedPart[],
  nowMs: number,
): Promise<void> {
  await transaction(connection, async () => {
    await noteRemovals(connection, parts, nowMs)
    await retire(connection, parts, nowMs)
  })
}

/** What has left the lake of a table, because its time was over. */
export interface Removed {
  rows: number
  /** The highest row number among them; 0: none left. */
  lastSeq: number
}

export async function removedOf(connection: DuckDBConnection, table: string): Promise<Removed> {
  const sql = `SELECT coalesce(sum(row_count), 0)::DOUBLE AS rows, coalesce(max(seq_last), 0)::DOUBLE AS "lastSeq"
    FROM ${REMOVALS} WHERE table_name = $table`
  return (await query<Removed>(connection, sql, { table }))[0]
}

/** SQL that holds of rows whose date, by the time in `column`, has not left the lake of `table`. */
export const isRetained = (table: string, column: string): string =>
  `CAST(${identifier(column)} AS DATE) NOT IN (SELECT dt FROM ${REMOVALS} WHERE table_name = ${literal(table)})`
