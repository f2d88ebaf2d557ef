// In: nothing, or what DuckDB says. Out: DuckDB's package, and what holds for every DuckDB that is opened here. Never opens
// one.
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage } from '../../lib/error-text.ts'
import { PREDECESSOR_END_MS, PREDECESSOR_LOOK_EVERY_MS } from '../limits.ts'

/** Required, not imported: Node scans the 180 files of a CommonJS package for names before it imports it, which takes longer
 *  than all the rest, in each thread anew. */
export const duckdb = createRequire(import.meta.url)('@duckdb/node-api') as typeof import('@duckdb/node-api')

/** Everything needed is built in; nothing is ever fetched or loaded at run time. */
export const CLOSED_TO_EXTENSIONS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
}

/** Of a failure to open a file that another process has open: ` (process 12)`, or nothing where it is not told which.
 *  Null: it is another failure. */
export function lockHolder(message: string): string | null {
  if (!/Could not set lock on file/.test(message)) return null
  const owner = /PID (\d+)/.exec(message)?.[1]
  return owner === undefined ? '' : ` (process ${owner})`
}

/**
 * Opens a file, again and again while another process has it that `mayEnd`: a lake process whose server was killed ends
 * a moment after it.
 */
export async function openWhenFree<Opened>(
  open: () => Promise<Opened>,
  mayEnd: () => boolean,
): Promise<Opened> {
  const untilMs = performance.now() + PREDECESSOR_END_MS
  for (;;) {
    try {
      return await open()
    } catch (error) {
      if (lockHolder(errorMessage(error)) === null || !mayEnd() || performance.now() > untilMs) throw error
      await sleep(PREDECESSOR_LOOK_EVERY_MS)
    }
  }
}
