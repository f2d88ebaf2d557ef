// In: a table whose rows wait for the lake. Out: which of them the next round of a flush writes: a bounded number, and the
// rows of one commit all or none, so that whoever has read up to a `known_at` has read every row of it. Never writes one.
import type { DuckDBConnection } from '@duckdb/node-api'
import { KNOWN_AT } from './cells.ts'
import { query } from './database.ts'
import type { SeqRange } from './lake-files.ts'
import { FLUSH_ROWS_MAX } from './limits.ts'
import { LAKE_TABLES, type LakeTable, literal, ROW_SEQ, relation } from './sql.ts'

/** Rows beyond `ackedSeq` may yet be taken back, where a caller waits for them; the others are there to stay. */
export const lastOf = ({ origin }: LakeTable, ackedSeq: number): number =>
  origin === undefined ? ackedSeq : Number.MAX_SAFE_INTEGER
export const inRange = ({ first, last }: SeqRange): string => `${ROW_SEQ} BETWEEN ${first} AND ${last}`

/** The last row of the commit that `range.first` is of. */
async function endOfCommit(connection: DuckDBConnection, table: LakeTable, range: SeqRange): Promise<number> {
  const rows = await query<{ last: number }>(
    connection,
    `SELECT max(${ROW_SEQ})::DOUBLE AS last FROM ${relation(table)} WHERE ${inRange(range)}
     AND ${KNOWN_AT} = (SELECT ${KNOWN_AT} FROM ${relation(table)} WHERE ${ROW_SEQ} = ${range.first})`,
  )
  return rows[0].last
}

/** Rows of each table that wait for the lake, from the row numbers `firsts` on. One statement for all. */
export async function waitingRows(
  connection: DuckDBConnection,
  firsts: ReadonlyMap<string, number>,
  ackedSeq: number,
): Promise<Map<string, number>> {
  const counts = LAKE_TABLES.map((table) => {
    const waiting = { first: firsts.get(table.name) ?? 1, last: lastOf(table, ackedSeq) }
    return `SELECT ${literal(table.name)} AS name, count(*)::DOUBLE AS rows FROM ${relation(table)} WHERE ${inRange(waiting)}`
  })
  const found = await query<{ name: string; rows: number }>(connection, counts.join(' UNION ALL '))
  return new Map(found.map(({ name, rows }) => [name, rows]))
}

/** The range that the next round writes, some `rowsMax` rows from `first` on; null when the lake has everything. */
export async function planRange(
  connection: DuckDBConnection,
  table: LakeTable,
  first: number,
  ackedSeq: number,
  rowsMax = FLUSH_ROWS_MAX,
): Promise<SeqRange | null> {
  const waiting = { first, last: lastOf(table, ackedSeq) }
  const [found] = await query<{ last: number | null; rows: number }>(
    connection,
    `SELECT max(${ROW_SEQ})::DOUBLE AS last, count(*)::DOUBLE AS rows FROM (SELECT ${ROW_SEQ} FROM ${relation(table)}
     WHERE ${inRange(waiting)} ORDER BY ${ROW_SEQ} LIMIT ${rowsMax})`,
  )
  if (found.last === null) return null
  const isCut = found.rows === rowsMax && table.columns.some(({ name }) => name === KNOWN_AT)
  if (!isCut) return { first, last: found.last }
  return { first, last: await endOfCommit(connection, table, { first: found.last, last: waiting.last }) }
}
