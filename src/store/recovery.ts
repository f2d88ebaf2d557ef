// In: the tables as a restart finds them. Out: what the house must know again, and single submissions by identity.
// Never changes a row.
import type { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api'
import { type Row, TABLES } from '../schema/tables.ts'
import { query } from './database.ts'
import { submissionInJournal } from './journal.ts'
import { IDEMPOTENCY_KEPT_MS, IDEMPOTENCY_RECOVERED_MAX, SUBMIT_ATTEMPTS_RECOVERED_MS } from './limits.ts'
import { identifier, ROW_SEQ, selectList } from './sql.ts'
import { COVERAGE, cooldowns, strikes, XP_TOTALS } from './summaries.ts'
import type { Recovered } from './types.ts'

const since = (column: string, ms: number): string => `${identifier(column)} > epoch_ms(${ms})`

/** The remembered answers that were written last, in the order of writing. */
const idempotency = (nowMs: number): string => `SELECT ${selectList(TABLES.idempotency)} FROM (
  SELECT * FROM idempotency WHERE ${since('at', nowMs - IDEMPOTENCY_KEPT_MS)}
  ORDER BY ${ROW_SEQ} DESC LIMIT ${IDEMPOTENCY_RECOVERED_MAX}) ORDER BY ${ROW_SEQ}`

/**
 * Everything that is rebuilt at start, as of `nowMs`. Rows come in the order of writing: the clock that stamped them may
 * have been set back between two of them. `cooldownMs`: how long a submission keeps its agent from the same mint.
 */
export async function recover(
  connection: DuckDBConnection,
  nowMs: number,
  cooldownMs: number,
): Promise<Recovered> {
  const rows = (table: 'agents' | 'agent_keys' | 'agent_events' | 'submit_attempts', clauses: string) =>
    query<Row>(connection, `SELECT ${selectList(TABLES[table])} FROM ${table} ${clauses}`)
  const youngAttempts = since('at', nowMs - SUBMIT_ATTEMPTS_RECOVERED_MS)
  return {
    agents: await rows('agents', `ORDER BY ${ROW_SEQ}`),
    agentKeys: await rows('agent_keys', `ORDER BY ${ROW_SEQ}`),
    agentEvents: await rows('agent_events', `ORDER BY ${ROW_SEQ}`),
    submitAttempts: await rows('submit_attempts', `WHERE ${youngAttempts} ORDER BY ${ROW_SEQ}`),
    idempotency: await query<Row>(connection, idempotency(nowMs)),
    xpTotals: await query(connection, XP_TOTALS),
    coverage: await query(connection, COVERAGE),
    cooldowns: await query(connection, cooldowns(nowMs, cooldownMs)),
    strikes: await query(connection, strikes(nowMs)),
  }
}

/** Wide rows take longer to plan than to find: each connection plans once. */
const lookups = new WeakMap<DuckDBConnection, DuckDBPreparedStatement[]>()

async function preparedLookups(connection: DuckDBConnection): Promise<DuckDBPreparedStatement[]> {
  const known = lookups.get(connection)
  if (known !== undefined) return known
  const prepared: DuckDBPreparedStatement[] = []
  for (const table of [TABLES.training, TABLES.rejections]) {
    const sql = `SELECT ${selectList(table)} FROM ${table.name} WHERE analysis_id = $1 LIMIT 1`
    prepared.push(await connection.prepare(sql))
  }
  lookups.set(connection, prepared)
  return prepared
}

/** A submission by its identity: one that still waits in the journal, an accepted one, a rejected one; or null. */
export async function findAnalysis(connection: DuckDBConnection, analysisId: string): Promise<Row | null> {
  const waiting = await submissionInJournal(connection, analysisId)
  if (waiting !== null) return waiting
  for (const statement of await preparedLookups(connection)) {
    statement.bindVarchar(1, analysisId)
    const found = await (await statement.run()).getRowObjectsJS()
    if (found.length > 0) return found[0] as Row
  }
  return null
}
