// In: the databases of a store of format 1, which kept its rows in DuckDB. Out: its state, its list of files and its open
// outcomes, in a state database of today. Never changes the old databases, and never leaves a row behind: a folder whose
// lake is not complete is refused.
import { existsSync } from 'node:fs'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorFirstLine } from '../../lib/error-text.ts'
import { type Row, TABLES, type Table } from '../../schema/tables.ts'
import { transaction } from '../duckdb/database.ts'
import { query } from '../duckdb/query.ts'
import { identifier, LAKE_TABLES, literal, MANIFEST, REMOVALS, ROW_SEQ, readableCell } from '../duckdb/sql.ts'
import { StoreError } from '../errors.ts'
import { STRIKES_RECOVERED_MS } from '../limits.ts'
import { logPathV1, storePathV1 } from '../paths.ts'
import { applyAgentEvent, type PlacedRow, type StateOptions, StoreState } from './state.ts'
import { beginState, saveState } from './state-database.ts'

const OLD = 'v1'
const OLD_LOG = 'v1_log'

type NumberedRow = Row & { seq: number }

async function columnsOf(connection: DuckDBConnection, database: string, table: string): Promise<string[]> {
  const sql = `SELECT column_name AS name FROM duckdb_columns()
    WHERE database_name = $database AND table_name = $table AND schema_name = 'main'`
  return (await query<{ name: string }>(connection, sql, { database, table })).map(({ name }) => name)
}

/** Rows of an old table in order of commit; times as Unix ms, columns that it did not have left out. */
async function oldRows(connection: DuckDBConnection, table: Table): Promise<NumberedRow[]> {
  const present = new Set(await columnsOf(connection, OLD, table.name))
  const cells = table.columns.filter(({ name }) => present.has(name)).map(readableCell)
  return query(
    connection,
    `SELECT ${[`${ROW_SEQ}::DOUBLE AS seq`, ...cells].join(', ')} FROM ${OLD}.${table.name} ORDER BY ${ROW_SEQ}`,
  )
}

const LISTED = `SELECT table_name, seq_last FROM ${OLD}.${MANIFEST}
  UNION ALL SELECT table_name, seq_last FROM ${OLD}.${REMOVALS}`
const STORED = LAKE_TABLES.filter(({ origin, name }) => origin === undefined || name === 'tokens')

/** Rows that no file of the lake holds. */
async function countPending(connection: DuckDBConnection, hasLog: boolean): Promise<number> {
  const counts = STORED.map(
    ({ name }) => `SELECT count(*) AS rows FROM ${OLD}.${name} WHERE ${ROW_SEQ} > (
      SELECT coalesce(max(seq_last), 0) FROM (${LISTED}) WHERE table_name = ${literal(name)})`,
  )
  if (hasLog)
    counts.push(
      `SELECT count(*) FROM ${OLD_LOG}.journal WHERE ${ROW_SEQ} > (SELECT max(${ROW_SEQ}) FROM ${OLD}.journal_mark)`,
    )
  const [{ rows }] = await query<{ rows: number }>(
    connection,
    `SELECT sum(rows)::DOUBLE AS rows FROM (${counts.join(' UNION ALL ')})`,
  )
  return rows
}

/** Copies a table of the same name, as far as its columns are the same. */
async function copyTable(connection: DuckDBConnection, table: string): Promise<void> {
  const old = new Set(await columnsOf(connection, OLD, table))
  const [{ database }] = await query<{ database: string }>(
    connection,
    'SELECT current_database() AS database',
  )
  const shared = (await columnsOf(connection, database, table))
    .filter((name) => old.has(name))
    .map(identifier)
  if (shared.length === 0) return
  await connection.run(
    `INSERT INTO ${table} (${shared.join(', ')}) SELECT ${shared.join(', ')} FROM ${OLD}.${table}`,
  )
}

