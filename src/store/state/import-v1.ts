// Imports a store of format 1, which kept its rows in DuckDB: its state, its list of files and its open outcomes go to a new
// state database. The old databases are not changed. A folder whose lake lacks rows is refused, so that no row is lost.
import { existsSync } from 'node:fs'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorFirstLine } from '../../lib/error-text.ts'
import { type NewRow, type Row, TABLES, type Table, type TableName } from '../../schema/tables.ts'
import { transaction } from '../duckdb/database.ts'
import { query, queryOne, queryRows } from '../duckdb/query.ts'
import { identifier, LAKE_TABLES, literal, MANIFEST, REMOVALS, ROW_SEQ, readableCell } from '../duckdb/sql.ts'
import { StoreError } from '../errors.ts'
import { STRIKES_RECOVERED_MS } from '../limits.ts'
import { logPathV1, storePathV1 } from '../paths.ts'
import { applyAgentEvent, type PlacedRow, type StateOptions, StoreState } from './state.ts'
import { beginState, saveState } from './state-database.ts'

const OLD = 'v1'
const OLD_LOG = 'v1_log'

/** A row and its number in the old store, which rises from commit to commit. */
interface NumberedRow<RowType> {
  seq: number
  row: RowType
}

async function listColumns(connection: DuckDBConnection, database: string, table: string): Promise<string[]> {
  const sql = `SELECT column_name AS name FROM duckdb_columns()
    WHERE database_name = $database AND table_name = $table AND schema_name = 'main'`
  return (await queryRows(connection, sql, { name: 'string' }, { database, table })).map(({ name }) => name)
}

/** Rows of an old table in the order of their commits. Times are Unix ms; columns that the table did not have are left out. */
async function readOldRows<Name extends TableName>(
  connection: DuckDBConnection,
  name: Name,
): Promise<NumberedRow<NewRow<Name>>[]> {
  const table: Table = TABLES[name]
  const present = new Set(await listColumns(connection, OLD, name))
  const cells = table.columns.filter((column) => present.has(column.name)).map(readableCell)
  const rows = await query<Row & { seq: number }>(
    connection,
    `SELECT ${[`${ROW_SEQ}::DOUBLE AS seq`, ...cells].join(', ')} FROM ${OLD}.${name} ORDER BY ${ROW_SEQ}`,
  )
  // The columns of the table have these types; columns added since are optional.
  return rows.map(({ seq, ...row }) => ({ seq, row: row as NewRow<Name> }))
}

const LISTED = `SELECT table_name, seq_last FROM ${OLD}.${MANIFEST}
  UNION ALL SELECT table_name, seq_last FROM ${OLD}.${REMOVALS}`
const STORED = LAKE_TABLES.filter(({ origin, name }) => origin === undefined || name === 'tokens')

/** Counts the rows that no file of the lake holds. */
async function countPending(connection: DuckDBConnection, hasLog: boolean): Promise<number> {
  const counts = STORED.map(
    ({ name }) => `SELECT count(*) AS rows FROM ${OLD}.${name} WHERE ${ROW_SEQ} > (
      SELECT coalesce(max(seq_last), 0) FROM (${LISTED}) WHERE table_name = ${literal(name)})`,
  )
  if (hasLog)
    counts.push(
      `SELECT count(*) FROM ${OLD_LOG}.journal WHERE ${ROW_SEQ} > (SELECT max(${ROW_SEQ}) FROM ${OLD}.journal_mark)`,
    )
  const sql = `SELECT sum(rows)::DOUBLE AS rows FROM (${counts.join(' UNION ALL ')})`
  return (await queryOne(connection, sql, { rows: 'number' })).rows
}

/** Copies the columns that the old and the new table of a name share. */
async function copyTable(connection: DuckDBConnection, table: string): Promise<void> {
  const old = new Set(await listColumns(connection, OLD, table))
  const { database } = await queryOne(connection, 'SELECT current_database() AS database', {
    database: 'string',
  })
  const shared = (await listColumns(connection, database, table))
    .filter((name) => old.has(name))
    .map(identifier)
  if (shared.length === 0) return
  await connection.run(
    `INSERT INTO ${table} (${shared.join(', ')}) SELECT ${shared.join(', ')} FROM ${OLD}.${table}`,
  )
}

/** The highest number of a row or file, which becomes the first LSN, and when the last file was written. */
async function readPosition(connection: DuckDBConnection): Promise<{ lsn: number; knownAtMs: number }> {
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
  const { lsn, ms } = await queryOne(
    connection,
    `SELECT (SELECT max(seq) FROM (${highest.join(' UNION ALL ')} UNION ALL SELECT max(seq_last) FROM (${LISTED})))::DOUBLE AS lsn,
      (SELECT epoch_ms(max(written_at)) FROM ${OLD}.${MANIFEST})::DOUBLE AS ms`,
    { lsn: 'number?', ms: 'number?' },
  )
  return { lsn: lsn ?? 0, knownAtMs: ms ?? 0 }
}

const AGENT_TOTALS = `SELECT agent_id AS "agentId", sum(xp)::DOUBLE AS xp, sum(analyses)::DOUBLE AS analyses FROM (
  SELECT agent_id, xp, analyses FROM ${OLD}.agent_totals UNION ALL
  SELECT agent_id, sum(xp), count(*) FILTER (kind = 'analysis') FROM ${OLD}.xp_ledger GROUP BY 1) GROUP BY 1`
