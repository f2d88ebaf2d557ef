// What became of the closed bars of each run, by timeframe: the engine counts what it closes, and the lake what its files have. Kept
// in the state database, in the transaction that lists the files, so that `/health` and `lake verify` can compare the two.
import type { DuckDBConnection } from '@duckdb/node-api'
import { recordFrom } from '../../lib/record.ts'
import { TABLES } from '../../schema/tables.ts'
import { TIMEFRAMES, type Timeframe } from '../../schema/timeframe.ts'
import { isFullError, isReadOnlyError, transaction } from '../duckdb/database.ts'
import { hasTable, queryRows, queryValue } from '../duckdb/query.ts'
import { BAR_ACCOUNTS, literal, MANIFEST, REMOVALS } from '../duckdb/sql.ts'
import { BAR_RUNS_MAX } from '../limits.ts'
import { ACCOUNT_FIELDS, type BarAccount, type BarCounts, emptyAccount, noBars } from './bar-counts.ts'

/** In place of a run: rows that the lake had before bars were counted. Of no timeframe. */
const UNCOUNTED = ''
/** In place of a run: all runs but the latest BAR_RUNS_MAX. */
const EARLIER = 'earlier'

const SELECT_FIELDS = ACCOUNT_FIELDS.map((name) => `${name}::DOUBLE AS ${name}`).join(', ')
const FIELD_TYPES = recordFrom(ACCOUNT_FIELDS, () => 'number' as const)

/** Numbers of bars from rows of a query with one row for each timeframe. */
export function toBarCounts(rows: readonly { tf: string; bars: number }[]): BarCounts {
  const counts = noBars()
  for (const { tf, bars } of rows) counts[TIMEFRAMES.indexOf(tf as Timeframe)] = bars
  return counts
}

/** How many bars of each timeframe these files have. */
export async function countBarRows(
  connection: DuckDBConnection,
  paths: readonly string[],
): Promise<BarCounts> {
  if (paths.length === 0) return noBars()
  const rows = await queryRows(
    connection,
    `SELECT tf, count(*)::DOUBLE AS bars FROM read_parquet([${paths.map(literal).join(', ')}], hive_partitioning=false)
     GROUP BY tf`,
    { tf: 'string', bars: 'number' },
  )
  return toBarCounts(rows)
}

/** The account of a run as of the last flush. */
export async function loadBarAccount(connection: DuckDBConnection, runId: string): Promise<BarAccount> {
  const account = emptyAccount()
  // A folder of an earlier version on a disk that takes no writes.
  if (!(await hasTable(connection, 'current_database()', BAR_ACCOUNTS))) return account
  const rows = await queryRows(
    connection,
    `SELECT tf, ${SELECT_FIELDS} FROM ${BAR_ACCOUNTS} WHERE run_id = $runId`,
    { tf: 'string', ...FIELD_TYPES },
    { runId },
  )
  for (const row of rows)
    for (const name of ACCOUNT_FIELDS) account[name][TIMEFRAMES.indexOf(row.tf as Timeframe)] = row[name]
  return account
}

/**
 * Saves the account of a run. Called in the transaction that lists the files whose rows it counts.
 * @param toMs all bars of the run that ended by this market time are among them
 */
export async function saveBarAccount(
  connection: DuckDBConnection,
  runId: string,
  account: BarAccount,
  toMs: number,
): Promise<void> {
  const rows = TIMEFRAMES.flatMap((tf, index) => {
    const counts = ACCOUNT_FIELDS.map((name) => account[name][index])
    return account.closed[index] === 0
      ? []
      : [`(${literal(runId)}, ${literal(tf)}, ${counts.join(', ')}, ${Math.floor(toMs)})`]
  })
  if (rows.length === 0) return
  await connection.run(`DELETE FROM ${BAR_ACCOUNTS} WHERE run_id = ${literal(runId)}`)
  await connection.run(`INSERT INTO ${BAR_ACCOUNTS} VALUES ${rows.join(', ')}`)
}

/** SQL of all rows that the lake has or had: in live files, lost with damaged ones, and expired. */
const ALL_ROWS = `(SELECT coalesce(sum(rows), 0) FROM (
  SELECT CASE WHEN set_aside_at IS NULL THEN row_count ELSE coalesce(rows_lost, 0) END AS rows FROM ${MANIFEST}
  WHERE table_name = '${TABLES.bars.name}' AND replaced_at IS NULL
  UNION ALL SELECT row_count FROM ${REMOVALS} WHERE table_name = '${TABLES.bars.name}'))`

