// In: whole files of the lake, its state, and what the log has beyond it. Out: rows that are there twice, or that were
// committed and are nowhere. Works on hashes of rows, within a limit of memory. Never tells a row by its place: files are
// sorted and merged.
import type { TableName } from '../../schema/tables.ts'
import { query } from '../duckdb/query.ts'
import { identifier, type LakeTable, lakeColumns, ROW_SEQ } from '../duckdb/sql.ts'
import { type ListedPart, nextSeq, type SetAsidePart } from '../lake/manifest.ts'
import { readableFiles, selectEveryRow } from '../lake/parquet-sql.ts'
import { type Removed, removedOf } from '../lake/retention.ts'
import { FINDING_EXAMPLES } from '../limits.ts'
import { counted } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'
import type { LogTail } from './verify-log.ts'

/** A table and those of its files that can be read. */
export interface ReadableTable {
  table: LakeTable
  parts: readonly ListedPart[]
  listed: readonly ListedPart[]
  /** Files of the lake that are gone or damaged. */
  losses: readonly SetAsidePart[]
  /** Every listed file can be read, and none of the table is lost. */
  isWhole: boolean
}

/** What no two rows of a table have in common. */
const IDENTITIES: Partial<Record<TableName, readonly string[]>> = {
  training: ['analysis_id'],
  rejections: ['analysis_id'],
  xp_ledger: ['entry_id'],
  bars: ['mint', 'tf', 't'],
  tokens: ['mint', 'updated_at', 'known_at'],
  outcomes: ['analysis_id', 'labelled_to'],
}

const identityOf = ({ name, columns }: LakeTable): string =>
  (IDENTITIES[name as TableName] ?? columns.map((column) => column.name)).map(identifier).join(', ')
const named = (identity: string): string => `concat_ws(' ', ${identity})`

/** SQL of every row that the lake's files have of a table. */
export function lakeRows({ links }: VerifyContext, { table, parts }: ReadableTable): string {
  const files = readableFiles(parts, links.pathOf)
  return `(${selectEveryRow(table, files)})`
}

/** SQL of every row of a table: those of the lake, those that the log has beyond it, and outcomes that wait for a flush. */
export async function everyRow(
  context: VerifyContext,
  readable: ReadableTable,
  tail: LogTail,
): Promise<string> {
  const { table } = readable
  const parts = [lakeRows(context, readable), ...tail.selects(table)]
  if (table.origin === 'store') {
    const first = await nextSeq(context.connection, table.name)
    parts.push(`(SELECT ${lakeColumns(table)} FROM ${identifier(table.name)} WHERE ${ROW_SEQ} >= ${first})`)
  }
  return `(${parts.map((part) => `FROM ${part}`).join(' UNION ALL ')})`
}

/** Rows that stand twice in the lake. */
export async function checkTwice(context: VerifyContext, readable: ReadableTable): Promise<void> {
  const { connection, findings } = context
  const rows = lakeRows(context, readable)
  const identity = identityOf(readable.table)
  // Narrow hashes are counted first: only rows that may be twice are looked at by name.
  const [{ count, examples }] = await query<{ count: number; examples: string | null }>(
    connection,
    `SELECT count(*)::DOUBLE AS count, array_to_string(min(name, ${FINDING_EXAMPLES}), ', ') AS examples FROM (
       SELECT ${named(identity)} AS name FROM ${rows} WHERE hash(${identity}) IN
         (SELECT key FROM (SELECT hash(${identity}) AS key FROM ${rows}) GROUP BY key HAVING count(*) > 1)
       GROUP BY ${identity} HAVING count(*) > 1)`,
  )
  if (count > 0)
    findings.add(readable.table.name, null, `${counted(count, 'row')} more than once, among them ${examples}`)
}

/** Row numbers that no live file covers, of a table whose rows are numbered one by one. */
function checkGaps(
  context: VerifyContext,
  { table, listed, losses }: ReadableTable,
  removed: Removed,
  flushedSeq: number,
): void {
  const { findings } = context
  // What left for its age leaves gaps: which ones is known of its end alone.
  let covered = removed.lastSeq
  const known = [...listed, ...losses.filter((part) => part.table === table.name)]
  for (const { first, last } of known.sort((a, b) => a.first - b.first)) {
    if (first > covered + 1)
      findings.add(table.name, null, `no live file has the row numbers ${covered + 1} to ${first - 1}`)
    covered = Math.max(covered, last)
  }
  if (covered < flushedSeq)
    findings.add(table.name, null, `no live file has the row numbers ${covered + 1} to ${flushedSeq}`)
}

/** Rows of a table that were committed: each must be in a file, in the log, gone for its age, or known to be lost. */
function checkTotal(context: VerifyContext, readable: ReadableTable, removed: Removed, tail: LogTail): void {
  const { table, listed, losses } = readable
  const committed = tail.state.rowTotals.get(table.name) ?? 0
  const lost = losses
    .filter((part) => part.table === table.name)
    .reduce((sum, { rowsLost }) => sum + rowsLost, 0)
  const inFiles = listed.reduce((sum, { rows }) => sum + rows, 0)
  const found = inFiles + removed.rows + lost + tail.rows(table) + tail.deadRows(table)
  if (found !== committed)
    context.findings.add(
      table.name,
      null,
      `${counted(committed, 'row')} committed, and ${found} found: ${inFiles} in files, ${tail.rows(table)} in the log`,
    )
}

/** Checks that the lake has every row of a table that it should have. */
export async function verifyRows(
  context: VerifyContext,
  readable: ReadableTable,
  tail: LogTail,
): Promise<void> {
  const { table } = readable
  const removed = await removedOf(context.connection, table.name)
  if (table.origin !== undefined) {
    const flushedSeq = (await nextSeq(context.connection, table.name)) - 1
    return checkGaps(context, readable, removed, flushedSeq)
  }
  checkTotal(context, readable, removed, tail)
  const backlog = tail.rows(table)
  const them = backlog === 1 ? 'it' : 'them'
  if (backlog > 0)
    context.findings.notes.push(
      `${table.name}: ${counted(backlog, 'row')} not in the lake yet; the next start writes ${them}`,
    )
}
