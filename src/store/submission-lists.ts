// Lists submissions: those that the lake does not hold yet from the log, the others from the lake. The log is read first: a flush
// moves submissions from it to the lake, so none is missed, and one that is read twice is shown once.
import {
  compareKeys,
  LISTED_COLUMNS,
  type ListedSubmission,
  type SubmissionKey,
  type SubmissionPage,
  type SubmissionQuery,
  submissionKeyOf,
} from '../schema/api/submission-list.ts'
import type { Position, StoredCommit } from './log/types.ts'
import { isSubmissionTable, type UnflushedRows } from './rows/recent-rows.ts'
import { completeRow } from './state/recovered.ts'

export interface ListSources {
  unflushed: Pick<UnflushedRows, 'list'>
  /** Reads a commit of the log; null: its segment was removed since, and the lake has it. Rejects with `unavailable`. */
  readCommit(position: Position): Promise<StoredCommit | null>
  /** The page of the lake alone. Rejects with `unavailable`. */
  readLake(query: SubmissionQuery): Promise<SubmissionPage>
}

/** Rejects with `unavailable` where the log or the lake cannot be read in time. */
export async function pageOfSubmissions(
  sources: ListSources,
  query: SubmissionQuery,
): Promise<SubmissionPage> {
  const unflushed = await readUnflushed(sources, query)
  return mergePages(await sources.readLake(query), unflushed, query.limit)
}

/** The newest unflushed submissions of the query, `limit` + 1 or more where there are as many. */
async function readUnflushed(
  { unflushed, readCommit }: ListSources,
  { agentId, mint, before, limit }: SubmissionQuery,
): Promise<ListedSubmission[]> {
  const untilMs = before?.submittedAtMs ?? Number.POSITIVE_INFINITY
  const found: ListedSubmission[] = []
  let lastMs = 0
  for (const { submittedAtMs, position } of unflushed.list(agentId, mint, untilMs, limit + 1)) {
    // Those of one millisecond are read together, since only their identities tell which is newer.
    if (found.length > limit && submittedAtMs !== lastMs) break
    const record = await readCommit(position)
    const submission = record && toListed(record)
    if (submission === null || !isBefore(submission, before)) continue
    found.push(submission)
    lastMs = submittedAtMs
  }
  return found
}

const keyOf = ({ row }: ListedSubmission): SubmissionKey => submissionKeyOf(row)

const isBefore = (submission: ListedSubmission, before: SubmissionKey | null): boolean =>
  before === null || compareKeys(keyOf(submission), before) > 0

/** The submission of a commit, which has one at most, with what it earned in the same commit. */
function toListed(record: StoredCommit): ListedSubmission | null {
  let listed: ListedSubmission | null = null
  let xp = 0
  for (const [table, row] of record.rows()) {
    if (isSubmissionTable(table)) {
      const complete = completeRow(table, row, record.knownAtMs)
      const cells = LISTED_COLUMNS.map((name) => [name, complete[name]])
      listed = { row: Object.fromEntries(cells), xp: 0, outcomes: null }
    }
    if (table === 'xp_ledger' && typeof row.xp === 'number') xp = row.xp
  }
  return listed === null ? null : { ...listed, xp }
}

/** Adds unflushed submissions to a page of the lake. Those that belong to a later page are left to it. */
function mergePages(
  lake: SubmissionPage,
  unflushed: readonly ListedSubmission[],
  limit: number,
): SubmissionPage {
  const { next } = lake
  const byId = new Map(lake.submissions.map((submission) => [submission.row.analysis_id, submission]))
  for (const submission of unflushed) {
    const isLater = next !== null && compareKeys(keyOf(submission), next) > 0
    if (!isLater && !byId.has(submission.row.analysis_id)) byId.set(submission.row.analysis_id, submission)
  }
  const all = [...byId.values()].sort((a, b) => compareKeys(keyOf(a), keyOf(b)))
  if (all.length <= limit) return { ...lake, submissions: all }
  const submissions = all.slice(0, limit)
  const last = submissions.at(-1)
  return { ...lake, submissions, next: last === undefined ? next : keyOf(last) }
}
