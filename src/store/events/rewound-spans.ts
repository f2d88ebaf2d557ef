// Market time that passed twice: by a clock that was ahead, and again once an operator had set it right. Bars that the wrong clock
// closed stay in the lake, and those that come later of the same token and interval count as repeated: prices of that time are unknown.

import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import { queryRows, queryValue, runAll } from '../duckdb/query.ts'
import { type DataFile, utcDate } from '../lake/lake-files.ts'
import { type ReadableFile, selectAllRows } from '../lake/parquet-sql.ts'
import { EVENT_TABLE_NAMES, type EventTableName } from './event-retention.ts'

/** Its beginning and end, market time in Unix ms. */
export interface RewoundSpan {
  fromMs: number
  toMs: number
}

/** A recorded event of kind `rewind`: market time went back from the end of its span to the beginning. */
export interface Rewind extends RewoundSpan {
  eventNo: number
}

/** Whether a file may have events of a span, which are filed by the market time at which they were applied. */
export const mayHaveEventsOf = ({ fromMs, toMs }: RewoundSpan, { date }: DataFile): boolean =>
  utcDate(fromMs) <= date && date <= utcDate(toMs)

/**
 * The part of a rewind's span in which anything was recorded before it: a clock that was days ahead at a start has passed over most of
 * them. @param files that may have events of the span @returns null: nothing was recorded in it
 */
export async function findRewoundSpan(
  connection: DuckDBConnection,
  { eventNo, fromMs, toMs }: Rewind,
  files: Readonly<Record<EventTableName, readonly ReadableFile[]>>,
): Promise<RewoundSpan | null> {
  const rows = EVENT_TABLE_NAMES.map(
    (name) => `SELECT event_no, "at" FROM (${selectAllRows(TABLES[name], files[name])})`,
  )
  const first = await queryValue(
    connection,
    `SELECT coalesce(epoch_ms(min("at")), ${toMs})::DOUBLE FROM (${rows.join(' UNION ALL ')})
     WHERE event_no < ${eventNo} AND "at" >= epoch_ms(${fromMs})`,
    'number',
  )
  return first < toMs ? { fromMs: first, toMs } : null
}

/** All of them, oldest first. @param table of the state, or a catalog's copy of it */
export const listRewoundSpans = (
  connection: DuckDBConnection,
  table = 'rewound_spans',
): Promise<RewoundSpan[]> =>
  queryRows(
    connection,
    `SELECT epoch_ms(first_at)::DOUBLE AS "fromMs", epoch_ms(last_at)::DOUBLE AS "toMs" FROM ${table} ORDER BY first_at`,
    { fromMs: 'number', toMs: 'number' },
  )

/** SQL that adds spans to a table; nothing where there are none. */
export function insertRewoundSql(table: string, spans: readonly RewoundSpan[]): string[] {
  const rows = spans.map(({ fromMs, toMs }) => `(epoch_ms(${fromMs}), epoch_ms(${toMs}))`)
  return rows.length === 0 ? [] : [`INSERT INTO ${table} VALUES ${rows.join(', ')}`]
}

export const insertRewoundSpans = (
  connection: DuckDBConnection,
  spans: readonly RewoundSpan[],
): Promise<void> => runAll(connection, insertRewoundSql('rewound_spans', spans))
