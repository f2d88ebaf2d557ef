// In: the logs of the database files. Out: those that have grown long, written into their files. The tables' is done
// beside commits; the journal's in their lane, once it is all but empty. Were it left to DuckDB, it would be done when
// most has to be written, and by the commit that fills the log.
// Never insists: a file that others are changing just now is left for the next time, and so is one that the disk has no
// room for: a checkpoint that fails half-way ends the database.
import { statSync } from 'node:fs'
import type { DuckDBConnection } from '@duckdb/node-api'
import { CHECKPOINT_ROOM } from './limits.ts'
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

function isDue(logPath: string, dataDir: string, dueBytes: number): boolean {
  const logBytes = sizeOf(logPath)
  return logBytes >= dueBytes && freeBytes(dataDir) >= CHECKPOINT_ROOM * logBytes
}

export async function checkpointTables(
  connection: DuckDBConnection,
  dataDir: string,
  dueBytes: number,
): Promise<void> {
  if (isDue(databaseLogPath(dataDir), dataDir, dueBytes)) await checkpoint(connection, 'CHECKPOINT')
}

export async function checkpointJournal(
  connection: DuckDBConnection,
  dataDir: string,
  dueBytes: number,
): Promise<void> {
  if (isDue(journalLogPath(dataDir), dataDir, dueBytes))
    await checkpoint(connection, `CHECKPOINT ${JOURNAL_DATABASE}`)
}
