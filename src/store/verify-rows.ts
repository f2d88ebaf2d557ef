// In: whole files of the lake, and the store's own tables where nobody else holds them. Out: rows that are there twice,
// or that the store has accepted and the lake lacks. Works on hashes of rows, within a limit of memory. Never tells a
// row by its place: files are sorted and merged.
import type { DuckDBConnection } from '@duckdb/node-api'
import type { TableName } from '../schema/tables.ts'
import { query } from './database.ts'
import { counted } from './findings.ts'
import { journalRows, WAITING } from './journal.ts'
import { FINDING_EXAMPLES } from './limits.ts'
import { type ListedPart, nextSeq, type SetAsidePart } from './manifest.ts'
import { readableFiles, selectEveryRow } from './parquet-sql.ts'
import { isRetained, type Removed, removedOf } from './retention.ts'
import {
  identifier,
  JOURNAL_REFUSED,
  type LakeTable,
  lakeColumns,
  mayBeReplaced,
  ROW_SEQ,
  relation,
} from './sql.ts'
import type { Look } from './verify-files.ts'

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
export function lakeRows({ shelf }: Look, { table, parts }: ReadableTable): string {
  const files = readableFiles(parts, shelf.pathOf)
  return `(${selectEveryRow(table, files)})`
}

/** SQL of every row of a table: those of the lake, and those of the store's table that are not in it yet. */
export async function storedRows(look: Look, readable: ReadableTable): Promise<string> {
  const { table } = readable
  const first = await nextSeq(look.connection, table.name)
  const waiting = `SELECT ${lakeColumns(table)} FROM ${relation(table)} WHERE ${ROW_SEQ} >= ${first}`
  return `(${lakeRows(look, readable)} UNION ALL ${waiting})`
}

/** Rows that stand twice in the lake. */
export async function checkTwice(look: Look, readable: ReadableTable): Promise<void> {
  const { connection, findings } = look
  const rows = lakeRows(look, readable)
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

/** Row numbers that no live file covers, though the store says that they were written. */
function checkGaps(
  look: Look,
  { table, listed, losses }: ReadableTable,
  flushedSeq: number,
  removed: Removed,
): void {
  const { findings } = look
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

/** Rows that the store still has and should be in the lake: each must be there, as it is here. */
async function checkMissing(look: Look, readable: ReadableTable, flushedSeq: number): Promise<void> {
  const { table } = readable
  const isLoose = mayBeReplaced(table)
  const key = isLoose ? table.latestBy!.map(identifier).join(', ') : identityOf(table)
  const content = isLoose ? '0' : `hash(${lakeColumns(table)})`
  const where = `${ROW_SEQ} <= ${flushedSeq} AND ${isRetained(table.name, table.lakeDateColumn)}`
  const kept = `(SELECT ${named(key)} AS name, hash(${key}) AS key, ${content} AS content FROM ${relation(table)} WHERE ${where})`
  // The store keeps few rows: the lake's are looked through for those alone.
  const held = `(SELECT DISTINCT hash(${key}) AS key, ${content} AS held FROM ${lakeRows(look, readable)}
    WHERE hash(${key}) IN (SELECT key FROM ${kept}))`
  const [found] = await query<{ missing: number; altered: number; examples: string | null }>(
    look.connection,
    `SELECT count(*) FILTER (held IS NULL)::DOUBLE AS missing, count(*) FILTER (held IS NOT NULL)::DOUBLE AS altered,
       array_to_string(min(name, ${FINDING_EXAMPLES}), ', ') AS examples
     FROM ${kept} LEFT JOIN ${held} USING (key) WHERE held IS DISTINCT FROM content`,
  )
  const { missing, altered, examples } = found
  const among = `among them ${examples}`
  if (missing > 0)
    look.findings.add(table.name, null, `${counted(missing, 'row')} of the store not in the lake, ${among}`)
  if (altered > 0)
    look.findings.add(
      table.name,
      null,
      `${counted(altered, 'row')} of the lake not as in the store, ${among}`,
    )
}

/** Rows that wait for their table though the lake is said to have gone past them. */
async function checkJournal(look: Look, table: LakeTable, flushedSeq: number): Promise<void> {
  const [{ count }] = await query<{ count: number }>(
    look.connection,
    `SELECT count(*)::DOUBLE AS count FROM (${journalRows(WAITING)}) WHERE table_name = $table AND ${ROW_SEQ} <= ${flushedSeq}`,
    { table: table.name },
  )
  if (count > 0)
    look.findings.add(
      table.name,
      null,
      `${counted(count, 'row')} in the journal that no flush will write any more`,
    )
}

/** Rows of a table that no file has yet; the next flush writes them. */
async function backlogOf(
  connection: DuckDBConnection,
  table: LakeTable,
  flushedSeq: number,
): Promise<number> {
  const [{ count }] = await query<{ count: number }>(
    connection,
    `SELECT ((SELECT count(*) FROM ${relation(table)} WHERE ${ROW_SEQ} > ${flushedSeq})
       + (SELECT count(*) FROM (${journalRows(WAITING)}) WHERE table_name = $table))::DOUBLE AS count`,
    { table: table.name },
  )
  return count
}

/** Checks the lake's rows of a table against the store's. */
export async function verifyAgainstStore(look: Look, readable: ReadableTable): Promise<void> {
  const { connection, findings } = look
  const { table } = readable
  const flushedSeq = (await nextSeq(connection, table.name)) - 1
  checkGaps(look, readable, flushedSeq, await removedOf(connection, table.name))
  // Market data waits for the lake in memory alone.
  if (table.origin === 'market') return
  await checkJournal(look, table, flushedSeq)
  const backlog = await backlogOf(connection, table, flushedSeq)
  if (backlog > 0)
    findings.notes.push(
      `${table.name}: ${counted(backlog, 'row')} not in the lake yet; the next start writes ${backlog === 1 ? 'it' : 'them'}`,
    )
  if (readable.isWhole) await checkMissing(look, readable, flushedSeq)
  else findings.notes.push(`${table.name}: not compared with the store, since not every file can be read`)
}

/** Rows that fit no table: a fault of the server. */
export async function checkRefused({ connection, findings }: Look): Promise<void> {
  const rows = await query<{ name: string; count: number }>(
    connection,
    `SELECT table_name AS name, count(*)::DOUBLE AS count FROM ${JOURNAL_REFUSED} GROUP BY 1 ORDER BY 1`,
  )
  for (const { name, count } of rows)
    findings.add(name, null, `${counted(count, 'row')} set aside: they did not fit the table`)
}
