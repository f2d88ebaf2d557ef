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

type Attempt<Result> =
  | { ok: true; result: Result }
  | { ok: false; error: unknown; files: readonly ListedFile[] }

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
  async read<Result>(connection: DuckDBConnection, read: LiveFileRead<Result>): Promise<Result> {
    for (;;) {
      const attempt = await this.#attempt(connection, read)
      if (attempt.ok) return attempt.result
      const faulty = await this.#quarantine.check(connection, attempt.files, 'content', read.nowMs)
      if (faulty === 0) throw attempt.error
    }
  }

  /** Runs `work` on another connection, while maintenance may change the list of files. */
  async readConcurrently<Result>(connection: DuckDBConnection, read: LiveFileRead<Result>): Promise<Result> {
    for (let attempts = 1; ; attempts++) {
      const attempt = await this.#attempt(connection, read)
      if (attempt.ok) return attempt.result
      const { error, files } = attempt
      const faulty = await this.#database.maintenance.run((owner) =>
        this.#quarantine.check(owner, files, 'content', read.nowMs),
      )
      const live = new Set((await listLiveFiles(connection, read.table.name)).map(relativePath))
      const areAllLive = files.every((file) => live.has(relativePath(file)))
      // Files replaced in the meantime are a reason to try again as well.
      if (attempts >= READ_ATTEMPTS_MAX || (faulty === 0 && areAllLive)) throw error
    }
  }

  async #attempt<Result>(
    connection: DuckDBConnection,
    { table, isNeeded, work }: LiveFileRead<Result>,
  ): Promise<Attempt<Result>> {
    const files = (await listLiveFiles(connection, table.name)).filter(isNeeded)
    try {
      return { ok: true, result: await work(toReadableFiles(files, this.#paths.pathOf)) }
    } catch (error) {
      if (!mayBeDamage(error)) throw error
      return { ok: false, error, files }
    }
  }
}
