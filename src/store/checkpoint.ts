// In: the logs of the database files. Out: those that have grown long, written into their files, beside commits: DuckDB
// lets rows be appended meanwhile. Were it left to DuckDB, the commit that fills a log would do it, and wait for it.
// Never insists: a file that others are changing just now is left for the next time.
import { statSync } from 'node:fs'
import type { DuckDBConnection } from '@duckdb/node-api'
import { CHECKPOINT_LOG_BYTES } from './limits.ts'
import { databaseLogPath, journalLogPath } from './paths.ts'
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

/** On a connection of the tables' database. */
export async function checkpointLongLogs(connection: DuckDBConnection, dataDir: string): Promise<void> {
  if (sizeOf(databaseLogPath(dataDir)) >= CHECKPOINT_LOG_BYTES) await checkpoint(connection, 'CHECKPOINT')
  if (sizeOf(journalLogPath(dataDir)) >= CHECKPOINT_LOG_BYTES)
    await checkpoint(connection, `CHECKPOINT ${JOURNAL_DATABASE}`)
}