/** The highest number that a row, and so a file, was given; and the youngest moment of a commit. */
async function positionOf(connection: DuckDBConnection): Promise<{ lsn: number; knownAtMs: number }> {
  const numbered = [
    ...STORED.map(({ name }) => name),
    'agents',
    'agent_keys',
    'agent_events',
    'idempotency',
    'submit_attempts',
    'journal_mark',
  ]
  const highest = numbered.map((name) => `SELECT max(${ROW_SEQ}) AS seq FROM ${OLD}.${name}`)
  const [position] = await query<{ lsn: number; ms: number | null }>(
    connection,
    `SELECT (SELECT max(seq) FROM (${highest.join(' UNION ALL ')} UNION ALL SELECT max(seq_last) FROM (${LISTED})))::DOUBLE AS lsn,
      (SELECT epoch_ms(max(written_at)) FROM ${OLD}.${MANIFEST})::DOUBLE AS ms`,
  )
  return { lsn: position.lsn, knownAtMs: position.ms ?? 0 }
}

const AGENT_TOTALS = `SELECT agent_id AS "agentId", sum(xp)::DOUBLE AS xp, sum(analyses)::DOUBLE AS analyses FROM (
  SELECT agent_id, xp, analyses FROM ${OLD}.agent_totals UNION ALL
  SELECT agent_id, sum(xp), count(*) FILTER (kind = 'analysis') FROM ${OLD}.xp_ledger GROUP BY 1) GROUP BY 1`
const MINT_TOTALS = `SELECT mint, sum(examples)::DOUBLE AS count, arg_max(last_sentiment, last_seq) AS "lastSentiment",
  arg_max(last_score, last_seq) AS "lastScore" FROM (SELECT mint, examples, last_seq, last_sentiment, last_score FROM ${OLD}.mint_totals UNION ALL
  SELECT mint, count(*), max(${ROW_SEQ}), arg_max(sentiment, ${ROW_SEQ}), arg_max(score, ${ROW_SEQ})
  FROM ${OLD}.training GROUP BY 1) GROUP BY 1`
/** When a submission came by the server's own clock: of rows that do not tell it, the market's time. */
async function receivedMs(connection: DuckDBConnection): Promise<string> {
  const isTold = (await columnsOf(connection, OLD, 'training')).includes('received_at')
  return isTold ? 'epoch_ms(coalesce(received_at, submitted_at))' : 'epoch_ms(submitted_at)'
}
const strikes = (
  ms: string,
  sinceMs: number,
): string => `SELECT agent_id AS "agentId", at_ms::DOUBLE AS "atMs"
  FROM (SELECT agent_id, at_ms, 0 AS seq FROM ${OLD}.strike_times
    UNION ALL SELECT agent_id, ${ms}, ${ROW_SEQ} FROM ${OLD}.rejections)
  WHERE at_ms > ${sinceMs} ORDER BY seq, at_ms`
const cooldowns = (ms: string, sinceMs: number): string => {
  const startsOf = (table: string): string => `SELECT agent_id, mint, ${ms}, ${ROW_SEQ} FROM ${OLD}.${table}`
  return `SELECT agent_id AS "agentId", mint, arg_max(at_ms, seq)::DOUBLE AS "atMs"
  FROM (SELECT agent_id, mint, at_ms, 0 AS seq FROM ${OLD}.cooldown_times
    UNION ALL ${startsOf('training')} UNION ALL ${startsOf('rejections')})
  WHERE at_ms > ${sinceMs} GROUP BY ALL ORDER BY max(seq)`
}

/** Rows that were ever committed to a table of the lake: those in files, those that left for their age, those that are lost. */
const ROW_TOTALS = `SELECT table_name AS name, sum(row_count)::DOUBLE AS rows FROM (
  SELECT table_name, CASE WHEN set_aside_at IS NULL THEN row_count ELSE coalesce(rows_lost, 0) END AS row_count
  FROM ${MANIFEST} WHERE replaced_at IS NULL UNION ALL SELECT table_name, row_count FROM ${REMOVALS})
  WHERE table_name IN (${STORED.filter(({ origin }) => origin === undefined)
    .map(({ name }) => literal(name))
    .join(', ')}) GROUP BY 1`

