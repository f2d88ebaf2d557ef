// In: the identity of a submission that the store's tables no longer have. Out: its row, from the lake. An identity
// tells when it was made, so only files of that day are looked at; one that tells nothing was never made here. Never
// trusts that a file is still there: one that was replaced meanwhile is looked for anew.
import { decodeTime } from 'ulid'
import { ServiceError } from '../schema/errors.ts'
import { isAnalysisId } from '../schema/submission.ts'
import { type Row, TABLES } from '../schema/tables.ts'
import { type Lane, query } from './database.ts'
import { utcDate } from './lake-files.ts'
import { ARCHIVE_ATTEMPTS } from './limits.ts'
import { type ListedPart, liveParts } from './manifest.ts'
import { readableFiles, selectFromFiles } from './parquet-sql.ts'
import { type LakeTable, selectList } from './sql.ts'

const DAY_MS = 86_400_000
const IDENTITY_PREFIX = 'an_'
/** Where a submission can be. */
const TABLES_SEARCHED: readonly LakeTable[] = [TABLES.training, TABLES.rejections]

/** UTC dates that a submission may stand under; identities keep rising where the clock steps back past midnight. */
function datesOf(analysisId: string): string[] {
  if (!isAnalysisId(analysisId)) return []
  const timeMs = decodeTime(analysisId.slice(IDENTITY_PREFIX.length))
  return Number.isFinite(new Date(timeMs).getTime()) ? [utcDate(timeMs), utcDate(timeMs - DAY_MS)] : []
}

export interface Archive {
  find(analysisId: string): Promise<Row | null>
}

export function openArchive(lane: Lane, pathOf: (part: ListedPart) => string): Archive {
  async function findIn(table: LakeTable, dates: readonly string[], analysisId: string): Promise<Row | null> {
    return lane.run(async (connection) => {
      const live = await liveParts(connection, table.name)
      const parts = live.filter(({ date }) => dates.includes(date))
      if (parts.length === 0) return null
      const files = readableFiles(parts, pathOf)
      const rows = await query<Row>(
        connection,
        `SELECT ${selectList(table)} FROM (${selectFromFiles(table, files)}) WHERE analysis_id = $id LIMIT 1`,
        { id: analysisId },
      )
      return rows[0] ?? null
    })
  }

  async function find(analysisId: string): Promise<Row | null> {
    const dates = datesOf(analysisId)
    if (dates.length === 0) return null
    for (const table of TABLES_SEARCHED) {
      const row = await findIn(table, dates, analysisId)
      if (row !== null) return row
    }
    return null
  }

  return {
    async find(analysisId) {
      let last: unknown
      for (let attempt = 0; attempt < ARCHIVE_ATTEMPTS; attempt++) {
        try {
          return await find(analysisId)
        } catch (error) {
          last = error
        }
      }
      // Said in words of our own: a file that cannot be read is no reason to open the store anew.
      throw new ServiceError('store_unavailable', `the lake cannot be read: ${String(last)}`)
    },
  }
}
