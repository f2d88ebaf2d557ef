// In: the logs of the database files. Out: those that have grown long, written into their files, beside commits: DuckDB
// lets rows be appended meanwhile. Were it left to DuckDB, the commit that fills a log would do it, and wait for it.
// Never insists: a file that others are changing just now is left for the next time, and so is one that the disk has no
// room for: a checkpoint that fails half-way ends the database.
import { statSync } from 'node:fs'
import type { DuckDBConnection } from '@duckdb/node-api'
import { CHECKPOINT_LOG_BYTES, CHECKPOINT_ROOM } from './limits.ts'
import { databaseLogPath, journalLogPath } from './paths.ts'
import { freeBytes } from './room.ts'
import { JOURNAL_DATABASE } from './sql.ts'

/** What DuckDB says while other transactions hold changes that it cannot yet write down. */
const BUSY = /Cannot CHECKPOINT/

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

async function checkpoint(connection: DuckDBConnection, statement: string): Promise<void> {
  try {
    await connection.run(statement)
  } catch (error) {
    if (!BUSY.test(String(error))) throw error
  }
}

function isDue(logPath: string, dataDir: string): boolean {
  const logBytes = sizeOf(logPath)
  return logBytes >= CHECKPOINT_LOG_BYTES && freeBytes(dataDir) >= CHECKPOINT_ROOM * logBytes
}

/** On a connection of the tables' database. */
export async function checkpointLongLogs(connection: DuckDBConnection, dataDir: string): Promise<void> {
  if (isDue(databaseLogPath(dataDir), dataDir)) await checkpoint(connection, 'CHECKPOINT')
  if (isDue(journalLogPath(dataDir), dataDir)) await checkpoint(connection, `CHECKPOINT ${JOURNAL_DATABASE}`)
}
