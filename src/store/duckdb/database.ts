// The state database: the list of the lake's files, the state, and open outcomes. Each kind of work has a connection of
// its own, so that none waits for another.
import { createWriteStream, rmSync, statfsSync, statSync } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import pLimit from 'p-limit'
import { errorMessage } from '../../lib/error-text.ts'
import { makeFolder, makeFolderNow, syncPath } from '../../lib/files.ts'
import { TABLES, type Table } from '../../schema/tables.ts'
import { StoreError, unavailable } from '../errors.ts'
import {
  DUCKDB_FREED_MEMORY_KEPT,
  DUCKDB_MEMORY_LIMIT,
  DUCKDB_THREADS,
  LISTS_WAITING_MAX,
  LOOKUPS_WAITING_MAX,
  REWRITE_DISK_FACTOR,
  TASKS_WAITING_MAX,
} from '../limits.ts'
import { spillFolder, stateLogPath, statePath } from '../paths.ts'
import { CREATE_STATE } from '../state/state-sql.ts'
import { explainDamage, isDamage } from './damaged-state.ts'
import { describeLockHolder, duckdb, folderInUse, NO_EXTENSIONS, retryWhileLocked } from './duckdb.ts'
import {
  addColumn,
  CREATE_MANIFEST,
  createEmptyTable,
  createTable,
  MARKET_DATABASE,
  relation,
} from './sql.ts'

/** A connection and the tasks that wait for it, in order of arrival: two queries must not share one. */
class ConnectionQueue {
  readonly #connection: DuckDBConnection
  readonly #name: string
  readonly #waitingMax: number
  readonly #turns = pLimit(1)
  #isClosed = false

  /** @param name what the tasks are, in the plural, for error texts */
  constructor(connection: DuckDBConnection, name: string, waitingMax: number) {
    this.#connection = connection
    this.#name = name
    this.#waitingMax = waitingMax
  }

  /** Runs `task` after those before it. Rejects with `unavailable` where too many wait, or the queue is closed. */
  async run<T>(task: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw unavailable(`the store is closing and takes no more ${this.#name}`)
    if (this.#turns.activeCount + this.#turns.pendingCount >= this.#waitingMax)
      throw unavailable(`too many ${this.#name} are waiting`)
    return this.#turns(() => task(this.#connection))
  }

  /** Interrupts the running task, refuses further ones, and closes the connection when none is left. */
  async close(): Promise<void> {
    this.#isClosed = true
    const drained = this.#turns(() => undefined)
    this.#connection.interrupt()
    await drained
    this.#connection.closeSync()
  }
}

export class Database {
  readonly dataDir: string
  /** Everything that writes: flushes, merges, outcomes. */
  readonly maintenance: ConnectionQueue
  /** Look-ups of submissions in the lake's files. */
  readonly lookups: ConnectionQueue
  /** Lists of submissions. */
  readonly lists: ConnectionQueue
  /** Row counts for `/health`: no other work waits for them. */
  readonly status: ConnectionQueue
  readonly #instance: DuckDBInstance
  /**
   * The file of this database, since it was first copied. It stays open as long as DuckDB has it: a process that closes any
   * descriptor of a file gives up its locks on it, and DuckDB's keeps the next server's lake process out until this one has ended.
   */
  #file: FileHandle | null = null
  /** An earlier process left a log: what can be read of it may not be on the disk. */
  #mayLackSync: boolean

  constructor(
    dataDir: string,
    instance: DuckDBInstance,
    mayLackSync: boolean,
    { maintenance, lookups, lists, status }: Pick<Database, 'maintenance' | 'lookups' | 'lists' | 'status'>,
  ) {
    this.dataDir = dataDir
    this.#instance = instance
    this.#mayLackSync = mayLackSync
    this.maintenance = maintenance
    this.lookups = lookups
    this.lists = lists
    this.status = status
  }

