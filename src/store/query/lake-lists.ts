// Lists the submissions of an agent or a mint that the lake holds, newest first. Files are searched date by date, so a page
// costs what its newest dates cost; a page stops after LIST_SEARCHED_ROWS_MAX rows, and the next one goes on from there.
import type { DuckDBConnection } from '@duckdb/node-api'
import {
  compareKeys,
  LISTED_COLUMNS,
  type ListedRow,
  type ListedSubmission,
  OUTCOME_LABELS,
  type OutcomeLabels,
  type SubmissionKey,
  type SubmissionPage,
  type SubmissionQuery,
  submissionKeyOf,
} from '../../schema/api/submission-list.ts'
import { TABLES } from '../../schema/tables.ts'
import { query as selectRows } from '../duckdb/query.ts'
import { identifier, type LakeTable, literal, readableCell } from '../duckdb/sql.ts'
import { utcDate } from '../lake/lake-files.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { listLiveFiles } from '../lake/manifest.ts'
import { newestOnlySql, selectAllRows } from '../lake/parquet-sql.ts'
import { LIST_SEARCHED_ROWS_MAX } from '../limits.ts'
import { type DateRows, walkDates } from './date-walk.ts'
import { SUBMISSION_TABLES } from './lake-lookup.ts'

const listSql = (table: LakeTable, names: readonly string[]): string =>
  table.columns
    .filter(({ name }) => names.includes(name))
    .map(readableCell)
    .join(', ')

/** SQL condition on the rows of a query, of those before its position. Positions are whole milliseconds. */
function conditionSql({ agentId, mint, before }: SubmissionQuery): string {
  const conditions: string[] = ['true']
  if (agentId !== null) conditions.push(`agent_id = ${literal(agentId)}`)
  if (mint !== null) conditions.push(`mint = ${literal(mint)}`)
  if (before !== null) {
    const { submittedAtMs, analysisId } = before
    conditions.push(
      `submitted_at < epoch_ms(${submittedAtMs + 1})`,
      `(submitted_at < epoch_ms(${submittedAtMs}) OR analysis_id < ${literal(analysisId)})`,
    )
  }
  return conditions.join(' AND ')
}

/** What a page is searched for, and where. */
interface Search {
  connection: DuckDBConnection
  reader: LiveFileReader
  query: SubmissionQuery
  nowMs: number
}

/**
 * A page of the submissions that the lake holds.
 * @param rowsMax rows that it searches
 */
export async function listSubmissions(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  { query, nowMs }: Pick<Search, 'query' | 'nowMs'>,
  rowsMax = LIST_SEARCHED_ROWS_MAX,
): Promise<SubmissionPage> {
  const search = { connection, reader, query, nowMs }
  const { limit } = query
  const found: ListedRow[] = []
  let searchedToMs: number | null = null
  for (const { step, toMs } of walkDates(await listDates(search), rowsMax)) {
    found.push(...(await find(search, step)))
    searchedToMs = toMs
    if (found.length > limit) break
  }
  return {
    submissions: await complete(search, found.slice(0, limit)),
    next: nextKey(found, limit, searchedToMs),
    searchedToMs,
  }
}

/** The dates that may have submissions of the query. */
async function listDates({ connection, query: { before } }: Search): Promise<DateRows[]> {
  const newest = before === null ? null : newestDate(before)
  const rowsByDate = new Map<string, number>()
  for (const table of SUBMISSION_TABLES)
    for (const { date, rows } of await listLiveFiles(connection, table.name))
      if (newest === null || date <= newest) rowsByDate.set(date, (rowsByDate.get(date) ?? 0) + rows)
  return Array.from(rowsByDate, ([date, rows]) => ({ date, rows }))
}

/** The newest submissions of some dates, newest first, one more than the page has. */
async function find(search: Search, dates: readonly string[]): Promise<ListedRow[]> {
  const { query } = search
  const count = query.limit + 1
  const found: ListedRow[] = []
  for (const table of SUBMISSION_TABLES) {
    const sql = (rows: string) => `SELECT ${listSql(table, LISTED_COLUMNS)} FROM (${rows})
      WHERE ${conditionSql(query)} ORDER BY "submitted_at" DESC, analysis_id DESC LIMIT ${count}`
    found.push(...(await select<ListedRow>(search, table, dates, sql)))
  }
  return found.sort((a, b) => compareKeys(submissionKeyOf(a), submissionKeyOf(b))).slice(0, count)
}

/** Adds what each submission earned, and what the price did afterwards. */
async function complete(search: Search, rows: readonly ListedRow[]): Promise<ListedSubmission[]> {
  if (rows.length === 0) return []
  const dates = [...new Set(rows.map((row) => utcDate(row.submitted_at)))]
  const ids = rows.map((row) => literal(row.analysis_id)).join(', ')
  const times = rows.map((row) => row.submitted_at)
  const isOfPage = (timeColumn: string): string =>
    `analysis_id IN (${ids}) AND ${timeColumn} >= epoch_ms(${Math.min(...times)})
     AND ${timeColumn} < epoch_ms(${Math.max(...times) + 1})`
  const earned = await select<{ analysis_id: string; xp: number }>(
    search,
    TABLES.xp_ledger,
    dates,
    (entries) => `SELECT analysis_id, xp FROM (${entries}) WHERE ${isOfPage('awarded_at')}`,
  )
  const cells = ['analysis_id', ...OUTCOME_LABELS].map(identifier).join(', ')
  const labelled = await select<OutcomeLabels & { analysis_id: string }>(
    search,
    TABLES.outcomes,
    dates,
    (outcomes) => `SELECT ${cells} FROM (${outcomes}) WHERE ${isOfPage('submitted_at')}
      ${newestOnlySql(TABLES.outcomes)}`,
  )
  const xpById = new Map(earned.map(({ analysis_id: id, xp }) => [id, xp]))
  const outcomesById = new Map(labelled.map(({ analysis_id: id, ...labels }) => [id, labels]))
  return rows.map((row) => ({
    row,
    xp: xpById.get(row.analysis_id) ?? (row.outcome === 'rejected' ? 0 : null),
    outcomes: outcomesById.get(row.analysis_id) ?? null,
  }))
}

const select = <Row>(
  { connection, reader, nowMs }: Search,
  table: LakeTable,
  dates: readonly string[],
  sql: (rows: string) => string,
): Promise<Row[]> =>
  reader.readConcurrently(connection, {
    table,
    nowMs,
    isNeeded: ({ date }) => dates.includes(date),
    work: async (files) =>
      files.length === 0 ? [] : selectRows<Row>(connection, sql(selectAllRows(table, files))),
  })

/** The newest date with submissions before a position. Without an identity that is before every one of its millisecond. */
const newestDate = ({ submittedAtMs, analysisId }: SubmissionKey): string =>
  utcDate(analysisId === '' ? submittedAtMs - 1 : submittedAtMs)

/** Where the next page begins: behind the last submission of this one, or at the date up to which it was searched. */
function nextKey(found: readonly ListedRow[], limit: number, searchedToMs: number | null) {
  const last = found.at(limit - 1)
  if (found.length > limit && last !== undefined) return submissionKeyOf(last)
  return searchedToMs === null ? null : { submittedAtMs: searchedToMs, analysisId: '' }
}