/** Moments that limits count from. */
async function addMoments(connection: DuckDBConnection, state: StoreState): Promise<void> {
  const { knownAtMs, options } = state
  for (const { seq, agent_id, at } of await oldRows(connection, TABLES.submit_attempts)) {
    const [agentId, atMs] = [agent_id as string, at as number]
    state.submitAttempts.set(`v1 ${seq}`, { agentId, atMs, knownAtMs: atMs })
  }
  const ms = await receivedMs(connection)
  const rejected = await query<{ agentId: string; atMs: number }>(
    connection,
    strikes(ms, knownAtMs - STRIKES_RECOVERED_MS),
  )
  for (const [index, { agentId, atMs }] of rejected.entries())
    state.strikes.set(`v1 ${index}`, { agentId, atMs, knownAtMs: atMs })
  const started = await query<{ agentId: string; mint: string; atMs: number }>(
    connection,
    cooldowns(ms, knownAtMs - options.cooldownKeptMs),
  )
  for (const { agentId, mint, atMs } of started)
    state.cooldowns.set(`${agentId} ${mint}`, { agentId, mint, atMs, knownAtMs: atMs })
}

async function stateOf(connection: DuckDBConnection, options: StateOptions): Promise<StoreState> {
  const state = new StoreState(options)
  Object.assign(state, await positionOf(connection))
  const placed = ({ seq, ...row }: NumberedRow, atMs: number): PlacedRow => ({
    lsn: seq,
    index: 0,
    knownAtMs: atMs,
    row,
  })
  for (const row of await oldRows(connection, TABLES.agents))
    state.agents.set(row.agent_id as string, placed(row, row.created_at as number))
  for (const row of await oldRows(connection, TABLES.agent_keys))
    state.agentKeys.set(row.key_hash as string, placed(row, row.created_at as number))
  for (const row of await oldRows(connection, TABLES.agent_events))
    applyAgentEvent(state, placed(row, row.at as number))
  for (const row of await oldRows(connection, TABLES.idempotency))
    state.idempotency.set(`${row.agent_id} ${row.idempotency_key}`, placed(row, row.at as number))
  for (const total of await query<{ agentId: string; xp: number; analyses: number }>(
    connection,
    AGENT_TOTALS,
  ))
    state.agentTotals.set(total.agentId, { xp: total.xp, analyses: total.analyses })
  for (const { mint, ...total } of await query<{
    mint: string
    count: number
    lastSentiment: string
    lastScore: number
  }>(connection, MINT_TOTALS))
    state.mintTotals.set(mint, total)
  await addMoments(connection, state)
  return state
}

/**
 * Fills an empty state database from the old ones, in one transaction. Throws `invalid` where the old lake lacks rows: the
 * version that wrote the folder completes it when it is started and stopped once more.
 */
export async function importV1(
  connection: DuckDBConnection,
  dataDir: string,
  options: StateOptions,
  spillDir: string,
): Promise<void> {
  const hasLog = existsSync(logPathV1(dataDir))
  try {
    await connection.run(`ATTACH ${literal(storePathV1(dataDir))} AS ${OLD} (READ_ONLY)`)
    if (hasLog) await connection.run(`ATTACH ${literal(logPathV1(dataDir))} AS ${OLD_LOG} (READ_ONLY)`)
    const pending = await countPending(connection, hasLog)
    if (pending > 0)
      throw new StoreError(
        'invalid',
        `the data folder ${dataDir} was written by Mintlake 0.1 and has ${pending} rows that its lake does not hold yet: start and stop that version once more, then this one`,
      )
    const state = await stateOf(connection, options)
    await transaction(connection, async () => {
      for (const table of [MANIFEST, REMOVALS, 'outcomes_open', 'outcomes'])
        await copyTable(connection, table)
      // Whatever their rows say: files of that format may lack columns of today's schema.
      await connection.run(`UPDATE ${MANIFEST} SET schema_version = 1`)
      for (const { name, rows } of await query<{ name: string; rows: number }>(connection, ROW_TOTALS))
        state.rowTotals.set(name, rows)
      await saveState(connection, state, spillDir)
      await beginState(connection)
    })
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(
      'invalid',
      `the store of Mintlake 0.1 in ${dataDir} cannot be read: ${errorFirstLine(error)}`,
    )
  } finally {
    await connection.run(`DETACH DATABASE IF EXISTS ${OLD}`)
    await connection.run(`DETACH DATABASE IF EXISTS ${OLD_LOG}`)
  }
}
