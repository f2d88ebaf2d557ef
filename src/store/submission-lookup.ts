// Finds a submission by its identity: in memory, then in the log, then in the lake.
import { errorMessage } from '../lib/error-text.ts'
import type { SubmissionRow, Write } from '../schema/tables.ts'
import { unavailable } from './errors.ts'
import { LOOKUP_TIMEOUT_MS } from './limits.ts'
import { LogError } from './log/errors.ts'
import type { CommitLog } from './log/log.ts'
import type { AppendResult, EncodedRow, Position, StoredCommit } from './log/types.ts'
import type { LakeClient } from './process/client.ts'
import { identifyRow, isSubmissionTable, RecentRows, type UnflushedRows } from './rows/recent-rows.ts'
import { completeRow } from './state/recovered.ts'

export class SubmissionLookup {
  readonly #client: LakeClient
  readonly #commits: CommitLog
  readonly #unflushed: UnflushedRows
  readonly #recent = new RecentRows()

  constructor(client: LakeClient, commits: CommitLog, unflushed: UnflushedRows) {
    this.#client = client
    this.#commits = commits
    this.#unflushed = unflushed
  }

  /** Adds the rows of a durable commit. `encoded` are the same rows as they were written to the log. */
  add(writes: readonly Write[], encoded: readonly EncodedRow[], { knownAtMs, position }: AppendResult): void {
    const rows = writes.map(({ table, row }) => identifyRow(table, row))
    this.#unflushed.add(rows, position)
    rows.forEach(({ table, submission }, index) => {
      if (submission !== null && isSubmissionTable(table))
        this.#recent.add(submission.analysisId, table, knownAtMs, encoded[index].json)
    })
  }

  /** Null: there is no such submission. */
  async find(analysisId: string, nowMs: number): Promise<SubmissionRow | null> {
    const recent = this.#recent.find(analysisId)
    if (recent !== null) return completeRow(recent.table, recent.row, recent.knownAtMs)
    for (const position of this.#unflushed.find(analysisId)) {
      const row = await this.#readFromLog(position, analysisId)
      if (row !== null) return row
    }
    return this.#client.askPatiently('find', { analysisId, nowMs }, LOOKUP_TIMEOUT_MS)
  }

  /** Null where that record does not hold the submission, or its segment was removed since: then the lake has it. */
  async #readFromLog(position: Position, analysisId: string): Promise<SubmissionRow | null> {
    const record = await readUnlessRemoved(this.#commits, position)
    if (record === null) return null
    for (const [table, row] of record.rows())
      if (isSubmissionTable(table) && row.analysis_id === analysisId)
        return completeRow(table, row, record.knownAtMs)
    return null
  }
}

/** A commit of the log; null where its segment was removed since: then the lake has it. Rejects with `unavailable`. */
export async function readUnlessRemoved(
  commits: Pick<CommitLog, 'read'>,
  position: Position,
): Promise<StoredCommit | null> {
  try {
    return await commits.read(position)
  } catch (error) {
    if (error instanceof LogError && error.code === 'segment_removed') return null
    throw unavailable(`the log cannot be read: ${errorMessage(error)}`)
  }
}
