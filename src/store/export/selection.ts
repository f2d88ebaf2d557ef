// Which rows of a lake table an export has, as SQL. A page is all rows between two cursors in order of `known_at`: it can be
// written in any order, and a client that continues from its end misses no row and gets none twice.
import type { DuckDBConnection } from '@duckdb/node-api'
import { LABELLED } from '../../schema/tables/labelled.ts'
import type { Column, TableName } from '../../schema/tables.ts'
import { queryOne, queryValue } from '../duckdb/query.ts'
import { findLakeTable, identifier, LAKE_TABLES, literal } from '../duckdb/sql.ts'
import { invalid } from '../errors.ts'
import { EXPORT_CURSOR_CHARACTERS_MAX } from '../limits.ts'

/** A position in the order of `known_at` and ID. */
export interface ExportCursor {
  knownAtMs: number
  /** ID of the last row of that moment before the position; empty: before all of them. */
  id: string
}

/** A table of the lake, or the view `labelled`. */
export type RelationName = TableName | typeof LABELLED.name

export interface Selection {
  table: RelationName
  /** Of the table's date column, Unix ms: inclusive and exclusive; null: open. */
  fromMs: number | null
  toMs: number | null
  after?: ExportCursor | null
  upTo?: ExportCursor | null
}

/** A page of a selection: its rows up to `next`. */
export interface ExportPage {
  rows: number
  /** Whether the lake has more rows after it now. */
  more: boolean
  next: ExportCursor
}

export const RELATION_NAMES: readonly RelationName[] = [...LAKE_TABLES.map(({ name }) => name), LABELLED.name]

const CURSOR = /^(\d{1,15})(?:\.([\w-]{1,64}))?$/
export const START: ExportCursor = { knownAtMs: 0, id: '' }

/** The text of a cursor, as clients send it. */
export const formatCursor = ({ knownAtMs, id }: ExportCursor): string =>
  id === '' ? `${knownAtMs}` : `${knownAtMs}.${id}`

/** Parses a client's cursor: from an earlier response, or a time in Unix ms. Null: it is neither. */
export function parseCursor(sent: string): ExportCursor | null {
  const match = sent.length > EXPORT_CURSOR_CHARACTERS_MAX ? null : CURSOR.exec(sent)
  return match === null ? null : { knownAtMs: Number(match[1]), id: match[2] ?? '' }
}

/** What a selection reads. @throws StoreError `invalid` where the lake has nothing of that name */
export function relationOf(name: RelationName): { lakeDateColumn: string; columns: readonly Column[] } {
  const relation = name === LABELLED.name ? LABELLED : findLakeTable(name)
  if (relation !== undefined) return relation
  throw invalid(`the lake has no table ${name}`)
}
const idColumn = (name: RelationName): string => identifier(relationOf(name).columns[0].name)

/** Conditions for rows after a cursor, or up to it. The bound on `known_at` alone lets DuckDB skip row groups. */
function cursorConditions(table: RelationName, { knownAtMs, id }: ExportCursor, isAfter: boolean): string[] {
  const moment = `epoch_ms(${knownAtMs})`
  const column = idColumn(table)
  return isAfter
    ? [`known_at >= ${moment}`, `(known_at > ${moment} OR ${column} > ${literal(id)})`]
    : [`known_at <= ${moment}`, `(known_at < ${moment} OR ${column} <= ${literal(id)})`]
}

function whereClause({ table, fromMs, toMs, after, upTo }: Selection): string {
  const date = identifier(relationOf(table).lakeDateColumn)
  const all = [
    ...(fromMs === null ? [] : [`${date} >= epoch_ms(${fromMs})`]),
    ...(toMs === null ? [] : [`${date} < epoch_ms(${toMs})`]),
    ...(after ? cursorConditions(table, after, true) : []),
    ...(upTo ? cursorConditions(table, upTo, false) : []),
  ]
  return all.length === 0 ? '' : ` WHERE ${all.join(' AND ')}`
}

/** SELECT of all columns of the rows, in no particular order. */
export const selectSql = (selection: Selection): string =>
  `SELECT * FROM lake.${identifier(selection.table)}${whereClause(selection)}`

/** Counts the rows of a selection. */
export async function countRows(connection: DuckDBConnection, selection: Selection): Promise<number> {
  const sql = `SELECT count(*)::DOUBLE AS rows FROM lake.${identifier(selection.table)}${whereClause(selection)}`
  return queryValue(connection, sql, 'number')
}

/** Finds the first `rowsMax` rows of a selection in order of `known_at` and ID. The table must have both. */
export async function planPage(
  connection: DuckDBConnection,
  selection: Selection,
  rowsMax: number,
): Promise<ExportPage> {
  const id = idColumn(selection.table)
  const { rows, ms, lastId } = await queryOne(
    connection,
    `SELECT count(*)::DOUBLE AS rows, max_by(ms, place) FILTER (WHERE place <= ${rowsMax})::DOUBLE AS ms,
       max_by(id, place) FILTER (WHERE place <= ${rowsMax}) AS "lastId"
     FROM (SELECT epoch_ms(known_at) AS ms, id, row_number() OVER (ORDER BY known_at, id) AS place
       FROM (SELECT known_at, ${id} AS id FROM lake.${identifier(selection.table)}${whereClause(selection)}
         ORDER BY known_at, id LIMIT ${rowsMax + 1}))`,
    { rows: 'number', ms: 'number?', lastId: 'string?' },
  )
  return {
    rows: Math.min(rows, rowsMax),
    more: rows > rowsMax,
    next: ms === null || lastId === null ? (selection.after ?? START) : { knownAtMs: ms, id: lastId },
  }
}
