// What readers of the lake must know of recorded events besides their rows. The state database has it, and each catalog a copy.
import type { DuckDBConnection } from '@duckdb/node-api'
import type { RewoundSpan } from '../../schema/event.ts'
import { hasTable, queryValue } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import {
  insertIntervalsSql,
  insertLostSql,
  type KnownLoss,
  listIncompleteBars,
  listLostEvents,
} from './event-position.ts'
import { loadRetainedFrom } from './event-retention.ts'
import type { BarInterval } from './late-gaps.ts'
import { insertRewoundSql, listRewoundSpans } from './rewound-spans.ts'

export interface EventMetadata {
  /** Every event from this number on has stayed in the lake. */
  eventsFrom: number
  /** Events that are lost, oldest first. */
  lost: readonly KnownLoss[]
  /** Intervals of bars that were written before it was known that a gap touches them. */
  incompleteBars: readonly BarInterval[]
  /** Market time whose prices are unknown. */
  rewound: readonly RewoundSpan[]
}

/** Of a lake of which nothing is known. */
export const NO_EVENT_METADATA: EventMetadata = { eventsFrom: 1, lost: [], incompleteBars: [], rewound: [] }

/** The metadata of the state database. That of an older version, in a backup, has none. */
export async function loadEventMetadata(connection: DuckDBConnection): Promise<EventMetadata> {
  if (!(await hasTable(connection, 'current_database()', 'incomplete_bars'))) return NO_EVENT_METADATA
  return {
    eventsFrom: await loadRetainedFrom(connection),
    lost: await listLostEvents(connection),
    incompleteBars: await listIncompleteBars(connection),
    rewound: (await hasTable(connection, 'current_database()', 'rewound_spans'))
      ? await listRewoundSpans(connection)
      : [],
  }
}

/** SQL that creates the tables of a catalog. */
export function createEventMetadataSql({
  eventsFrom,
  lost,
  incompleteBars,
  rewound,
}: EventMetadata): string[] {
  return [
    `CREATE TABLE lake_events AS SELECT ${eventsFrom}::BIGINT AS retained_from`,
    `CREATE TABLE lake_events_lost (first BIGINT, last BIGINT, reason VARCHAR, found_at TIMESTAMP, settled_at TIMESTAMP)`,
    ...insertLostSql('lake_events_lost', lost),
    'CREATE TABLE lake_incomplete_bars (tf VARCHAR, t TIMESTAMP)',
    ...insertIntervalsSql('lake_incomplete_bars', incompleteBars),
    'CREATE TABLE lake_rewound_spans (first_at TIMESTAMP, last_at TIMESTAMP)',
    ...insertRewoundSql('lake_rewound_spans', rewound),
  ]
}

/** The metadata of an attached catalog. Those of older versions have none. */
export async function readEventMetadata(
  connection: DuckDBConnection,
  catalog: string,
): Promise<EventMetadata> {
  for (const table of ['lake_events', 'lake_events_lost', 'lake_incomplete_bars'])
    if (!(await hasTable(connection, literal(catalog), table))) return NO_EVENT_METADATA
  const sql = `SELECT retained_from::DOUBLE FROM ${catalog}.main.lake_events`
  return {
    eventsFrom: await queryValue(connection, sql, 'number'),
    lost: await listLostEvents(connection, `${catalog}.main.lake_events_lost`),
    incompleteBars: await listIncompleteBars(connection, `${catalog}.main.lake_incomplete_bars`),
    rewound: (await hasTable(connection, literal(catalog), 'lake_rewound_spans'))
      ? await listRewoundSpans(connection, `${catalog}.main.lake_rewound_spans`)
      : [],
  }
}