  /**
   * Makes durable what an earlier process wrote before it was killed or its disk failed. Must happen before anything is
   * deleted because this database says that its rows are elsewhere.
   * @param connection that of `maintenance`
   */
  async makeDurable(connection: DuckDBConnection): Promise<void> {
    if (this.#mayLackSync) await rewrite(connection, this.dataDir)
    this.#mayLackSync = false
  }

  /**
   * Syncs the data folder. DuckDB starts a new log file after each checkpoint and syncs its content, but not its name in the
   * folder.
   */
  syncFolder(): Promise<void> {
    return syncPath(this.dataDir)
  }

  /** Copies the file of the database, which nobody may write meanwhile, and syncs the copy. @returns its bytes */
  async copyFile(to: string): Promise<number> {
    await makeFolder(dirname(to))
    this.#file ??= await open(statePath(this.dataDir), 'r')
    await pipeline(
      this.#file.createReadStream({ start: 0, autoClose: false }),
      createWriteStream(to, { flags: 'wx' }),
    )
    await syncPath(to)
    return (await stat(to)).size
  }

  async close(): Promise<void> {
    const queues = [this.maintenance, this.lookups, this.lists, this.status]
    await Promise.all(queues.map((queue) => queue.close()))
    this.#instance.closeSync()
    await this.#file?.close()
  }
}

const FATAL = /FATAL Error|INTERNAL Error|has been invalidated/
const FULL = /No space left on device|Disk quota exceeded|ENOSPC|EDQUOT/
/** A failed append counts as one too: rows are checked before they are appended. */
const SYSTEM =
  /^(Failed to append|(IO|Out of Memory|FATAL|INTERNAL|TransactionContext|Interrupted?|INTERRUPT|Connection) Error)/i

/** True when DuckDB must be reopened before it answers again. A StoreError never counts, whatever its text quotes. */
export const isFatalError = (error: unknown): boolean =>
  !(error instanceof StoreError) && FATAL.test(errorMessage(error))

/** True when the disk was full. DuckDB has rolled back, still reads, and writes again when there is space. */
export const isFullError = (error: unknown): boolean => FULL.test(errorMessage(error)) && !isFatalError(error)

/** True when a write failed because the database was opened read-only: the disk was read-only then. */
export const isOpenedReadOnly = (error: unknown): boolean =>
  /attached in read-only mode/.test(errorMessage(error))

/** True when the disk is mounted read-only. */
export const isReadOnlyError = (error: unknown): boolean =>
  /Read-only file system|EROFS|read-only mode/.test(errorMessage(error))

/** True when the disk or DuckDB failed, rather than a row not fitting its table. */
export const isSystemError = (error: unknown): boolean =>
  SYSTEM.test(errorMessage(error)) || isFatalError(error)

/** Runs `work` in a transaction; rolls back where it throws. */
export async function transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T> {
  await connection.run('BEGIN TRANSACTION')
  try {
    const result = await work()
    await connection.run('COMMIT')
    return result
  } catch (error) {
    // A failed COMMIT has ended the transaction already; then this fails, and that is fine.
    await connection.run('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** Creates the folder for spilled data. A file of that name is removed: nothing there outlives a run. */
function makeSpillFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) rmSync(path)
  makeFolderNow(path)
}

async function createInstance(dataDir: string): Promise<DuckDBInstance> {
  // Merges and outcomes spill to sub-folders, and DuckDB creates only the last folder of a path.
  try {
    makeSpillFolder(spillFolder(dataDir))
  } catch (error) {
    if (!isReadOnlyError(error)) throw error
  }
  const path = statePath(dataDir)
  const create = (access: 'READ_WRITE' | 'READ_ONLY') => () =>
    duckdb.DuckDBInstance.create(path, {
      access_mode: access,
      threads: String(DUCKDB_THREADS),
      memory_limit: DUCKDB_MEMORY_LIMIT,
      allocator_flush_threshold: DUCKDB_FREED_MEMORY_KEPT,
      allocator_bulk_deallocation_flush_threshold: DUCKDB_FREED_MEMORY_KEPT,
      temp_directory: spillFolder(dataDir),
      ...NO_EXTENSIONS,
    })
  try {
    // This server owns the data folder, so another process with the file open has lost its server and will end.
    return await retryWhileLocked(create('READ_WRITE'), () => true)
  } catch (error) {
    // Reads work, and each write fails with its reason.
    if (isReadOnlyError(error)) return create('READ_ONLY')()
    const message = errorMessage(error)
    const by = describeLockHolder(message)
    if (isDamage(error)) throw explainDamage(dataDir, error)
    if (by === null) throw unavailable(`the store ${path} cannot be opened: ${message}`)
    throw folderInUse(dataDir, by)
  }
}

/** Tables of rows in the state database. */
const STATE_DATABASE_TABLES: readonly Table[] = [TABLES.outcomes, TABLES.outcomes_open]

/** The columns of a table of an earlier version are added to: those that it lacks are NULL in its rows. */
async function addMissingColumns(connection: DuckDBConnection, table: Table): Promise<void> {
  const stored = (await connection.run(`FROM ${relation(table)} LIMIT 0`)).columnNames()
  const missing = table.columns.filter(({ name }) => !stored.includes(name))
  if (missing.length === 0) return
  await connection.run(missing.map((column) => addColumn(table, column)).join(';\n'))
}

async function createTables(connection: DuckDBConnection): Promise<void> {
  const all = [...CREATE_MANIFEST, ...CREATE_STATE, ...STATE_DATABASE_TABLES.map(createTable)]
  await transaction(connection, async () => {
    await connection.run(all.join(';\n'))
    for (const table of STATE_DATABASE_TABLES) await addMissingColumns(connection, table)
  })
}

/** Bars that wait for a flush are kept in an attached database in memory. */
async function createMarketDatabase(connection: DuckDBConnection): Promise<void> {
  await connection.run(`ATTACH ':memory:' AS ${MARKET_DATABASE} (READ_WRITE)`)
  await connection.run(createEmptyTable(TABLES.bars))
}

const fileSizeBytes = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size

/**
 * Writes the database file again from its readable content. After a failed sync, data that was never stored can still be read
 * from the page cache, and a later sync succeeds without writing it. Free space is checked first, since DuckDB does not
 * recover from a full disk here.
 */
async function rewrite(connection: DuckDBConnection, dataDir: string): Promise<void> {
  const path = statePath(dataDir)
  const bytes = (fileSizeBytes(path) ?? 0) + (fileSizeBytes(stateLogPath(dataDir)) ?? 0)
  const { bavail, bsize } = statfsSync(dataDir)
  if (bavail * bsize < REWRITE_DISK_FACTOR * bytes)
    throw unavailable(`No space left on device to write ${path} anew`)
  // A checkpoint without changes does nothing.
  await connection.run('UPDATE state_position SET is_begun = is_begun')
  await connection.run('CHECKPOINT')
}

/** Opens or creates the state database of `dataDir`. Rejects with `unavailable` when it is locked or unreadable. */
export async function openDatabase(dataDir: string): Promise<Database> {
  const mayLackSync = fileSizeBytes(stateLogPath(dataDir)) !== undefined
  const instance = await createInstance(dataDir)
  const queue = async (name: string, waitingMax: number): Promise<ConnectionQueue> =>
    new ConnectionQueue(await instance.connect(), name, waitingMax)
  const database = new Database(dataDir, instance, mayLackSync, {
    maintenance: await queue('maintenance tasks', TASKS_WAITING_MAX),
    lookups: await queue('look-ups in the lake', LOOKUPS_WAITING_MAX),
    lists: await queue('lists of submissions', LISTS_WAITING_MAX),
    status: await queue('row counts', TASKS_WAITING_MAX),
  })
  await database.maintenance.run(async (connection) => {
    await createTables(connection).catch((error: unknown) => {
      if (!isReadOnlyError(error)) throw error
    })
    await createMarketDatabase(connection)
  })
  return database
}
