// DuckDB's package, the settings that every instance here shares, and the lock on a database file.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorFirstLine, errorMessage } from '../../lib/error-text.ts'
import { lazyPackage } from '../../lib/lazy-package.ts'
import { findLockHolder } from '../data-folder/folder-lock.ts'
import { type StoreError, unavailable } from '../errors.ts'
import { PREDECESSOR_POLL_MS, PREDECESSOR_WAIT_MS } from '../limits.ts'
import { statePath } from '../paths.ts'
import { literal } from './sql.ts'

/** The serving process imports modules that can read with DuckDB, and uses it in its lake process alone. */
export const duckdb = lazyPackage<typeof import('@duckdb/node-api')>('@duckdb/node-api')

/** Every extension needed is built in: none is downloaded or loaded at run time. */
export const NO_EXTENSIONS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
}

/** Opens a database with one connection. @param path of its file; `:memory:` for none */
export async function openDatabase(path: string, settings: Record<string, string>) {
  const instance = await duckdb.DuckDBInstance.create(path, { ...settings, ...NO_EXTENSIONS })
  const connection = await instance.connect()
  const close = (): void => {
    connection.closeSync()
    instance.closeSync()
  }
  return { instance, connection, close }
}

/**
 * Reads who holds the lock from the message of a failed open: ` (process 12)`, or an empty text where the message names no
 * process: one of another container has the number 0 here. Null: the open failed for another reason.
 */
export function describeLockHolder(message: string): string | null {
  if (!/Could not set lock on file/.test(message)) return null
  const owner = /PID (\d+)/.exec(message)?.[1]
  return owner === undefined || owner === '0' ? '' : ` (process ${owner})`
}

/** @param by as `describeLockHolder` has it */
export const folderInUse = (dataDir: string, by: string): StoreError =>
  unavailable(`the data folder ${dataDir} is in use by another process${by}`)

/**
 * Calls `open`, and retries for PREDECESSOR_WAIT_MS while another process has the file locked and `mayEnd` is true: a lake
 * process whose server was killed ends a moment after it.
 */
export async function retryWhileLocked<Opened>(
  open: () => Promise<Opened>,
  mayEnd: () => boolean,
): Promise<Opened> {
  const untilMs = performance.now() + PREDECESSOR_WAIT_MS
  for (;;) {
    try {
      return await open()
    } catch (error) {
      if (describeLockHolder(errorMessage(error)) === null || !mayEnd() || performance.now() > untilMs)
        throw error
      await sleep(PREDECESSOR_POLL_MS)
    }
  }
}

/**
 * Attaches the state database of a data folder under a name, to be read.
 * @returns null; where a process has it locked which one, ` (process 12)`, or an empty text. @throws where it cannot be opened
 */
export async function attachState(
  connection: DuckDBConnection,
  dataDir: string,
  name: string,
): Promise<string | null> {
  try {
    await retryWhileLocked(
      () => connection.run(`ATTACH ${literal(statePath(dataDir))} AS ${name} (READ_ONLY)`),
      () => findLockHolder(dataDir) === null,
    )
    return null
  } catch (error) {
    const by = describeLockHolder(errorFirstLine(error))
    if (by === null) throw error
    // The lake process holds the lock; the operator knows the server's process id.
    const pid = findLockHolder(dataDir)
    return pid === null ? by : ` (process ${pid})`
  }
}
