// Looks up a submission in the lake. Its ID contains its time, so only files of that day are read.

import { decodeTime } from 'ulid'
import { DAY_MS } from '../../lib/time.ts'
import { isAnalysisId } from '../../schema/submission.ts'
import { type SubmissionRow, TABLES } from '../../schema/tables.ts'
import type { ConnectionQueue } from '../duckdb/database.ts'
import { query } from '../duckdb/query.ts'
import { type LakeTable, selectList } from '../duckdb/sql.ts'
import { unavailable } from '../errors.ts'
import { utcDate } from '../lake/lake-files.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { selectNewestRows } from '../lake/parquet-sql.ts'

const ID_PREFIX = 'an_'
/** The tables that have submissions. */
const SUBMISSION_TABLES: readonly LakeTable[] = [TABLES.training, TABLES.rejections]

/** The UTC dates under which a submission may be stored. Two, because IDs keep rising when the clock steps back past midnight. */
function findDates(analysisId: string): string[] {
  if (!isAnalysisId(analysisId)) return []
  const timeMs = decodeTime(analysisId.slice(ID_PREFIX.length))
  return Number.isFinite(new Date(timeMs).getTime()) ? [utcDate(timeMs), utcDate(timeMs - DAY_MS)] : []
}

export class LakeLookup {
  readonly #connections: ConnectionQueue
  readonly #reader: LiveFileReader

  constructor(connections: ConnectionQueue, reader: LiveFileReader) {
    this.#connections = connections
    this.#reader = reader
  }

  /** Finds an accepted or rejected submission; null where there is none. Rejects with `unavailable`. */
  async find(analysisId: string, nowMs: number): Promise<SubmissionRow | null> {
    const dates = findDates(analysisId)
    if (dates.length === 0) return null
    try {
      for (const table of SUBMISSION_TABLES) {
        const row = await this.#findIn(table, dates, analysisId, nowMs)
        if (row !== null) return row
      }
      return null
    } catch (error) {
      // Wrapped, so that the error of an unreadable file is not taken for a fatal one of the store's database.
      throw unavailable(`the lake cannot be read: ${String(error)}`)
    }
  }

  #findIn(table: LakeTable, dates: readonly string[], analysisId: string, nowMs: number) {
    return this.#connections.run((connection) =>
      this.#reader.readConcurrently(connection, {
        table,
        nowMs,
        isNeeded: ({ date }) => dates.includes(date),
        async work(files) {
          if (files.length === 0) return null
          const rows = await query<SubmissionRow>(
            connection,
            `SELECT ${selectList(table)} FROM (${selectNewestRows(table, files)}) WHERE analysis_id = $id LIMIT 1`,
            { id: analysisId },
          )
          return rows[0] ?? null
        },
      }),
    )
  }
}
