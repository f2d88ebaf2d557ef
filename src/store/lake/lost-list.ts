// The list of the lake's files where state.duckdb, which has it, is lost or behind. The catalog has a copy that is as new: a flush
// ends, and its log may go, only after the catalog was written.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { isFullError, isReadOnlyError, transaction } from '../duckdb/database.ts'
import { LAKE_TABLES, type LakeTable, literal, MANIFEST, REMOVALS } from '../duckdb/sql.ts'
import {
  insertIncompleteBars,
  insertKnownLosses,
  insertLostEvents,
  listLostEvents,
  saveEventPosition,
} from '../events/event-position.ts'
import { isEventTable, loadRetainedFrom } from '../events/event-retention.ts'
import { insertRewoundSpans } from '../events/rewound-spans.ts'
import { CATALOG_FILE, type CatalogContent, filesOf, withCatalogCopy } from './catalog.ts'
import { readContent } from './catalog-reader.ts'
import { isResourceError } from './file-check.ts'
import type { SeqRange } from './lake-files.ts'
import { eventsFromFiles } from './locate-files.ts'
import {
  insertFiles,
  insertQuarantined,
  type ListedFile,
  listAllLiveFiles,
  listQuarantinedFiles,
} from './manifest.ts'

/** What the catalog of a lake lists; null: there is none, or it cannot be read. To be called by the lake's one writer. */
export async function readCatalog(lakeDir: string): Promise<CatalogContent | null> {
  if (!existsSync(join(lakeDir, CATALOG_FILE))) return null
  try {
    return await withCatalogCopy(lakeDir, (connection) => readContent(connection, 'listed'))
  } catch (error) {
    if (isResourceError(error) || isFullError(error) || isReadOnlyError(error)) throw error
    return null
  }
}

/** Makes the list of a new state database that of a catalog, with what else is only there. */
export async function importList(connection: DuckDBConnection, content: CatalogContent): Promise<void> {
  const { quarantined, recorded, flushedLsn } = content
  const files = filesOf(content)
  const lastEventNo = Math.max(
    recorded.eventsFrom - 1,
    ...[...files, ...quarantined].filter(({ table }) => isEventTable(table)).map(({ last }) => last),
    ...recorded.lost.map(({ to }) => to),
  )
  await transaction(connection, async () => {
    // A start that was cut off may have begun.
    for (const table of [MANIFEST, REMOVALS, 'events_lost', 'incomplete_bars', 'rewound_spans'])
      await connection.run(`DELETE FROM ${table}`)
    await insertFiles(connection, files, 0)
    await insertQuarantined(connection, quarantined)
    await insertKnownLosses(connection, recorded.lost)
    await insertIncompleteBars(connection, recorded.incompleteBars)
    await insertRewoundSpans(connection, recorded.rewound)
    await saveEventPosition(connection, { eventNo: lastEventNo, isSimulated: null })
    await noteRemoved(connection, 'events', recorded.eventsFrom - 1)
    await connection.run(`UPDATE state_position SET lsn = ${flushedLsn}`)
  })
}

/** Notes that row numbers up to this one have left the lake: nobody knows when, and how many rows. */
async function noteRemoved(connection: DuckDBConnection, table: string, lastSeq: number): Promise<void> {
  if (lastSeq <= 0) return
  await connection.run(
    `INSERT INTO ${REMOVALS} VALUES (${literal(table)}, DATE '1970-01-01', 0, ${lastSeq}, epoch_ms(0))`,
  )
}

/** The ranges between these from `first` on, oldest first. */
function findGaps(ranges: readonly SeqRange[], first: number): SeqRange[] {
  const gaps: SeqRange[] = []
  let covered = first - 1
  for (const range of ranges.toSorted((a, b) => a.first - b.first)) {
    if (range.first > covered + 1) gaps.push({ first: covered + 1, last: range.first - 1 })
    covered = Math.max(covered, range.last)
  }
  return gaps
}

/**
 * Completes a list that was made anew: row numbers that no file has were in files that have expired, or that are lost. Called in a
 * transaction.
 */
export async function noteGaps(connection: DuckDBConnection, nowMs: number): Promise<void> {
  const files: ListedFile[] = [
    ...(await listAllLiveFiles(connection)),
    ...(await listQuarantinedFiles(connection)),
  ]
  const isNumbered = ({ origin }: LakeTable): boolean => origin === 'market' || origin === 'store'
  for (const { name } of LAKE_TABLES.filter(isNumbered)) {
    const gaps = findGaps(
      files.filter(({ table }) => table === name),
      1,
    )
    await noteRemoved(connection, name, gaps.at(-1)?.last ?? 0)
  }
  const ofEvents = files.filter(({ table }) => isEventTable(table))
  const from = Math.max(await loadRetainedFrom(connection), eventsFromFiles(ofEvents))
  await noteRemoved(connection, 'events', from - 1)
  const known = (await listLostEvents(connection)).map((each) => ({ first: each.from, last: each.to }))
  const lost = findGaps([...ofEvents, ...known], from).map(({ first, last }) => ({
    from: first,
    to: last,
    reason: 'no file of the lake has them',
  }))
  await insertLostEvents(connection, lost, nowMs)
}
