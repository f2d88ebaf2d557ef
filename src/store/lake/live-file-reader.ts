// Runs work over the live files of a table. Where it fails, its files are checked, faulty ones are quarantined, and the work
// runs again over the rest: one damaged file does not keep the others from being read.
import type { DuckDBConnection } from '@duckdb/node-api'
import { type Database, isFatalError, isFullError } from '../duckdb/database.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { READ_ATTEMPTS_MAX } from '../limits.ts'
import { isResourceError } from './file-check.ts'
import { relativePath } from './lake-files.ts'
import type { LakePaths } from './links.ts'
import { type ListedFile, listLiveFiles } from './manifest.ts'
import { type ReadableFile, toReadableFiles } from './parquet-sql.ts'
import type { Quarantine } from './quarantine.ts'

/** Work over the live files of one table. */
export interface LiveFileRead<Result> {
  table: LakeTable
  nowMs: number
  /** Which of the live files it needs. */
  isNeeded(file: ListedFile): boolean
  /** May run several times. */
  work(files: readonly ReadableFile[]): Promise<Result>
}

/** Whether a damaged file may be the cause of a failure. */
const mayBeDamage = (error: unknown): boolean =>
  !isFatalError(error) && !isFullError(error) && !isResourceError(error)

export class LiveFileReader {
  readonly #database: Database
  readonly #paths: LakePaths
  readonly #quarantine: Quarantine

  constructor(database: Database, paths: LakePaths, quarantine: Quarantine) {
    this.#database = database
    this.#paths = paths
    this.#quarantine = quarantine
  }

  /** Runs `work` on the maintenance connection, which may change the list of files. */
  read<Result>(connection: DuckDBConnection, read: LiveFileRead<Result>): Promise<Result> {
    return this.#read(
      connection,
      read,
      async (files) => (await this.#quarantine.check(connection, files, 'content', read.nowMs)) > 0,
    )
  }

  /** Runs `work` on another connection, while maintenance may change the list of files. */
  readConcurrently<Result>(connection: DuckDBConnection, read: LiveFileRead<Result>): Promise<Result> {
    return this.#read(connection, read, async (files) => {
      const faulty = await this.#database.maintenance.run((owner) =>
        this.#quarantine.check(owner, files, 'content', read.nowMs),
      )
      const live = new Set((await listLiveFiles(connection, read.table.name)).map(relativePath))
      // Files replaced in the meantime are a reason to try again as well.
      return faulty > 0 || files.some((file) => !live.has(relativePath(file)))
    })
  }

  /** @param haveChanged quarantines what is damaged of the files that `work` has failed on; whether others are to be read now */
  async #read<Result>(
    connection: DuckDBConnection,
    { table, isNeeded, work }: LiveFileRead<Result>,
    haveChanged: (files: readonly ListedFile[]) => Promise<boolean>,
  ): Promise<Result> {
    for (let attempts = 1; ; attempts++) {
      const files = (await listLiveFiles(connection, table.name)).filter(isNeeded)
      try {
        return await work(toReadableFiles(files, this.#paths.pathOf))
      } catch (error) {
        if (!mayBeDamage(error) || !(await haveChanged(files)) || attempts >= READ_ATTEMPTS_MAX) throw error
      }
    }
  }
}