const MINT_TOTALS = `SELECT mint, sum(examples)::DOUBLE AS count, arg_max(last_sentiment, last_seq) AS "lastSentiment",
  arg_max(last_score, last_seq) AS "lastScore" FROM (SELECT mint, examples, last_seq, last_sentiment, last_score FROM ${OLD}.mint_totals UNION ALL
  SELECT mint, count(*), max(${ROW_SEQ}), arg_max(sentiment, ${ROW_SEQ}), arg_max(score, ${ROW_SEQ})
  FROM ${OLD}.training GROUP BY 1) GROUP BY 1`
/** SQL of the time at which the server received a submission. Rows without it have the market time. */
async function receivedMsSql(connection: DuckDBConnection): Promise<string> {
  const isPresent = (await listColumns(connection, OLD, 'training')).includes('received_at')
  return isPresent ? 'epoch_ms(coalesce(received_at, submitted_at))' : 'epoch_ms(submitted_at)'
}
const strikesSql = (
  ms: string,
  sinceMs: number,
): string => `SELECT agent_id AS "agentId", at_ms::DOUBLE AS "atMs"
  FROM (SELECT agent_id, at_ms, 0 AS seq FROM ${OLD}.strike_times
    UNION ALL SELECT agent_id, ${ms}, ${ROW_SEQ} FROM ${OLD}.rejections)
  WHERE at_ms > ${sinceMs} ORDER BY seq, at_ms`
const cooldownsSql = (ms: string, sinceMs: number): string => {
  const selectStarts = (table: string): string =>
    `SELECT agent_id, mint, ${ms}, ${ROW_SEQ} FROM ${OLD}.${table}`
  return `SELECT agent_id AS "agentId", mint, arg_max(at_ms, seq)::DOUBLE AS "atMs"
  FROM (SELECT agent_id, mint, at_ms, 0 AS seq FROM ${OLD}.cooldown_times
    UNION ALL ${selectStarts('training')} UNION ALL ${selectStarts('rejections')})
  WHERE at_ms > ${sinceMs} GROUP BY ALL ORDER BY max(seq)`
}

/** Rows ever committed to each table of the lake: those in files, expired and lost ones. */
const ROW_TOTALS = `SELECT table_name AS name, sum(row_count)::DOUBLE AS rows FROM (
  SELECT table_name, CASE WHEN set_aside_at IS NULL THEN row_count ELSE coalesce(rows_lost, 0) END AS row_count
  FROM ${MANIFEST} WHERE replaced_at IS NULL UNION ALL SELECT table_name, row_count FROM ${REMOVALS})
  WHERE table_name IN (${STORED.filter(({ origin }) => origin === undefined)
    .map(({ name }) => literal(name))
    .join(', ')}) GROUP BY 1`

/** Adds the times from which limits count. */
async function addLimitTimes(connection: DuckDBConnection, state: StoreState): Promise<void> {
  const { knownAtMs, options } = state
  for (const { row } of await readOldRows(connection, 'submit_attempts'))
    state.submitAttempts.push(row.at, { agentId: row.agent_id, atMs: row.at })
  const ms = await receivedMsSql(connection)
  const rejected = await queryRows(connection, strikesSql(ms, knownAtMs - STRIKES_RECOVERED_MS), {
    agentId: 'string',
    atMs: 'number',
  })
  for (const { agentId, atMs } of rejected) state.strikes.push(atMs, { agentId, atMs })
  const started = await queryRows(connection, cooldownsSql(ms, knownAtMs - options.cooldownKeptMs), {
    agentId: 'string',
    mint: 'string',
    atMs: 'number',
  })
  for (const { agentId, mint, atMs } of started) state.cooldowns.push(atMs, { agentId, mint, atMs })
}

const placeRow = <RowType>({ seq, row }: NumberedRow<RowType>, knownAtMs: number): PlacedRow<RowType> => ({
  lsn: seq,
  index: 0,
  knownAtMs,
  row,
})

async function readState(connection: DuckDBConnection, options: StateOptions): Promise<StoreState> {
  const state = new StoreState(options)
  Object.assign(state, await readPosition(connection))
  for (const old of await readOldRows(connection, 'agents'))
    state.agents.set(old.row.agent_id, placeRow(old, old.row.created_at))
  for (const old of await readOldRows(connection, 'agent_keys'))
    state.agentKeys.set(old.row.key_hash, placeRow(old, old.row.created_at))
  for (const old of await readOldRows(connection, 'agent_events'))
    applyAgentEvent(state, placeRow(old, old.row.at))
  for (const old of await readOldRows(connection, 'idempotency'))
    state.idempotency.set(`${old.row.agent_id} ${old.row.idempotency_key}`, placeRow(old, old.row.at))
  for (const { agentId, xp, analyses } of await queryRows(connection, AGENT_TOTALS, {
    agentId: 'string',
    xp: 'number',
    analyses: 'number',
  }))
    state.agentTotals.set(agentId, { xp, analyses })
  for (const { mint, ...total } of await queryRows(connection, MINT_TOTALS, {
    mint: 'string',
    count: 'number',
    lastSentiment: 'string',
    lastScore: 'number',
  }))
    state.mintTotals.set(mint, total)
  await addLimitTimes(connection, state)
  return state
}

/**
 * Fills an empty state database from the old databases, in one transaction. Throws `invalid` where the old lake lacks rows:
 * the version that wrote the folder completes it when it is started and stopped once more.
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
    const state = await readState(connection, options)
    await transaction(connection, async () => {
      for (const table of [MANIFEST, REMOVALS, 'outcomes_open', 'outcomes'])
        await copyTable(connection, table)
      // Also for rows that say otherwise: files of that format may lack columns of the present schema.
      await connection.run(`UPDATE ${MANIFEST} SET schema_version = 1`)
      for (const { name, rows } of await queryRows(connection, ROW_TOTALS, {
        name: 'string',
        rows: 'number',
      }))
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
