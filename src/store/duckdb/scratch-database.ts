// Short-lived DuckDB databases, apart from the store's own: they share no memory, threads or failures with it. An error
// that would make the store's database unusable is an ordinary error here.
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { unavailable } from '../errors.ts'
import { openDatabase } from './duckdb.ts'

/** Work in progress in this process, with its connection once that is open. */
const inProgress = new Map<Promise<unknown>, DuckDBConnection | null>()
let isClosing = false
const INTERRUPT_EVERY_MS = 20

/** Interrupts all work in progress, and refuses more until none is left: then the process can end. */
export async function closeScratchDatabases(): Promise<void> {
  isClosing = true
  // An interrupt between two statements has no effect, so it is repeated.
  const timer = setInterval(() => {
    for (const connection of inProgress.values()) connection?.interrupt()
  }, INTERRUPT_EVERY_MS)
  await Promise.allSettled(inProgress.keys())
  clearInterval(timer)
  isClosing = false
}

/**
 * Runs `work` in a new database and closes it. Rejects with `unavailable` whatever the reason.
 * @param path of the database file; `:memory:` for none
 */
export async function withScratchDatabase<Value>(
  path: string,
  settings: Record<string, string>,
  work: (connection: DuckDBConnection) => Promise<Value>,
): Promise<Value> {
  if (isClosing) throw unavailable('the store is closing')
  const run = async (): Promise<Value> => {
    const { connection, close } = await openDatabase(path, settings)
    inProgress.set(running, connection)
    return work(connection).finally(close)
  }
  const running = run()
  inProgress.set(running, null)
  try {
    return await running
  } catch (error) {
    throw unavailable(errorMessage(error))
  } finally {
    inProgress.delete(running)
  }
}
