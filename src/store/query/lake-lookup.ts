// Looks up a submission in the lake. Its ID contains its time, so only files of that day are read.

import type { DuckDBConnection } from '@duckdb/node-api'
import { decodeTime } from 'ulid'
import { DAY_MS } from '../../lib/time.ts'
import { isAnalysisId } from '../../schema/submission.ts'
import { type SubmissionRow, TABLES } from '../../schema/tables.ts'
import { query } from '../duckdb/query.ts'
import { type LakeTable, selectList } from '../duckdb/sql.ts'
import { unavailable } from '../errors.ts'
import { utcDate } from '../lake/lake-files.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { listQuarantinedFiles } from '../lake/manifest.ts'
import { selectNewestRows } from '../lake/parquet-sql.ts'

const ID_PREFIX = 'an_'
/** The tables that have submissions. */
export const SUBMISSION_TABLES: readonly LakeTable[] = [TABLES.training, TABLES.rejections]

/** The UTC dates under which a submission may be stored. Two, because IDs keep rising when the clock steps back past midnight. */
function findDates(analysisId: string): string[] {
  if (!isAnalysisId(analysisId)) return []
  const timeMs = decodeTime(analysisId.slice(ID_PREFIX.length))
  return Number.isFinite(new Date(timeMs).getTime()) ? [utcDate(timeMs), utcDate(timeMs - DAY_MS)] : []
}

/** Finds an accepted or rejected submission; null where there is none. Rejects with `unavailable` where a lost file may have it. */
export async function findSubmission(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  { analysisId, nowMs }: { analysisId: string; nowMs: number },
): Promise<SubmissionRow | null> {
  const dates = findDates(analysisId)
  if (dates.length === 0) return null
  for (const table of SUBMISSION_TABLES) {
    const rows = await reader.readConcurrently(connection, {
      table,
      nowMs,
      isNeeded: ({ date }) => dates.includes(date),
      work: async (files) =>
        files.length === 0
          ? []
          : query<SubmissionRow>(
              connection,
              `SELECT ${selectList(table)} FROM (${selectNewestRows(table, files)}) WHERE analysis_id = $id LIMIT 1`,
              { id: analysisId },
            ),
    })
    if (rows.length > 0) return rows[0]
  }
  await checkLost(connection, dates)
  return null
}

async function checkLost(connection: DuckDBConnection, dates: readonly string[]): Promise<void> {
  const lost = (await listQuarantinedFiles(connection)).find(
    ({ table, date, rowsLost, acknowledgedAtMs }) =>
      SUBMISSION_TABLES.some(({ name }) => name === table) &&
      dates.includes(date) &&
      rowsLost > 0 &&
      acknowledgedAtMs === null,
  )
  if (lost !== undefined)
    throw unavailable(
      `submissions of ${lost.date} are missing with a file of the lake that is lost or damaged`,
    )
}
