// Market time that passed twice: by a clock that was ahead, and again once an operator had set it right. Bars that the wrong clock
// closed stay in the lake, and those that come later of the same token and interval count as repeated: prices of that time are unknown.

import type { DuckDBConnection } from '@duckdb/node-api'
import type { RewoundSpan } from '../../schema/event.ts'
import { queryRows, runAll } from '../duckdb/query.ts'
import { insertIncompleteBars } from './event-position.ts'
import { findRewoundIntervals } from './late-gaps.ts'

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

/** SQL that adds spans to a table, each once; nothing where there are none. */
export function insertRewoundSql(table: string, spans: readonly RewoundSpan[]): string[] {
  const rows = spans.map(({ fromMs, toMs }) => `(epoch_ms(${fromMs}), epoch_ms(${toMs}))`)
  if (rows.length === 0) return []
  return [
    `INSERT INTO ${table} SELECT DISTINCT * FROM (VALUES ${rows.join(', ')}) AS added(first_at, last_at)
     ANTI JOIN ${table} USING (first_at, last_at)`,
  ]
}

export const insertRewoundSpans = (
  connection: DuckDBConnection,
  spans: readonly RewoundSpan[],
): Promise<void> => runAll(connection, insertRewoundSql('rewound_spans', spans))

/**
 * Market time went back. The same may be told again: by a server that applies its events once more, or to another lake process. Where
 * it went back by so little that no bar can have closed, each bar has what happened in it: labels are made as ever.
 */
export async function noteRewound(
  connection: DuckDBConnection,
  spans: readonly RewoundSpan[],
): Promise<void> {
  const closing = spans.filter((span) => findRewoundIntervals(span).length > 0)
  await insertIncompleteBars(connection, closing.flatMap(findRewoundIntervals))
  await insertRewoundSpans(connection, closing)
}
