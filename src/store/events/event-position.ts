// What state.duckdb keeps of recorded events: the last one in the lake, those that are lost, and the intervals whose bars were
// written before a gap was known.

import type { DuckDBConnection } from '@duckdb/node-api'
import type { NumberRange } from '../../lib/segments/types.ts'
import { queryOne, queryRows } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { listLiveFiles } from '../lake/manifest.ts'
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
  const files = [
    ...(await listLiveFiles(connection, 'trades')),
    ...(await listLiveFiles(connection, 'events')),
  ]
  return { eventNo: Math.max(0, ...files.map(({ last }) => last)), isSimulated: null }
}

/** Called in the transaction that lists the events' files. */
export const saveEventPosition = async (
  connection: DuckDBConnection,
  { eventNo, isSimulated }: EventPosition,
): Promise<void> =>
  void (await connection.run(
    `UPDATE state_position SET event_no = ${eventNo}, event_simulated = ${isSimulated ?? 'NULL'}`,
  ))

/** All lost events, oldest first. */
export const listLostEvents = (connection: DuckDBConnection): Promise<KnownLoss[]> =>
  queryRows(
    connection,
    `SELECT first::DOUBLE AS "from", last::DOUBLE AS "to", reason, epoch_ms(found_at)::DOUBLE AS "foundAtMs",
       epoch_ms(settled_at)::DOUBLE AS "acknowledgedAtMs" FROM events_lost ORDER BY first`,
    { from: 'number', to: 'number', reason: 'string', foundAtMs: 'number', acknowledgedAtMs: 'number?' },
  )

/** How many events are lost without an operator having acknowledged it. */
export async function countLostEvents(connection: DuckDBConnection): Promise<number> {
  const sql =
    'SELECT coalesce(sum(last - first + 1), 0)::DOUBLE AS lost FROM events_lost WHERE settled_at IS NULL'
  return (await queryOne(connection, sql, { lost: 'number' })).lost
}

/** Records that an operator has acknowledged all losses so far. */
export const acknowledgeLostEvents = async (connection: DuckDBConnection, nowMs: number): Promise<void> =>
  void (await connection.run(
    `UPDATE events_lost SET settled_at = epoch_ms(${nowMs}) WHERE settled_at IS NULL`,
  ))

export async function insertLostEvents(
  connection: DuckDBConnection,
  lost: readonly LostEvents[],
  nowMs: number,
): Promise<void> {
  const known = lost.map((each) => ({ ...each, foundAtMs: nowMs, acknowledgedAtMs: null }))
  await insertKnownLosses(connection, known)
}

/** Adds lost events with what is known of when they were found and acknowledged. */
export async function insertKnownLosses(
  connection: DuckDBConnection,
  lost: readonly KnownLoss[],
): Promise<void> {
  if (lost.length === 0) return
  const rows = lost.map(
    ({ from, to, reason, foundAtMs, acknowledgedAtMs }) =>
      `(${from}, ${to}, ${literal(reason)}, epoch_ms(${foundAtMs}), ${
        acknowledgedAtMs === null ? 'NULL' : `epoch_ms(${acknowledgedAtMs})`
      })`,
  )
  await connection.run(`INSERT INTO events_lost VALUES ${rows.join(', ')}`)
}

/** Intervals whose bars may have been written as complete although they are not, oldest first. */
export const listIncompleteBars = (connection: DuckDBConnection): Promise<BarInterval[]> =>
  queryRows(connection, 'SELECT tf, epoch_ms(t)::DOUBLE AS "tMs" FROM incomplete_bars ORDER BY t, tf', {
    tf: 'string',
    tMs: 'number',
  })

/** Adds intervals that are not there yet. @returns whether there were any */
export async function insertIncompleteBars(
  connection: DuckDBConnection,
  intervals: readonly BarInterval[],
): Promise<boolean> {
  if (intervals.length === 0) return false
  const rows = intervals.map(({ tf, tMs }) => `(${literal(tf)}, epoch_ms(${tMs}))`)
  const { Count: count } = await queryOne(
    connection,
    `INSERT INTO incomplete_bars SELECT DISTINCT * FROM (VALUES ${rows.join(', ')}) AS added(tf, t)
     ANTI JOIN incomplete_bars USING (tf, t)`,
    { Count: 'bigint' },
  )
  return count > 0n
}
