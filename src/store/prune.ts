// In: the time. Out: volatile rows that nobody will ask for again are gone. Never touches a table of the lake.
import type { DuckDBConnection } from '@duckdb/node-api'
import { transaction } from './database.ts'
import { IDEMPOTENCY_KEPT_MS, SUBMIT_ATTEMPTS_KEPT_MS } from './limits.ts'
import { pruneSummaries } from './summaries.ts'

const KEPT_MS = { submit_attempts: SUBMIT_ATTEMPTS_KEPT_MS, idempotency: IDEMPOTENCY_KEPT_MS } as const

/** Deletes what is older than its table keeps. On the maintenance connection, so that no commit waits for it. */
export async function prune(connection: DuckDBConnection, nowMs: number, cooldownMs: number): Promise<void> {
  await transaction(connection, async () => {
    for (const [table, keptMs] of Object.entries(KEPT_MS)) {
      await connection.run(`DELETE FROM ${table} WHERE "at" < epoch_ms(${nowMs - keptMs})`)
    }
    for (const statement of pruneSummaries(nowMs, cooldownMs)) await connection.run(statement)
  })
}
