// Checks that each committed row is in the lake or the log, once. Rows are compared by hash, with bounded memory.
import type { TableName } from '../../schema/tables.ts'
import { identifier, type LakeTable, lakeColumns, ROW_SEQ } from '../duckdb/sql.ts'
import { type ListedFile, nextSeq, type QuarantinedFile } from '../lake/manifest.ts'
import { selectAllRows, toReadableFiles } from '../lake/parquet-sql.ts'
import { type RemovedRows, readRemoved } from '../lake/retention.ts'
import { countedSql, pluralize, reportCounted } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'
import type { LogTail } from './verify-log.ts'

/** A table and its files. */
export interface ReadableTable {
  table: LakeTable
  listed: readonly ListedFile[]
  /** The undamaged files among them. */
  readable: readonly ListedFile[]
  /** Its quarantined files. */
  losses: readonly QuarantinedFile[]
  /** All listed files can be read, and none is quarantined. */
  isWhole: boolean
}

/** The files whose rows are missing. */
export const unreadFiles = ({ listed, readable, losses }: ReadableTable): ListedFile[] => [
  ...losses,
  ...listed.filter((file) => !readable.includes(file)),
]

/** Columns that identify a row; for other tables all columns. */
const KEY_COLUMNS: Partial<Record<TableName, readonly string[]>> = {
  training: ['analysis_id'],
  rejections: ['analysis_id'],
  xp_ledger: ['entry_id'],
  bars: ['mint', 'tf', 't'],
  tokens: ['mint', 'updated_at', 'known_at'],
  outcomes: ['analysis_id', 'labelled_to'],
}

const keySql = ({ name, columns }: LakeTable): string =>
  (KEY_COLUMNS[name] ?? columns.map((column) => column.name)).map(identifier).join(', ')

/** SQL of all rows in a table's undamaged files. */
export function lakeRowsSql({ links }: VerifyContext, { table, readable }: ReadableTable): string {
  const files = toReadableFiles(readable, links.pathOf)
  return `(${selectAllRows(table, files)})`
}

/** SQL of all rows of a table: in the lake, in the log beyond it, and outcomes that wait for a flush. */
export async function allRowsSql(
  context: VerifyContext,
  readable: ReadableTable,
  tail: LogTail,
): Promise<string> {
  const { table } = readable
  const sources = [lakeRowsSql(context, readable), ...tail.selects(table)]
  if (table.origin === 'store') {
    const first = await nextSeq(context.connection, table.name)
    sources.push(`(SELECT ${lakeColumns(table)} FROM ${identifier(table.name)} WHERE ${ROW_SEQ} >= ${first})`)
  }
  return `(${sources.map((source) => `FROM ${source}`).join(' UNION ALL ')})`
}

/** Reports rows that the lake has more than once. */
export async function checkDuplicates(context: VerifyContext, readable: ReadableTable): Promise<void> {
  const rows = lakeRowsSql(context, readable)
  const key = keySql(readable.table)
  // Hashes are grouped first, which takes less memory; only rows with a repeated hash are compared by key.
  const sql = `${countedSql('name')} FROM (
    SELECT concat_ws(' ', ${key}) AS name FROM ${rows} WHERE hash(${key}) IN
      (SELECT hash FROM (SELECT hash(${key}) AS hash FROM ${rows}) GROUP BY hash HAVING count(*) > 1)
    GROUP BY ${key} HAVING count(*) > 1)`
  await reportCounted(context, readable.table.name, sql, 'row', 'more than once')
}

/** Reports row numbers that no file covers, for tables whose rows are numbered without gaps. */
function checkGaps(
  context: VerifyContext,
  { table, listed, losses }: ReadableTable,
  removed: RemovedRows,
  flushedSeq: number,
): void {
  const { findings } = context
  // Of expired rows only the last number is known.
  let covered = removed.lastSeq
  for (const { first, last } of [...listed, ...losses].sort((a, b) => a.first - b.first)) {
    if (first > covered + 1)
      findings.add(table.name, null, `no live file has the row numbers ${covered + 1} to ${first - 1}`)
    covered = Math.max(covered, last)
  }
  if (covered < flushedSeq)
    findings.add(table.name, null, `no live file has the row numbers ${covered + 1} to ${flushedSeq}`)
}

/** Checks the number of committed rows: each is in a file, in the log, a dead letter, expired, or known to be lost. */
function checkTotal(
  context: VerifyContext,
  readable: ReadableTable,
  removed: RemovedRows,
  tail: LogTail,
): void {
  const { table, listed, losses } = readable
  const committed = tail.state.rowTotals.get(table.name) ?? 0
  const lost = losses.reduce((sum, { rowsLost }) => sum + rowsLost, 0)
  const inFiles = listed.reduce((sum, { rows }) => sum + rows, 0)
  const found = inFiles + removed.rows + lost + tail.rows(table) + tail.deadRows(table)
  if (found !== committed)
    context.findings.add(
      table.name,
      null,
      `${pluralize(committed, 'row')} committed, and ${found} found: ${inFiles} in files, ${tail.rows(table)} in the log`,
    )
}

/** Checks that no committed row of a table is missing. */
export async function verifyRows(
  context: VerifyContext,
  readable: ReadableTable,
  tail: LogTail,
): Promise<void> {
  const { table } = readable
  // Their sequence is checked apart.
  if (table.origin === 'journal') return
  const removed = await readRemoved(context.connection, table.name)
  if (table.origin !== undefined) {
    const flushedSeq = (await nextSeq(context.connection, table.name)) - 1
    return checkGaps(context, readable, removed, flushedSeq)
  }
  checkTotal(context, readable, removed, tail)
  const backlog = tail.rows(table)
  const them = backlog === 1 ? 'it' : 'them'
  if (backlog > 0)
    context.findings.notes.push(
      `${table.name}: ${pluralize(backlog, 'row')} not in the lake yet; the next start writes ${them}`,
    )
}
