// Which recorded events leave the lake: those beyond their days, and the oldest beyond their share of the disk. They leave file by
// file, oldest first and of both tables, so that what stays is a sequence without a beginning missing in one of them.
import { statfs } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES, type TableName } from '../../schema/tables.ts'
import { queryValue } from '../duckdb/query.ts'
import { literal, REMOVALS } from '../duckdb/sql.ts'
import { utcDate } from '../lake/lake-files.ts'
import { type ListedFile, listLiveFiles, listQuarantinedFiles } from '../lake/manifest.ts'
import { agingDates, type Expiry, firstRetainedDate, judgeExpiry, later } from '../lake/retention.ts'
import type { Retention } from '../retention-setting.ts'

export const EVENT_TABLE_NAMES = [TABLES.trades.name, TABLES.events.name] as const satisfies TableName[]
export type EventTableName = (typeof EVENT_TABLE_NAMES)[number]
export const isEventTable = (name: string): boolean => EVENT_TABLE_NAMES.some((each) => each === name)

/** The bytes that live files of recorded events may have together; infinite without a limit. */
export async function eventBytesMax(
  { bytesMax, diskPct }: Retention['events'],
  lakeDir: string,
): Promise<number> {
  const limits = [Number.POSITIVE_INFINITY]
  if (bytesMax > 0) limits.push(bytesMax)
  if (diskPct > 0) {
    const { blocks, bsize } = await statfs(lakeDir)
    limits.push((blocks * bsize * diskPct) / 100)
  }
  return Math.min(...limits)
}

/** The files beyond the bytes, oldest first. @param files live ones of both tables */
export function planEventEviction<File extends ListedFile>(files: readonly File[], bytesMax: number): File[] {
  const ordered = [...files].sort((a, b) => a.last - b.last)
  const newest = ordered.at(-1)?.last ?? 0
  let lastEvicted = 0
  let bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  // The newest files stay, however large they are: those of both tables have the same numbers.
  for (const file of ordered.filter(({ last }) => last < newest)) {
    if (bytes > bytesMax) lastEvicted = file.last
    bytes -= file.bytes
  }
  return ordered.filter((file) => file.last <= lastEvicted)
}

/**
 * The files beyond their days, and why they stay without an operator's word. Their age is judged by event numbers together with
 * times: a file is no older than any before it, and none leaves before those that are older.
 * @param files live ones of both tables
 * @param days full days before today that are kept
 */
export function judgeEventExpiry(
  files: readonly ListedFile[],
  days: number,
  nowMs: number,
  unaskedPct: number,
): Expiry {
  const firstDate = firstRetainedDate(days, nowMs)
  const dateOf = ({ date, writtenAtMs }: ListedFile): string => later(date, utcDate(writtenAtMs))
  const dated = agingDates(files, dateOf, 0, nowMs)
  const newest = dated.at(-1)?.file.last ?? 0
  // The newest files stay.
  const last = dated.findLast(({ date, file }) => date < firstDate && file.last < newest)?.file.last ?? 0
  const doubts = EVENT_TABLE_NAMES.map((name) => {
    const ofTable = dated.filter(({ file }) => file.table === name)
    return judgeExpiry(name, ofTable, firstDate, unaskedPct).doubt
  })
  return {
    files: dated.map(({ file }) => file).filter((file) => file.last <= last),
    doubt: doubts.find((doubt) => doubt !== null) ?? null,
  }
}

export interface EventExpiry {
  /** Beyond their days. */
  aged: Expiry
  /** Beyond their share of the disk, which no clock decides. */
  evicted: ListedFile[]
}

/** The files of recorded events that are over their limits, damaged ones of the same time included. */
export async function listExpiredEvents(
  connection: DuckDBConnection,
  { events, unaskedPct }: Retention,
  lakeDir: string,
  nowMs: number,
): Promise<EventExpiry> {
  const live: ListedFile[] = []
  for (const name of EVENT_TABLE_NAMES) live.push(...(await listLiveFiles(connection, name)))
  const quarantined = (await listQuarantinedFiles(connection)).filter(({ table }) => isEventTable(table))
  const withDamaged = (files: ListedFile[]): ListedFile[] => {
    const last = files.at(-1)?.last ?? 0
    return [...files, ...quarantined.filter((file) => file.last <= last)]
  }
  const { files, doubt } =
    events.days > 0 ? judgeEventExpiry(live, events.days, nowMs, unaskedPct) : { files: [], doubt: null }
  const evicted = planEventEviction(live, await eventBytesMax(events, lakeDir))
  return { aged: { files: withDamaged(files), doubt }, evicted: withDamaged(evicted) }
}

/**
 * The number from which on the lake has every recorded event that it ever had; earlier ones have left, at least those of one of
 * the tables.
 */
export async function loadRetainedFrom(connection: DuckDBConnection): Promise<number> {
  const names = EVENT_TABLE_NAMES.map(literal).join(', ')
  const sql = `SELECT coalesce(max(seq_last), 0)::DOUBLE AS last FROM ${REMOVALS} WHERE table_name IN (${names})`
  return (await queryValue(connection, sql, 'number')) + 1
}
