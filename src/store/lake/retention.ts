// Expires whole UTC dates of a table. What left is recorded, so that row numbers are not used again and `lake verify` knows why
// rows are missing. The files are deleted after the readers' grace period, like merged ones. The age of a file is that of its date
// and of the dates recorded before it: a clock that was behind while it was written makes it no older.

import type { DuckDBConnection } from '@duckdb/node-api'
import { DAY_MS } from '../../lib/time.ts'
import { transaction } from '../duckdb/database.ts'
import { queryOne, queryRows } from '../duckdb/query.ts'
import { identifier, LAKE_TABLES, literal, MANIFEST, REMOVALS } from '../duckdb/sql.ts'
import { LATE_ROWS_MS, YOUNG_MS } from '../limits.ts'
import type { Retention } from '../retention-setting.ts'
import { utcDate } from './lake-files.ts'
import { isOneOfSql, type ListedFile, listLiveFiles, listQuarantinedFiles, markReplaced } from './manifest.ts'

/** The oldest UTC date that is kept. */
export const firstRetainedDate = (days: number, nowMs: number): string => utcDate(nowMs - days * DAY_MS)

/** A file with the date by which it ages. */
export interface DatedFile<File extends ListedFile = ListedFile> {
  file: File
  date: string
  /** The date that it bears, where that is ahead of the clock; null: it is not. */
  ahead: string | null
}

/**
 * The date by which each file of one table ages, in the order of their row numbers: its own, or where that is later, that of the
 * rows numbered before it, since a row is recorded after those. A date that is still to come is a wrong clock's, then or now: it
 * makes no later file young, and its file leaves with the rows numbered after it.
 * @param dateOf of a file by itself
 * @param slackMs how much later than their date rows may come
 */
export function agingDates<File extends ListedFile>(
  files: readonly File[],
  dateOf: (file: File) => string,
  slackMs: number,
  nowMs: number,
): DatedFile<File>[] {
  const today = utcDate(nowMs)
  const ordered = [...files].sort((a, b) => a.last - b.last)
  let latest = ''
  const dated = Array.from(Map.groupBy(ordered, ({ last }) => last).values()).flatMap((group) => {
    const recorded = latest === '' ? '' : utcDate(Date.parse(latest) - slackMs)
    const ofGroup = group.map((file): DatedFile<File> => {
      const date = dateOf(file)
      return { file, date: later(date, recorded), ahead: date > today ? date : null }
    })
    for (const { date, ahead } of ofGroup) if (ahead === null) latest = later(latest, date)
    return ofGroup
  })
  let following = today
  for (const each of dated.toReversed()) {
    if (each.ahead === null) following = each.date
    else each.date = following
  }
  return dated
}

export const later = (a: string, b: string): string => (a > b ? a : b)

/** Files of one table that are over their time, and why they leave only on an operator's word; null: they leave. */
export interface Expiry {
  files: ListedFile[]
  doubt: string | null
}

/**
 * What has expired of a table.
 * @param dated its files, live and quarantined, with the dates by which they age
 * @param firstDate the oldest date that is kept
 * @param unaskedPct the most of its rows, in percent, that leave without an operator's word
 */
export function judgeExpiry(
  table: string,
  dated: readonly DatedFile[],
  firstDate: string,
  unaskedPct: number,
): Expiry {
  const expired = dated.filter(({ date }) => date < firstDate)
  const newest = dated.reduce((latest, { date }) => later(latest, date), '')
  const rowsOf = (of: typeof dated): number => of.reduce((sum, { file }) => sum + file.rows, 0)
  const [gone, all] = [rowsOf(expired), rowsOf(dated)]
  const files = expired.map(({ file }) => file)
  const ahead = expired.find((each) => each.ahead !== null)?.ahead
  if (ahead !== undefined)
    return {
      files,
      doubt: `rows of ${table} that are over their time come after rows of ${ahead}, a date ahead of the clock`,
    }
  const isYoung = ({ date }: { date: string }): boolean => Date.parse(newest) - Date.parse(date) <= YOUNG_MS
  if (unaskedPct < 100 && expired.some(isYoung))
    return { files, doubt: `rows of ${table} are among its newest, of ${newest}, and over their time` }
  if (gone * 100 > all * unaskedPct)
    return {
      files,
      doubt: `${gone} of ${all} rows of ${table} are over their time, more than ${unaskedPct} %`,
    }
  return { files, doubt: null }
}

/** What has expired of each table that is not kept for ever, damaged files included. */
export async function listExpiredFiles(
  connection: DuckDBConnection,
  { days, unaskedPct }: Retention,
  nowMs: number,
): Promise<Expiry[]> {
  const found: Expiry[] = []
  const quarantined = await listQuarantinedFiles(connection)
  for (const { name } of LAKE_TABLES) {
    const retained = days[name]
    if (retained === undefined) continue
    const all = [
      ...(await listLiveFiles(connection, name)),
      ...quarantined.filter(({ table }) => table === name),
    ]
    const dated = agingDates(all, ({ date }) => date, LATE_ROWS_MS, nowMs)
    found.push(judgeExpiry(name, dated, firstRetainedDate(retained, nowMs), unaskedPct))
  }
  return found
}

const recordRemovals = (connection: DuckDBConnection, files: readonly ListedFile[], nowMs: number) =>
  connection.run(
    `INSERT INTO ${REMOVALS}
     SELECT table_name, dt, sum(coalesce(rows_lost, row_count)), max(seq_last), epoch_ms(${nowMs})
     FROM ${MANIFEST} WHERE ${isOneOfSql(files)} GROUP BY ALL`,
  )

/** Takes expired files off the live ones, and records how many rows left. */
export async function expireFiles(
  connection: DuckDBConnection,
  files: readonly ListedFile[],
  nowMs: number,
): Promise<void> {
  await transaction(connection, async () => {
    await recordRemovals(connection, files, nowMs)
    await markReplaced(connection, files, nowMs)
  })
}

/** Rows of a table that have expired so far. */
export interface RemovedRows {
  rows: number
  /** The highest row number among them; 0 without any. */
  lastSeq: number
}

export async function readRemoved(connection: DuckDBConnection, table: string): Promise<RemovedRows> {
  const sql = `SELECT coalesce(sum(row_count), 0)::DOUBLE AS rows, coalesce(max(seq_last), 0)::DOUBLE AS "lastSeq"
    FROM ${REMOVALS} WHERE table_name = $table`
  return queryOne(connection, sql, { rows: 'number', lastSeq: 'number' }, { table })
}

/**
 * The UTC dates of which rows of a table have left. A date that was still to come when its rows left was a wrong clock's: the rows of
 * the day itself came later, and are there. A rebuild notes dates without a time (0).
 */
export async function listRemovedDates(connection: DuckDBConnection, table: string): Promise<string[]> {
  const sql = `SELECT DISTINCT strftime(dt, '%Y-%m-%d') AS date FROM ${REMOVALS}
    WHERE table_name = $table AND (dt <= removed_at OR removed_at = epoch_ms(0))`
  const rows = await queryRows(connection, sql, { date: 'string' }, { table })
  return rows.map(({ date }) => date)
}

/**
 * SQL condition: no row of the UTC date of the time in `column` has left `table`. A date that was a wrong clock's is among those
 * that have: other tables may keep the rows that belong to those that left.
 */
export const isRetainedSql = (table: string, column: string): string =>
  `CAST(${identifier(column)} AS DATE) NOT IN (SELECT dt FROM ${REMOVALS} WHERE table_name = ${literal(table)})`
