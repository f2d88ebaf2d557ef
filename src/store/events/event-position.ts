// What state.duckdb keeps of recorded events: the last one in the lake, those that are lost, and the intervals whose bars were
// written before a gap was known.

import type { DuckDBConnection } from '@duckdb/node-api'
import type { NumberRange } from '../../lib/segments/types.ts'
import { queryOne, queryRows, queryValue, runAll } from '../duckdb/query.ts'
import { literal, timeOrNull } from '../duckdb/sql.ts'
import { listAllLiveFiles } from '../lake/manifest.ts'
import { isEventTable } from './event-retention.ts'
import type { BarInterval } from './late-gaps.ts'

/** Events that neither the journal nor the lake has. */
export interface LostEvents extends NumberRange {
  reason: string
}

/** The same, as noted. */
export interface KnownLoss extends LostEvents {
  foundAtMs: number
  /** When `lake repair` acknowledged the loss; null: not yet. */
  acknowledgedAtMs: number | null
}

export interface EventPosition {
  /** The last event that is in the lake; 0: none. */
  eventNo: number
  /** Whether the market was simulated in the run of that event; null: not known. */
  isSimulated: boolean | null
}

export function loadEventPosition(connection: DuckDBConnection): Promise<EventPosition> {
  const sql = 'SELECT event_no::DOUBLE AS "eventNo", event_simulated AS "isSimulated" FROM state_position'
  return queryOne(connection, sql, { eventNo: 'number', isSimulated: 'boolean?' })
}

/** The position by the lake's files, where it is lost. */
export async function findEventPosition(connection: DuckDBConnection): Promise<EventPosition> {
  const files = (await listAllLiveFiles(connection)).filter(({ table }) => isEventTable(table))
  return { eventNo: Math.max(0, ...files.map(({ last }) => last)), isSimulated: null }
}

/** Called in the transaction that lists the events' files. */
export const saveEventPosition = (connection: DuckDBConnection, { eventNo, isSimulated }: EventPosition) =>
  connection.run(
    `UPDATE state_position SET event_no = ${eventNo}, event_simulated = ${isSimulated ?? 'NULL'}`,
  )

/** All lost events, oldest first. @param table of the state, or a catalog's copy of it */
export const listLostEvents = (connection: DuckDBConnection, table = 'events_lost'): Promise<KnownLoss[]> =>
  queryRows(
    connection,
    `SELECT first::DOUBLE AS "from", last::DOUBLE AS "to", reason, epoch_ms(found_at)::DOUBLE AS "foundAtMs",
       epoch_ms(settled_at)::DOUBLE AS "acknowledgedAtMs" FROM ${table} ORDER BY first`,
    { from: 'number', to: 'number', reason: 'string', foundAtMs: 'number', acknowledgedAtMs: 'number?' },
  )

/** SQL that adds lost events to a table, with what is known of when they were found and acknowledged; nothing where there are none. */
export function insertLostSql(table: string, lost: readonly KnownLoss[]): string[] {
  const rows = lost.map(
    ({ from, to, reason, foundAtMs, acknowledgedAtMs }) =>
      `(${from}, ${to}, ${literal(reason)}, epoch_ms(${foundAtMs}), ${timeOrNull(acknowledgedAtMs)})`,
  )
  return rows.length === 0 ? [] : [`INSERT INTO ${table} VALUES ${rows.join(', ')}`]
}

/** How many events are lost without an operator having acknowledged it. */
export async function countLostEvents(connection: DuckDBConnection): Promise<number> {
  const sql =
    'SELECT coalesce(sum(last - first + 1), 0)::DOUBLE AS lost FROM events_lost WHERE settled_at IS NULL'
  return queryValue(connection, sql, 'number')
}

/** Records that an operator has acknowledged all losses so far. */
export const acknowledgeLostEvents = (connection: DuckDBConnection, nowMs: number) =>
  connection.run(`UPDATE events_lost SET settled_at = epoch_ms(${nowMs}) WHERE settled_at IS NULL`)

export const insertLostEvents = (
  connection: DuckDBConnection,
  lost: readonly LostEvents[],
  nowMs: number,
): Promise<void> =>
  insertKnownLosses(
    connection,
    lost.map((each) => ({ ...each, foundAtMs: nowMs, acknowledgedAtMs: null })),
  )

export const insertKnownLosses = (connection: DuckDBConnection, lost: readonly KnownLoss[]): Promise<void> =>
  runAll(connection, insertLostSql('events_lost', lost))

/** Intervals whose bars may have been written as complete although they are not, oldest first. @param table as of lost events */
export const listIncompleteBars = (
  connection: DuckDBConnection,
  table = 'incomplete_bars',
): Promise<BarInterval[]> =>
  queryRows(connection, `SELECT tf, epoch_ms(t)::DOUBLE AS "tMs" FROM ${table} ORDER BY t, tf`, {
    tf: 'string',
    tMs: 'number',
  })

/** SQL that adds intervals to a table, each once; nothing where there are none. */
export function insertIntervalsSql(table: string, intervals: readonly BarInterval[]): string[] {
  const rows = intervals.map(({ tf, tMs }) => `(${literal(tf)}, epoch_ms(${tMs}))`)
  if (rows.length === 0) return []
  return [
    `INSERT INTO ${table} SELECT DISTINCT * FROM (VALUES ${rows.join(', ')}) AS added(tf, t) ANTI JOIN ${table} USING (tf, t)`,
  ]
}

export const insertIncompleteBars = (
  connection: DuckDBConnection,
  intervals: readonly BarInterval[],
): Promise<void> => runAll(connection, insertIntervalsSql('incomplete_bars', intervals))
