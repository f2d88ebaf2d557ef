// In: which rows of a lake table are wanted, in words. Out: SQL for them, and how far a page of them reaches. A page is all
// rows after one place and up to another, in order of `known_at`, so that it can be written in any order, and whoever goes
// on from its end misses nothing and gets nothing twice. Never writes a row.

import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES, type TableName } from '../../schema/tables.ts'
import { query } from '../duckdb/query.ts'
import { identifier, LAKE_TABLES, type LakeTable, lakeTableOf, literal } from '../duckdb/sql.ts'
import { StoreError } from '../errors.ts'
import { EXPORT_CURSOR_CHARACTERS_MAX } from '../limits.ts'

/** A row's place in the order in which rows became known. */
export interface ExportCursor {
  knownAtMs: number
  /** Identity of the last row known at that moment that is before the place; empty: none is. */
  id: string
}

export interface Selection {
  table: TableName
  /** Of the table's date column, Unix ms: inclusive and exclusive; null: open. */
  fromMs: number | null
  toMs: number | null
  after?: ExportCursor | null
  upTo?: ExportCursor | null
}

/** A page: its rows are those of the selection up to `next`. */
export interface ExportPage {
  rows: number
  /** Whether the lake has more rows after it now. */
  more: boolean
  next: ExportCursor
}

export const LAKE_TABLE_NAMES = LAKE_TABLES.map(({ name }) => name) as TableName[]

const PLACE = /^(\d{1,15})(?:\.([\w-]{1,64}))?$/
export const START: ExportCursor = { knownAtMs: 0, id: '' }

/** A place as clients send it back. */
export const cursorText = ({ knownAtMs, id }: ExportCursor): string =>
  id === '' ? `${knownAtMs}` : `${knownAtMs}.${id}`

/** The place that a client sent: where an earlier answer ended, or a moment in Unix ms: from then on. Null: neither. */
export function cursorOf(sent: string): ExportCursor | null {
  const match = sent.length > EXPORT_CURSOR_CHARACTERS_MAX ? null : PLACE.exec(sent)
  return match === null ? null : { knownAtMs: Number(match[1]), id: match[2] ?? '' }
}

const lakeTable = (name: TableName): LakeTable => {
  const table = lakeTableOf(name)
  if (table !== undefined) return table
  throw new StoreError('invalid', `the lake has no table ${name}`)
}
const identityOf = (name: TableName): string => identifier(TABLES[name].columns[0].name)

/** After the place, or up to it. The plain bound on `known_at` stands alone, so that it reaches the Parquet. */
function bound(table: TableName, { knownAtMs, id }: ExportCursor, isAfter: boolean): string[] {
  const moment = `epoch_ms(${knownAtMs})`
  const identity = identityOf(table)
  return isAfter
    ? [`known_at >= ${moment}`, `(known_at > ${moment} OR ${identity} > ${literal(id)})`]
    : [`known_at <= ${moment}`, `(known_at < ${moment} OR ${identity} <= ${literal(id)})`]
}

function conditions({ table, fromMs, toMs, after, upTo }: Selection): string {
  const date = identifier(lakeTable(table).lakeDateColumn)
  const all = [
    ...(fromMs === null ? [] : [`${date} >= epoch_ms(${fromMs})`]),
    ...(toMs === null ? [] : [`${date} < epoch_ms(${toMs})`]),
    ...(after ? bound(table, after, true) : []),
    ...(upTo ? bound(table, upTo, false) : []),
  ]
  return all.length === 0 ? '' : ` WHERE ${all.join(' AND ')}`
}

/** Every column of the rows, in the table's order, the rows in no order. */
export const selectSql = (selection: Selection): string =>
  `SELECT * FROM lake.${identifier(selection.table)}${conditions(selection)}`

/** How many rows there are. */
export async function countRows(connection: DuckDBConnection, selection: Selection): Promise<number> {
  const sql = `SELECT count(*)::DOUBLE AS rows FROM lake.${identifier(selection.table)}${conditions(selection)}`
  return (await query<{ rows: number }>(connection, sql))[0].rows
}

/** The first `rowsMax` rows of a selection in order of `known_at`, of a table whose rows have it and an identity. */
export async function planPage(
  connection: DuckDBConnection,
  selection: Selection,
  rowsMax: number,
): Promise<ExportPage> {
  const identity = identityOf(selection.table)
  const [found] = await query<{ rows: number; ms: number | null; id: string | null }>(
    connection,
    `SELECT count(*)::DOUBLE AS rows, max_by(ms, place) FILTER (WHERE place <= ${rowsMax})::DOUBLE AS ms,
       max_by(id, place) FILTER (WHERE place <= ${rowsMax}) AS id
     FROM (SELECT epoch_ms(known_at) AS ms, id, row_number() OVER (ORDER BY known_at, id) AS place
       FROM (SELECT known_at, ${identity} AS id FROM lake.${identifier(selection.table)}${conditions(selection)}
         ORDER BY known_at, id LIMIT ${rowsMax + 1}))`,
  )
  const isEmpty = found.ms === null || found.id === null
  return {
    rows: Math.min(found.rows, rowsMax),
    more: found.rows > rowsMax,
    next: isEmpty ? (selection.after ?? START) : { knownAtMs: found.ms!, id: found.id! },
  }
}
