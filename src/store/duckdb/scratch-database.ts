// In: a small job for DuckDB that is not the store's. Out: its result, from a database of its own that is gone afterwards.
// Never shares memory, threads or failures with the store's database: what is fatal here is an ordinary failure there.

import type { DuckDBConnection } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { unavailable } from '../errors.ts'
import { CLOSED_TO_EXTENSIONS, duckdb } from './duckdb.ts'

/** Those at work in this process. */
const working = new Map<Promise<unknown>, DuckDBConnection | null>()
let isEnding = false
const INTERRUPT_EVERY_MS = 20

/**
 * Interrupts what is under way, refuses more, and resolves when nothing is left: the process is to end, and what is under
 * way may be long.
 */
export async function endScratchDatabases(): Promise<void> {
  isEnding = true
  // Between two statements there is nothing to interrupt: so again.
  const timer = setInterval(() => {
    for (const connection of working.values()) connection?.interrupt()
  }, INTERRUPT_EVERY_MS)
  await Promise.allSettled(working.keys())
  clearInterval(timer)
}

/** Runs `work` in a database at `path` (`:memory:`: in memory). What fails rejects with `unavailable`. */
export async function inScratchDatabase<Value>(
  path: string,
  settings: Record<string, string>,
  work: (connection: DuckDBConnection) => Promise<Value>,
): Promise<Value> {
  if (isEnding) throw unavailable('the store is closing')
  const begun = (connection: DuckDBConnection) => working.set(running, connection)
  const running: Promise<Value> = run(path, settings, work, begun)
  working.set(running, null)
  try {
    return await running
  } catch (error) {
    throw unavailable(errorMessage(error))
  } finally {
    working.delete(running)
  }
}

async function run<Value>(
  path: string,
  settings: Record<string, string>,
  work: (connection: DuckDBConnection) => Promise<Value>,
  begun: (connection: DuckDBConnection) => void,
): Promise<Value> {
  const instance = await duckdb.DuckDBInstance.create(path, { ...CLOSED_TO_EXTENSIONS, ...settings })
  try {
    const connection = await instance.connect()
    begun(connection)
    try {
      return await work(connection)
    } finally {
      connection.closeSync()
    }
  } finally {
    instance.closeSync()
  }
}