/** Notes how many rows are not counted by any run, and adds up the oldest runs. Where the disk takes no writes a later start does. */
export async function beginBarAccounts(connection: DuckDBConnection): Promise<void> {
  if (!(await hasTable(connection, 'current_database()', BAR_ACCOUNTS))) return
  try {
    await transaction(connection, async () => {
      await connection.run(`INSERT INTO ${BAR_ACCOUNTS} SELECT '${UNCOUNTED}', '', 0, 0, 0,
        ${ALL_ROWS} - (SELECT coalesce(sum(written), 0) FROM ${BAR_ACCOUNTS}), 0, 0
        WHERE NOT EXISTS (FROM ${BAR_ACCOUNTS} WHERE run_id = '${UNCOUNTED}')`)
      await addUpEarlier(connection)
    })
  } catch (error) {
    if (!isFullError(error) && !isReadOnlyError(error)) throw error
  }
}

async function addUpEarlier(connection: DuckDBConnection): Promise<void> {
  const old = `SELECT DISTINCT run_id FROM ${BAR_ACCOUNTS} WHERE run_id NOT IN ('${UNCOUNTED}', '${EARLIER}')
    ORDER BY run_id DESC OFFSET ${BAR_RUNS_MAX}`
  const runs = await queryValue(connection, `SELECT count(*)::DOUBLE AS runs FROM (${old})`, 'number')
  if (runs === 0) return
  const sums = ACCOUNT_FIELDS.map((name) => `sum(${name})`).join(', ')
  const added = `FROM ${BAR_ACCOUNTS} WHERE run_id = '${EARLIER}' OR run_id IN (${old})`
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE bars_earlier AS SELECT tf, ${sums}, max(to_ms) ${added} GROUP BY tf`,
  )
  await connection.run(`DELETE ${added}`)
  await connection.run(`INSERT INTO ${BAR_ACCOUNTS} SELECT '${EARLIER}', * FROM bars_earlier`)
  await connection.run('DROP TABLE bars_earlier')
}

/** Records that an operator has acknowledged what is missing so far. */
export async function settleMissingBars(connection: DuckDBConnection): Promise<void> {
  const isRun = `run_id <> '${UNCOUNTED}'`
  await connection.run(
    `UPDATE ${BAR_ACCOUNTS} SET settled = closed - dropped - repeated - written WHERE ${isRun}`,
  )
  await connection.run(
    `UPDATE ${BAR_ACCOUNTS} SET written = ${ALL_ROWS} - (SELECT coalesce(sum(written), 0) FROM ${BAR_ACCOUNTS} WHERE ${isRun})
     WHERE NOT ${isRun}`,
  )
}

/** The lake has all bars that ended by this market time; 0: not known. */
export async function loadBarsToMs(connection: DuckDBConnection): Promise<number> {
  if (!(await hasTable(connection, 'current_database()', BAR_ACCOUNTS))) return 0
  const sql = `SELECT coalesce(max(to_ms), 0)::DOUBLE AS ms FROM ${BAR_ACCOUNTS}`
  return queryValue(connection, sql, 'number')
}

/** Numbers of bars of one run and timeframe. */
export interface RunBars extends Record<(typeof ACCOUNT_FIELDS)[number], number> {
  runId: string
  tf: string
}

/**
 * Reads what the lake should have.
 * @returns the accounts of all runs, and how many rows were counted and how many the lake has or had; null where nothing was counted
 *  yet: by an earlier version
 */
export async function readBarAccounts(connection: DuckDBConnection) {
  if (!(await hasTable(connection, 'current_database()', BAR_ACCOUNTS))) return null
  const runs = await queryRows(
    connection,
    `SELECT run_id AS "runId", tf, ${SELECT_FIELDS} FROM ${BAR_ACCOUNTS} ORDER BY run_id, tf`,
    { runId: 'string', tf: 'string', ...FIELD_TYPES },
  )
  if (!runs.some(({ runId }) => runId === UNCOUNTED)) return null
  const found = await queryValue(connection, `SELECT ${ALL_ROWS}::DOUBLE AS found`, 'number')
  return {
    runs: runs.filter(({ runId }) => runId !== UNCOUNTED),
    rowsExpected: runs.reduce((sum, { written }) => sum + written, 0),
    rowsFound: found,
  }
}
