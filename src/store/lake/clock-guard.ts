// In: the wall clock as requests tell it. Out: whether it can be believed when rows are to be deleted for their age. The
// time goes on as the monotonic clock does; a wall clock that runs ahead of that, or of the last time that an earlier run
// knew, may have leapt. Never deletes anything, never sets a clock.
import type { DuckDBConnection } from '@duckdb/node-api'
import type { Instant } from '../../lib/clock.ts'
import { HOUR_MS } from '../../lib/time.ts'
import { query } from '../duckdb/query.ts'
import { CLOCK_KNOWN, MANIFEST } from '../duckdb/sql.ts'
import { CLOCK_LEAP_MAX_MS } from '../limits.ts'

export interface ClockGuard {
  /** Why the wall clock is not believed, as a sentence; null: it is. */
  doubt(connection: DuckDBConnection, now: Instant): Promise<string | null>
  /** The operator says that the wall clock is right. */
  believe(connection: DuckDBConnection, now: Instant): Promise<void>
}

/** How far the time that is known must go on before it is written down anew. */
const NOTED_EVERY_MS = HOUR_MS

/** The time that earlier runs knew; where none noted it, when the youngest file was written; null: there is none. */
async function knownOf(connection: DuckDBConnection): Promise<number | null> {
  const [{ ms }] = await query<{ ms: number | null }>(
    connection,
    `SELECT coalesce((SELECT max(known_ms) FROM ${CLOCK_KNOWN}),
       (SELECT epoch_ms(max(written_at)) FROM ${MANIFEST}))::DOUBLE AS ms`,
  )
  return ms
}

const iso = (ms: number): string => new Date(ms).toISOString()

export function openClockGuard(): ClockGuard {
  /** The time that is known, and when it was by the monotonic clock. */
  let known: { ms: number; atMs: number } | null = null
  let notedMs = 0

  async function note(connection: DuckDBConnection, ms: number, atMs: number): Promise<void> {
    known = { ms, atMs }
    if (Math.abs(ms - notedMs) < NOTED_EVERY_MS) return
    await connection.run(`DELETE FROM ${CLOCK_KNOWN}; INSERT INTO ${CLOCK_KNOWN} VALUES (${Math.floor(ms)})`)
    notedMs = ms
  }

  return {
    async doubt(connection, { wallMs, monotonicMs }) {
      known ??= { ms: (await knownOf(connection)) ?? wallMs, atMs: monotonicMs }
      const expectedMs = known.ms + (monotonicMs - known.atMs)
      if (wallMs - expectedMs <= CLOCK_LEAP_MAX_MS) {
        await note(connection, Math.max(expectedMs, wallMs), monotonicMs)
        return null
      }
      known = { ms: expectedMs, atMs: monotonicMs }
      return `the clock says ${iso(wallMs)}, and by the lake and the time that has passed it is ${iso(expectedMs)}`
    },
    believe: (connection, { wallMs, monotonicMs }) => note(connection, wallMs, monotonicMs),
  }
}
