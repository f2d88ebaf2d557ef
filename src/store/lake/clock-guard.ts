// Decides whether the wall clock can be trusted for deleting rows by age. Between checks time must advance as the monotonic
// clock does; a wall clock further ahead of that, or of the last time an earlier run recorded, may have jumped.
import type { DuckDBConnection } from '@duckdb/node-api'
import type { Instant } from '../../lib/clock.ts'
import { queryValue } from '../duckdb/query.ts'
import { CLOCK_KNOWN, MANIFEST } from '../duckdb/sql.ts'
import { CLOCK_JUMP_MAX_MS } from '../limits.ts'

/** The known time is saved again once it has changed by this much. */
const SAVE_EVERY_MS = 3_600_000

/** The time that earlier runs knew, Unix ms. */
export interface KnownTime {
  /** What they saved, else when the youngest file was written; null where there is neither. */
  load(): Promise<number | null>
  save(ms: number): Promise<void>
}

/** That of a state database. */
export const knownTimeOf = (connection: DuckDBConnection): KnownTime => ({
  load: () => loadKnownMs(connection),
  async save(ms) {
    await connection.run(`DELETE FROM ${CLOCK_KNOWN}; INSERT INTO ${CLOCK_KNOWN} VALUES (${ms})`)
  },
})

function loadKnownMs(connection: DuckDBConnection): Promise<number | null> {
  const sql = `SELECT coalesce((SELECT max(known_ms) FROM ${CLOCK_KNOWN}),
    (SELECT epoch_ms(max(written_at)) FROM ${MANIFEST}))::DOUBLE`
  return queryValue(connection, sql, 'number?')
}

const iso = (ms: number): string => new Date(ms).toISOString()

export class ClockGuard {
  /** The last known time, and the monotonic time of that moment. */
  #known: { ms: number; monotonicMs: number } | null = null
  #savedMs = 0

  /** Compares the wall clock with the known time. @returns a sentence where it may have jumped, null where it is trusted */
  async check(earlier: KnownTime, { wallMs, monotonicMs }: Instant): Promise<string | null> {
    const known = this.#known ?? { ms: (await earlier.load()) ?? wallMs, monotonicMs }
    const expectedMs = known.ms + (monotonicMs - known.monotonicMs)
    if (wallMs - expectedMs <= CLOCK_JUMP_MAX_MS) {
      await this.#record(earlier, Math.max(expectedMs, wallMs), monotonicMs)
      return null
    }
    this.#known = { ms: expectedMs, monotonicMs }
    return `the clock says ${iso(wallMs)}, but going by the lake and the elapsed time it is ${iso(expectedMs)}`
  }

  /** Takes the wall clock as right: an operator has confirmed it. */
  trust(earlier: KnownTime, { wallMs, monotonicMs }: Instant): Promise<void> {
    return this.#record(earlier, wallMs, monotonicMs)
  }

  async #record(earlier: KnownTime, ms: number, monotonicMs: number): Promise<void> {
    this.#known = { ms, monotonicMs }
    if (Math.abs(ms - this.#savedMs) < SAVE_EVERY_MS) return
    await earlier.save(Math.floor(ms))
    this.#savedMs = ms
  }
}
