// In: the identity of a submission that the store's tables no longer have. Out: its row, from the lake. An identity
// tells when it was made, so only files of that day are looked at; one that tells nothing was never made here. Never
// trusts that a file is still there: one that was replaced meanwhile is looked for anew, a damaged one is left out.
import { decodeTime } from 'ulid'
import { DAY_MS } from '../../lib/time.ts'
import { isAnalysisId } from '../../schema/submission.ts'
import { type SubmissionRow, TABLES } from '../../schema/tables.ts'
import type { ConnectionQueue } from '../duckdb/database.ts'
import { query } from '../duckdb/query.ts'
import { type LakeTable, selectList } from '../duckdb/sql.ts'
import { unavailable } from '../errors.ts'
import { utcDate } from '../lake/lake-files.ts'
import { selectFromFiles } from '../lake/parquet-sql.ts'
import type { SetAside } from '../lake/set-aside.ts'

const IDENTITY_PREFIX = 'an_'
/** Where a submission can be. */
const TABLES_SEARCHED: readonly LakeTable[] = [TABLES.training, TABLES.rejections]

/** UTC dates that a submission may stand under; identities keep rising where the clock steps back past midnight. */
function datesOf(analysisId: string): string[] {
  if (!isAnalysisId(analysisId)) return []
  const timeMs = decodeTime(analysisId.slice(IDENTITY_PREFIX.length))
  return Number.isFinite(new Date(timeMs).getTime()) ? [utcDate(timeMs), utcDate(timeMs - DAY_MS)] : []
}

export interface LakeLookup {
  find(analysisId: string, nowMs: number): Promise<SubmissionRow | null>
}

export function openLakeLookup(
  connections: ConnectionQueue,
  files: Pick<SetAside, 'readBeside'>,
): LakeLookup {
  const findIn = (table: LakeTable, dates: readonly string[], analysisId: string, nowMs: number) =>
    connections.run((connection) =>
      files.readBeside(connection, {
        table,
        nowMs,
        wanted: ({ date }) => dates.includes(date),
        async work(parts) {
          if (parts.length === 0) return null
          const rows = await query<SubmissionRow>(
            connection,
            `SELECT ${selectList(table)} FROM (${selectFromFiles(table, parts)}) WHERE analysis_id = $id LIMIT 1`,
            { id: analysisId },
          )
          return rows[0] ?? null
        },
      }),
    )

  return {
    async find(analysisId, nowMs) {
      const dates = datesOf(analysisId)
      if (dates.length === 0) return null
      try {
        for (const table of TABLES_SEARCHED) {
          const row = await findIn(table, dates, analysisId, nowMs)
          if (row !== null) return row
        }
        return null
      } catch (error) {
        // Said in words of our own: a file that cannot be read is no reason to open the store anew.
        throw unavailable(`the lake cannot be read: ${String(error)}`)
      }
    },
  }
}
