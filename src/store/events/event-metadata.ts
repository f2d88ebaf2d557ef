// What readers of the lake must know of recorded events besides their rows. The state database has it, and each catalog a copy.
import type { DuckDBConnection } from '@duckdb/node-api'
import { hasTable, queryOne, queryRows } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { type KnownLoss, listIncompleteBars, listLostEvents } from './event-position.ts'
import { loadRetainedFrom } from './event-retention.ts'
import type { BarInterval } from './late-gaps.ts'

export interface EventMetadata {
  /** Every event from this number on has stayed in the lake. */
  eventsFrom: number
  /** Events that are lost, oldest first. */
  lost: readonly KnownLoss[]
  /** Intervals of bars that were written before it was known that a gap touches them. */
  incompleteBars: readonly BarInterval[]
}

/** Of a lake of which nothing is known. */
export const NO_EVENT_METADATA: EventMetadata = { eventsFrom: 1, lost: [], incompleteBars: [] }

/** The metadata of the state database. That of an older version, in a backup, has none. */
export async function loadEventMetadata(connection: DuckDBConnection): Promise<EventMetadata> {
  if (!(await hasTable(connection, 'current_database()', 'incomplete_bars'))) return NO_EVENT_METADATA
  return {
    eventsFrom: await loadRetainedFrom(connection),
    lost: await listLostEvents(connection),
    incompleteBars: await listIncompleteBars(connection),
  }
}

const sqlTime = (ms: number | null): string => (ms === null ? 'NULL' : `epoch_ms(${ms})`)

/** SQL that creates the tables of a catalog. */
export function createEventMetadataSql({ eventsFrom, lost, incompleteBars }: EventMetadata): string[] {
  const lostRows = lost.map(
    ({ from, to, reason, foundAtMs, acknowledgedAtMs }) =>
      `(${from}, ${to}, ${literal(reason)}, ${sqlTime(foundAtMs)}, ${sqlTime(acknowledgedAtMs)})`,
  )
  const barRows = incompleteBars.map(({ tf, tMs }) => `(${literal(tf)}, epoch_ms(${tMs}))`)
  return [
    `CREATE TABLE lake_events AS SELECT ${eventsFrom}::BIGINT AS retained_from`,
    `CREATE TABLE lake_events_lost (first BIGINT, last BIGINT, reason VARCHAR, found_at TIMESTAMP, settled_at TIMESTAMP)`,
    ...(lostRows.length > 0 ? [`INSERT INTO lake_events_lost VALUES ${lostRows.join(', ')}`] : []),
    'CREATE TABLE lake_incomplete_bars (tf VARCHAR, t TIMESTAMP)',
    ...(barRows.length > 0 ? [`INSERT INTO lake_incomplete_bars VALUES ${barRows.join(', ')}`] : []),
  ]
}

/** The metadata of an attached catalog. Those of older versions have none. */
export async function readEventMetadata(
  connection: DuckDBConnection,
  catalog: string,
): Promise<EventMetadata> {
  for (const table of ['lake_events', 'lake_events_lost', 'lake_incomplete_bars'])
    if (!(await hasTable(connection, literal(catalog), table))) return NO_EVENT_METADATA
  const { eventsFrom } = await queryOne(
    connection,
    `SELECT retained_from::DOUBLE AS "eventsFrom" FROM ${catalog}.main.lake_events`,
    { eventsFrom: 'number' },
  )
  const lost = await queryRows(
    connection,
    `SELECT first::DOUBLE AS "from", last::DOUBLE AS "to", reason, epoch_ms(found_at)::DOUBLE AS "foundAtMs",
       epoch_ms(settled_at)::DOUBLE AS "acknowledgedAtMs" FROM ${catalog}.main.lake_events_lost ORDER BY first`,
    { from: 'number', to: 'number', reason: 'string', foundAtMs: 'number', acknowledgedAtMs: 'number?' },
  )
  const incompleteBars = await queryRows(
    connection,
    `SELECT tf, epoch_ms(t)::DOUBLE AS "tMs" FROM ${catalog}.main.lake_incomplete_bars ORDER BY t, tf`,
    { tf: 'string', tMs: 'number' },
  )
  return { eventsFrom, lost, incompleteBars }
}
