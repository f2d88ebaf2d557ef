// In: a data folder. Out: its state database, open: the list of the lake's files, the state, open outcomes; and one
// connection for each kind of work, so that none waits for another. Never answers a question about the rows.

import { mkdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import type { DuckDBAppender, DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { syncPath } from '../../lib/files.ts'
import { messageOf } from '../../lib/messages.ts'
import { TABLES, type Table } from '../../schema/tables.ts'
import { StoreError, unavailable } from '../errors.ts'
import {
  DUCKDB_FREED_MEMORY_KEPT,
  DUCKDB_MEMORY_LIMIT,
  DUCKDB_THREADS,
  LOOKUPS_WAITING_MAX,
  RENEWAL_ROOM,
  TASKS_WAITING_MAX,
} from '../limits.ts'
import { spillFolder, stateLogPath, statePath } from '../paths.ts'
import { CREATE_STATE } from '../state/state-sql.ts'
import { type Serial, serial } from './connection-queue.ts'
import { CLOSED_TO_EXTENSIONS, duckdb, lockHolder, openWhenFree } from './duckdb.ts'
import { query } from './query.ts'
import {
  addColumn,
  CREATE_MANIFEST,
  commentOnColumn,
  commentOnTable,
  createTable,
  MARKET_DATABASE,
} from './sql.ts'

/** One connection and the queue before it. */
export interface ConnectionQueue {
  run<T>(task: (connection: DuckDBConnection) => Promise<T>): Promise<T>
  /** Interrupts the task under way, refuses further ones, and resolves when none is left. */
  close(): Promise<void>
}

export interface Database {
  readonly dataDir: string
  /** Whatever writes: flushes, merges, outcomes. */
  maintenance: ConnectionQueue
  /** Looks for submissions in the lake's files. */
  lookups: ConnectionQueue
  /** Counts rows, so that nobody else waits for it. */
  status: ConnectionQueue
  /** Makes durable what a process before has left, which was killed, or whose disk failed: nothing may go that only this
   *  says is elsewhere. Asked for on the connection of maintenance. */
  renew(connection: DuckDBConnection): Promise<void>
  /** Makes durable the name of the log that the last commits went to: DuckDB begins one after each checkpoint, and syncs
   *  its bytes alone. */
  syncNames(): Promise<void>
  close(): Promise<void>
}

const FATAL = /FATAL Error|INTERNAL Error|has been invalidated/
const FULL = /No space left on device|Disk quota exceeded|ENOSPC|EDQUOT/
/** Rows are checked before they are appended: an append that fails is never theirs. */
const WORLD =
  /^(Failed to append|(IO|Out of Memory|FATAL|INTERNAL|TransactionContext|Interrupted?|INTERRUPT|Connection) Error)/i

/** True when DuckDB will not answer again before it is opened anew. A StoreError is ours, whatever it tells of. */
export const isFatalError = (error: unknown): boolean =>
  !(error instanceof StoreError) && FATAL.test(messageOf(error))

/** True when there was no room to write. DuckDB has taken back what it began; it reads on, and writes when there is room. */
export const isFullError = (error: unknown): boolean => FULL.test(messageOf(error)) && !isFatalError(error)

/** True when the database was opened for reading alone, and its disk takes writes by now. */
export const isOpenedReadOnly = (error: unknown): boolean =>
  /attached in read-only mode/.test(messageOf(error))

/** True when the disk takes no writes at all. */
export const isReadOnlyError = (error: unknown): boolean =>
  /Read-only file system|EROFS|read-only mode/.test(messageOf(error))

/** True when the disk or DuckDB itself failed, rather than the row. */
export const isWorldError = (error: unknown): boolean => WORLD.test(messageOf(error)) || isFatalError(error)

function connectionQueue(connection: DuckDBConnection, queue: Serial): ConnectionQueue {
  return {
    run: (task) => queue.run(() => task(connection)),
    close: () => {
      const closed = queue.close()
      connection.interrupt()
      return closed
    },
  }
}

/** Runs `work` in one transaction: all of it or nothing. */
export async function transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T> {
  await connection.run('BEGIN TRANSACTION')
  try {
    const result = await work()
    await connection.run('COMMIT')
    return result
  } catch (error) {
    // A COMMIT that failed has ended the transaction already: then there is nothing to roll back.
    await connection.run('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** Appends what `write` says to a table of the catalog `catalog`, or of the connection's own: all of it or nothing. */
export async function appending(
  connection: DuckDBConnection,
  table: string,
  catalog: string | undefined,
  write: (appender: DuckDBAppender) => void | Promise<void>,
): Promise<void> {
  const appender = await connection.createAppender(table, 'main', catalog)
  try {
    await write(appender)
    appender.flushSync()
  } finally {
    // After a failure it would otherwise try again to write what it holds when it is closed.
    appender.clear()
    appender.closeSync()
  }
}

/** Nothing in it outlives a run: what bears its name and is no folder is in the way. */
function makeSpillFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) rmSync(path)
  mkdirSync(path, { recursive: true })
}

async function createInstance(dataDir: string): Promise<DuckDBInstance> {
  // Merges and outcomes spill to folders in it: DuckDB makes no more than the last folder of a path.
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
      ...CLOSED_TO_EXTENSIONS,
    })
  try {
    // The folder is our server's: whoever has the file has no server any more.
    return await openWhenFree(create('READ_WRITE'), () => true)
  } catch (error) {
    // What there is can be read; each write says why it fails.
    if (isReadOnlyError(error)) return create('READ_ONLY')()
    const message = messageOf(error)
    const by = lockHolder(message)
    if (by === null) throw unavailable(`the store ${path} cannot be opened: ${message}`)
    throw unavailable(`the data folder ${dataDir} is in use by another process${by}`)
  }
}

interface StoredColumn {
  table_name: string
  column_name: string
  comment: string | null
}

const STORED_COLUMNS = `SELECT table_name, column_name, comment FROM duckdb_columns()
  WHERE schema_name = 'main' AND NOT internal ORDER BY table_name, column_index`

async function storedColumns(connection: DuckDBConnection): Promise<Map<string, StoredColumn[]>> {
  const byTable = new Map<string, StoredColumn[]>()
  for (const column of await query<StoredColumn>(connection, STORED_COLUMNS)) {
    byTable.set(column.table_name, [...(byTable.get(column.table_name) ?? []), column])
  }
  return byTable
}

/** What brings one table of the file to the shape of schema/tables.ts; empty when it has it. */
function definitions(table: Table, stored: readonly StoredColumn[] | undefined): string[] {
  const comments = new Map(stored?.map((column) => [column.column_name, column.comment]))
  const missing = table.columns.filter((column) => !comments.has(column.name))
  const shape =
    stored === undefined
      ? [createTable(table), commentOnTable(table)]
      : missing.map((column) => addColumn(table, column))
  const stale = table.columns.filter((column) => comments.get(column.name) !== column.comment)
  return [...shape, ...stale.map((column) => commentOnColumn(table, column))]
}

/** Tables that lie in the state database, beside the list of files and the state itself. */
const KEPT_TABLES: readonly Table[] = [TABLES.outcomes, TABLES.outcomes_open]

async function define(connection: DuckDBConnection): Promise<void> {
  const stored = await storedColumns(connection)
  const statements = KEPT_TABLES.flatMap((table) => definitions(table, stored.get(table.name)))
  const all = [...CREATE_MANIFEST, ...CREATE_STATE, ...statements]
  await transaction(connection, async () => void (await connection.run(all.join(';\n'))))
}

/** Bars wait in memory. */
async function defineMarketData(connection: DuckDBConnection): Promise<void> {
  await connection.run(`ATTACH ':memory:' AS ${MARKET_DATABASE} (READ_WRITE)`)
  await connection.run(createTable(TABLES.bars))
}

const bytesOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size

/**
 * Writes the database anew from what is read of it. Where a sync has failed, what it should have covered can be read, and
 * a later sync says nothing about it. Full disks are told of before DuckDB meets them: it would not go on after that.
 */
async function renewed(connection: DuckDBConnection, dataDir: string): Promise<void> {
  const path = statePath(dataDir)
  const needed = RENEWAL_ROOM * ((bytesOf(path) ?? 0) + (bytesOf(stateLogPath(dataDir)) ?? 0))
  const { bavail, bsize } = statfsSync(dataDir)
  if (bavail * bsize < needed) throw unavailable(`No space left on device to write ${path} anew`)
  // With nothing to write a checkpoint does nothing.
  await connection.run('UPDATE state_position SET is_begun = is_begun')
  await connection.run('CHECKPOINT')
}

/** Opens or creates the state database of `dataDir`. Rejects with `unavailable` when it is locked or cannot be read. */
export async function openDatabase(dataDir: string): Promise<Database> {
  let isDoubtful = bytesOf(stateLogPath(dataDir)) !== undefined
  const instance = await createInstance(dataDir)
  const connections = [await instance.connect(), await instance.connect(), await instance.connect()] as const
  await define(connections[0]).catch((error: unknown) => {
    if (!isReadOnlyError(error)) throw error
  })
  await defineMarketData(connections[0])
  const queues = [
    connectionQueue(connections[0], serial('maintenance tasks', TASKS_WAITING_MAX)),
    connectionQueue(connections[1], serial('look-ups in the lake', LOOKUPS_WAITING_MAX)),
    connectionQueue(connections[2], serial('counts of rows', TASKS_WAITING_MAX)),
  ] as const

  async function close(): Promise<void> {
    await Promise.all(queues.map((each) => each.close()))
    for (const connection of connections) connection.closeSync()
    instance.closeSync()
  }

  async function renew(connection: DuckDBConnection): Promise<void> {
    if (isDoubtful) await renewed(connection, dataDir)
    isDoubtful = false
  }

  const [maintenance, lookups, status] = queues
  const syncNames = () => syncPath(dataDir)
  return { dataDir, maintenance, lookups, status, renew, syncNames, close }
}
