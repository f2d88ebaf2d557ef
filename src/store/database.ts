// In: a data folder. Out: an open DuckDB with the tables of schema/tables.ts in it, and one connection for each kind of
// work, so that none waits for another. Never answers a question about the rows.

import { mkdirSync, rmSync, statSync } from 'node:fs'
import type { DuckDBAppender, DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { messageOf } from '../lib/messages.ts'
import { ServiceError } from '../schema/errors.ts'
import type { Table } from '../schema/tables.ts'
import { CLOSED_TO_EXTENSIONS, duckdb, lockHolder } from './duckdb.ts'
import {
  CHECKPOINT_FORCED,
  DUCKDB_MEMORY_LIMIT,
  DUCKDB_THREADS,
  LOOKUPS_WAITING_MAX,
  TASKS_WAITING_MAX,
} from './limits.ts'
import { databasePath, journalPath, spillFolder } from './paths.ts'
import { type Serial, serial } from './serial.ts'
import {
  ALL_TABLES,
  addColumn,
  CREATE_JOURNAL,
  CREATE_JOURNAL_MARK,
  CREATE_MANIFEST,
  commentOnColumn,
  commentOnTable,
  createTable,
  JOURNAL_DATABASE,
  literal,
  MARKET_DATABASE,
} from './sql.ts'
import { CREATE_SUMMARIES } from './summaries.ts'

/** One connection and the queue before it. */
export interface Lane {
  run<T>(task: (connection: DuckDBConnection) => Promise<T>): Promise<T>
  /** Interrupts the task under way, refuses further ones, and resolves when none is left. */
  close(): Promise<void>
}

export interface Database {
  readonly dataDir: string
  writer: Lane
  /** Moves rows from the journal to their tables. */
  spreader: Lane
  maintenance: Lane
  reader: Lane
  /** Looks for old rows in the lake's files. */
  archive: Lane
  /** Counts rows and files for /health: apart from the look-ups, whose callers must not wait behind it. */
  status: Lane
  close(): Promise<void>
}

const FATAL = /FATAL Error|INTERNAL Error|has been invalidated/
const FULL = /No space left on device|Disk quota exceeded|ENOSPC|EDQUOT/
const DURABLE = /COMMIT succeeded and is durable/
/** Rows are checked before they are appended: an append that fails is never theirs. */
const WORLD =
  /^(Failed to append|(IO|Out of Memory|FATAL|INTERNAL|TransactionContext|Interrupted?|INTERRUPT|Connection) Error)/i

/** True when DuckDB will not answer again before it is opened anew. A ServiceError is ours, whatever it tells of. */
export const isFatalError = (error: unknown): boolean =>
  !(error instanceof ServiceError) && FATAL.test(messageOf(error))

/** True when there was no room to write. DuckDB has taken back what it began; it reads on, and writes when there is room. */
export const isFullError = (error: unknown): boolean => FULL.test(messageOf(error)) && !isFatalError(error)

/** True when a transaction is durable all the same, though DuckDB must be opened anew: only its checkpoint failed. */
export const isDurableError = (error: unknown): boolean => DURABLE.test(messageOf(error))

/** True when the disk or DuckDB itself failed, rather than the row. */
export const isWorldError = (error: unknown): boolean => WORLD.test(messageOf(error)) || isFatalError(error)

function lane(connection: DuckDBConnection, queue: Serial): Lane {
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

/** Rows of a query as plain objects. */
export async function query<T>(
  connection: DuckDBConnection,
  sql: string,
  values: Record<string, string | number> = {},
): Promise<T[]> {
  const result = await connection.run(sql, values)
  return (await result.getRowObjectsJS()) as T[]
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
  makeSpillFolder(spillFolder(dataDir))
  const path = databasePath(dataDir)
  try {
    return await duckdb.DuckDBInstance.create(path, {
      threads: String(DUCKDB_THREADS),
      memory_limit: DUCKDB_MEMORY_LIMIT,
      temp_directory: spillFolder(dataDir),
      // A commit that finds the log this long writes a checkpoint itself: journal.ts does so before, beside the commits.
      checkpoint_threshold: CHECKPOINT_FORCED,
      // Rows stay until the lake has them, and are written anew by each checkpoint until then: to pack them costs more.
      force_compression: 'uncompressed',
      ...CLOSED_TO_EXTENSIONS,
    })
  } catch (error) {
    const message = messageOf(error)
    const by = lockHolder(message)
    if (by === null)
      throw new ServiceError('store_unavailable', `the store ${path} cannot be opened: ${message}`)
    throw new ServiceError('store_unavailable', `the data folder ${dataDir} is in use by another server${by}`)
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

async function define(connection: DuckDBConnection): Promise<void> {
  const stored = await storedColumns(connection)
  const kept = ALL_TABLES.filter(({ origin }) => origin !== 'market')
  const statements = kept.flatMap((table) => definitions(table, stored.get(table.name)))
  const all = [...CREATE_MANIFEST, ...CREATE_JOURNAL_MARK, ...CREATE_SUMMARIES, ...statements]
  await transaction(connection, async () => void (await connection.run(all.join(';\n'))))
}

/** The journal's own file, beside the tables'. */
async function defineJournal(connection: DuckDBConnection, dataDir: string): Promise<void> {
  const path = journalPath(dataDir)
  try {
    await connection.run(`ATTACH ${literal(path)} AS ${JOURNAL_DATABASE}`)
    await connection.run(CREATE_JOURNAL)
  } catch (error) {
    throw new ServiceError('store_unavailable', `the journal ${path} cannot be opened: ${messageOf(error)}`)
  }
}

/** Tables of market data, in memory. */
async function defineMarketData(connection: DuckDBConnection): Promise<void> {
  await connection.run(`ATTACH ':memory:' AS ${MARKET_DATABASE}`)
  for (const table of ALL_TABLES) if (table.origin === 'market') await connection.run(createTable(table))
}

/** Opens or creates the store of `dataDir`. Rejects with `store_unavailable` when it is locked or cannot be read. */
export async function openDatabase(dataDir: string): Promise<Database> {
  const instance = await createInstance(dataDir)
  const connections = [
    await instance.connect(),
    await instance.connect(),
    await instance.connect(),
    await instance.connect(),
    await instance.connect(),
    await instance.connect(),
  ] as const
  await define(connections[0])
  await defineJournal(connections[0], dataDir)
  await defineMarketData(connections[0])
  const lanes = [
    lane(connections[0], serial('commits', TASKS_WAITING_MAX)),
    lane(connections[1], serial('maintenance tasks', TASKS_WAITING_MAX)),
    lane(connections[2], serial('look-ups', LOOKUPS_WAITING_MAX)),
    lane(connections[3], serial('moves from the journal', TASKS_WAITING_MAX)),
    lane(connections[4], serial('look-ups in the lake', LOOKUPS_WAITING_MAX)),
    lane(connections[5], serial('counts of rows', TASKS_WAITING_MAX)),
  ] as const

  async function close(): Promise<void> {
    await Promise.all(lanes.map((each) => each.close()))
    for (const connection of connections) connection.closeSync()
    instance.closeSync()
  }

  return {
    dataDir,
    writer: lanes[0],
    maintenance: lanes[1],
    reader: lanes[2],
    spreader: lanes[3],
    archive: lanes[4],
    status: lanes[5],
    close,
  }
}
