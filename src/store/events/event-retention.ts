// Which recorded events leave the lake: those beyond their days, and the oldest beyond their share of the disk. They leave file by
// file, oldest first and of both tables, so that what stays is a sequence without a beginning missing in one of them.
import { statfs } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES, type TableName } from '../../schema/tables.ts'
import { queryOne } from '../duckdb/query.ts'
import { literal, REMOVALS } from '../duckdb/sql.ts'
import { utcDate } from '../lake/lake-files.ts'
import { type ListedFile, listLiveFiles, listQuarantinedFiles } from '../lake/manifest.ts'
import { firstRetainedDate } from '../lake/retention.ts'

/** How long recorded events stay, and how much of the disk they may take: what is reached first counts. 0: no limit. */
export interface EventRetention {
  /** Full days before today on which they were written; their own times may be older, in a replay. */
  days: number
  bytesMax: number
  /** Percent of the disk that the lake is on. */
  diskPct: number
}

export const EVENT_TABLE_NAMES = [TABLES.trades.name, TABLES.events.name] as const satisfies TableName[]
export const isEventTable = (name: string): boolean => EVENT_TABLE_NAMES.some((each) => each === name)

/** The bytes that live files of recorded events may have together; infinite without a limit. */
export async function eventBytesMax({ bytesMax, diskPct }: EventRetention, lakeDir: string): Promise<number> {
  const limits = [Number.POSITIVE_INFINITY]
  if (bytesMax > 0) limits.push(bytesMax)
  if (diskPct > 0) {
    const { blocks, bsize } = await statfs(lakeDir)
    limits.push((blocks * bsize * diskPct) / 100)
  }
  return Math.min(...limits)
}

/**
 * Chooses the files that leave.
 * @param files live ones of both tables
 * @param firstDate files that were written before this UTC date leave; null: none does for its age
 */
export function planEventExpiry<File extends ListedFile>(
  files: readonly File[],
  firstDate: string | null,
  bytesMax: number,
): File[] {
  const ordered = [...files].sort((a, b) => a.last - b.last)
  let lastExpired = 0
  let bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  // The newest file stays, however large it is.
  for (const file of ordered.slice(0, -1)) {
    const isOld = firstDate !== null && utcDate(file.writtenAtMs) < firstDate
    if (isOld || bytes > bytesMax) lastExpired = file.last
    bytes -= file.bytes
  }
  return ordered.filter((file) => file.last <= lastExpired)
}

/**
 * The files of recorded events that are to leave now, damaged ones of the same time included.
 * @param isClockTrusted false: none leaves for its age
 */
export async function listExpiredEvents(
  connection: DuckDBConnection,
  retention: EventRetention,
  lakeDir: string,
  { nowMs, isClockTrusted }: { nowMs: number; isClockTrusted: boolean },
): Promise<ListedFile[]> {
  const live: ListedFile[] = []
  for (const name of EVENT_TABLE_NAMES) live.push(...(await listLiveFiles(connection, name)))
  const { days } = retention
  const firstDate = days > 0 && isClockTrusted ? firstRetainedDate(days, nowMs) : null
  const expired = planEventExpiry(live, firstDate, await eventBytesMax(retention, lakeDir))
  const last = expired.at(-1)?.last ?? 0
  const quarantined = (await listQuarantinedFiles(connection)).filter(
    (file) => isEventTable(file.table) && file.last <= last,
  )
  return [...expired, ...quarantined]
}

/**
 * The number from which on the lake has every recorded event that it ever had; earlier ones have left, at least those of one of
 * the tables.
 */
export async function loadRetainedFrom(connection: DuckDBConnection): Promise<number> {
  const names = EVENT_TABLE_NAMES.map(literal).join(', ')
  const sql = `SELECT coalesce(max(seq_last), 0)::DOUBLE AS last FROM ${REMOVALS} WHERE table_name IN (${names})`
  return (await queryOne(connection, sql, { last: 'number' })).last + 1
}
