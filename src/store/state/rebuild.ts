// Makes the state anew where the state database is gone: sums, limits and the last commit from the lake's files, agents, keys and
// bans from their copy. What follows is in the log. Remembered responses are nowhere else.
import type { DuckDBConnection } from '@duckdb/node-api'
import { COOLDOWNS_MAX, COVERED_MINTS_MAX, LABELS_WITHHELD_MAX } from '../../schema/recovered.ts'
import { TABLES } from '../../schema/tables.ts'
import { queryRows, queryValue, type ResultColumns, type ResultRow, runAll } from '../duckdb/query.ts'
import {
  createdAtColumn,
  findLakeTable,
  identifier,
  LAKE_TABLES,
  type LakeTable,
  REMOVALS,
} from '../duckdb/sql.ts'
import { countDeadLetters } from '../flush/dead-letters.ts'
import type { Lake } from '../lake/lake.ts'
import {
  listAllLiveFiles,
  listLiveFiles,
  listQuarantinedFiles,
  type QuarantinedFile,
} from '../lake/manifest.ts'
import { selectAllRows, toReadableFiles } from '../lake/parquet-sql.ts'
import { STATE_PIECE_ENTRIES, STRIKES_MAX, STRIKES_RECOVERED_MS } from '../limits.ts'
import { readLog } from '../log/reader.ts'
import { reopenOutcomesSql } from '../outcomes/outcome-sql.ts'
import { logFolder } from '../paths.ts'
import { type ReadAccounts, readAccounts } from './accounts-copy.ts'
import { type StateAges, StoreState } from './state.ts'
import { loadPosition } from './state-database.ts'

export interface RebuildOptions extends StateAges {
  dataDir: string
  logId: string
}

export interface RebuiltState {
  state: StoreState
  /** The lake has files. */
  hasLake: boolean
  /** That there was another state, and what is lost of it, as a sentence; null: the folder is new. */
  loss: string | null
}

/** SQL that selects the rows of a table in the lake. */
async function selectRows(connection: DuckDBConnection, lake: Lake, table: LakeTable): Promise<string> {
  return selectAllRows(table, toReadableFiles(await listLiveFiles(connection, table.name), lake.pathOf))
}

/** The rows of a query in its order, of which there may be a million: DuckDB keeps them, and spills them, while they are read. */
async function* readInPieces<const Columns extends ResultColumns>(
  connection: DuckDBConnection,
  sql: string,
  columns: Columns,
): AsyncGenerator<ResultRow<Columns>, void, void> {
  await connection.run(`CREATE OR REPLACE TEMP TABLE rebuilt AS ${sql}`)
  const count = await queryValue(connection, 'SELECT count(*)::DOUBLE AS count FROM rebuilt', 'number')
  for (let from = 0; from < count; from += STATE_PIECE_ENTRIES) {
    const isOfPiece = `rowid BETWEEN ${from} AND ${from + STATE_PIECE_ENTRIES - 1}`
    yield* await queryRows(connection, `SELECT * FROM rebuilt WHERE ${isOfPiece}`, columns)
  }
  await connection.run('DROP TABLE rebuilt')
}

/** Opens the outcomes whose last horizon is not labelled yet. Called in a transaction. */
export async function reopenOutcomes(connection: DuckDBConnection, lake: Lake): Promise<void> {
  const [examples, outcomes] = [
    await selectRows(connection, lake, TABLES.training),
    await selectRows(connection, lake, TABLES.outcomes),
  ]
  await runAll(connection, reopenOutcomesSql(examples, outcomes))
}

/** Notes the dates that have expired from `training`: those with awards before the first submission. Called in a transaction. */
export async function noteExpiredDates(connection: DuckDBConnection, lake: Lake): Promise<void> {
  const dates = (await listLiveFiles(connection, TABLES.training.name)).map(({ date }) => date)
  const before = dates.length === 0 ? 'true' : `awarded_at::DATE < DATE '${dates.toSorted()[0]}'`
  await connection.run(
    `INSERT INTO ${REMOVALS} SELECT DISTINCT 'training', awarded_at::DATE, 0, 0, epoch_ms(0)
     FROM (${await selectRows(connection, lake, TABLES.xp_ledger)}) WHERE kind = 'analysis' AND ${before}`,
  )
}

const isOfLog = ({ origin }: LakeTable): boolean => origin === undefined

/** The last commit that the lake has had: that of the catalog, or of files that are or were listed. */
export async function findLastLsn(connection: DuckDBConnection): Promise<number> {
  const { lsn: flushedLsn } = await loadPosition(connection)
  const files = [...(await listAllLiveFiles(connection)), ...(await listQuarantinedFiles(connection))]
  return files.reduce((lsn, { table, last }) => {
    const found = findLakeTable(table)
    return found !== undefined && isOfLog(found) ? Math.max(lsn, last) : lsn
  }, flushedLsn)
}

/** The state as of the last commit whose rows are in the lake. Damaged files are set aside first. */
export async function rebuildState(
  connection: DuckDBConnection,
  lake: Lake,
  options: RebuildOptions,
  nowMs: number,
): Promise<RebuiltState> {
  const state = new StoreState(options)
  const accounts = await readAccounts(options.dataDir, state)
  const listed = await listAllLiveFiles(connection)
  const needed = listed.filter(({ table }) => findLakeTable(table)?.origin !== 'journal' && table !== 'bars')
  await lake.quarantine.check(connection, needed, 'content', nowMs)
  const lost = await listQuarantinedFiles(connection)
  const hasLake = listed.length > 0
  if (hasLake) {
    state.lsn = await findLastLsn(connection)
    const gone = lost.map(({ table, rowsLost }) => ({ table, rows: rowsLost }))
    const unlisted = [...gone, ...countDeadLetters(options.dataDir)]
    for (const table of LAKE_TABLES.filter(isOfLog)) await addTotals(connection, state, lake, table, unlisted)
    const rowsOf = (table: LakeTable) => selectRows(connection, lake, table)
    const [examples, rejections] = [await rowsOf(TABLES.training), await rowsOf(TABLES.rejections)]
    const sources = { connection, state, examples, rejections, ledger: await rowsOf(TABLES.xp_ledger) }
    for (const add of [addAwards, addOutcomes, addCoverage, addLimits]) await add(sources)
  }
  await skipAccountCommits(state, options)
  const loss = hasLake || accounts !== null ? describeLoss(accounts, lost) : null
  return { state, hasLake, loss }
}

const GONE = 'answers that were remembered for an Idempotency-Key'
/** What the state has from the rows of a table, which it kept as long as it was there itself. */
const MADE_FROM: Partial<Record<string, string>> = {
  xp_ledger: 'the XP',
  training: 'the coverage, counts of outcomes and cooldowns',
  rejections: 'the strikes, counts of outcomes and cooldowns',
}

/** What a rebuilt state lacks, as a sentence. @param files those that are set aside */
function describeLoss(accounts: ReadAccounts | null, files: readonly QuarantinedFile[]): string {
  const made = 'the state database was lost and made anew from the lake and the log'
  const ofFiles = Object.entries(MADE_FROM).flatMap(([table, what]) => {
    const rows = files.reduce((sum, file) => sum + (file.table === table ? file.rowsLost : 0), 0)
    return rows > 0 ? [`${what} of ${rows === 1 ? '1 row' : `${rows} rows`} of ${table}`] : []
  })
  const inFiles =
    ofFiles.length > 0 ? `, and, since files of the lake are set aside, ${ofFiles.join(', ')}` : ''
  if (accounts === null)
    return `${made}; lost: agents, keys, profiles and bans, of which there was no copy (accounts.log), and ${GONE}${inFiles}`
  const { damagedLines } = accounts
  if (damagedLines === 0)
    return `${made}; lost: ${GONE}${inFiles}. Agents, keys, profiles and bans are as they were`
  const some = damagedLines === 1 ? '1 entry' : `${damagedLines} entries`
  return `${made}; lost: ${some} of agents, keys, profiles and bans, whose copy (accounts.log) is damaged, and ${GONE}${inFiles}`
}

/**
 * The last commits may have had accounts only, of which no file of the lake tells, nor the catalog of an older version. Where the log has none beyond the lake, they are
 * not to be numbered again.
 */
async function skipAccountCommits(state: StoreState, { dataDir, logId }: RebuildOptions): Promise<void> {
  const tail = await readLog({ folder: logFolder(dataDir), logId, afterLsn: state.lsn }, () => {}).catch(
    () => null,
  )
  const isWaiting = tail !== null && tail.commits > 0
  for (const table of [state.agents, state.agentKeys, state.agentEvents]) {
    for (const { lsn, knownAtMs } of table.values()) {
      if (!isWaiting) state.lsn = Math.max(state.lsn, lsn)
      state.knownAtMs = Math.max(state.knownAtMs, knownAtMs)
    }
  }
}

/** Adds how many rows of a table were committed, and when the last one was. @param unlisted rows that no live file has */
async function addTotals(
  connection: DuckDBConnection,
  state: StoreState,
  lake: Lake,
  table: LakeTable,
  unlisted: readonly { table: string; rows: number }[],
): Promise<void> {
  const files = await listLiveFiles(connection, table.name)
  const all = [...files, ...unlisted.filter((each) => each.table === table.name)]
  const count = all.reduce((sum, { rows }) => sum + rows, 0)
  state.rowTotals.set(table.name, count)
  const sql = `SELECT coalesce(epoch_ms(max(${identifier(createdAtColumn(table))})), 0)::DOUBLE
    FROM (${selectAllRows(table, toReadableFiles(files, lake.pathOf))})`
  const ms = await queryValue(connection, sql, 'number')
  state.knownAtMs = Math.max(state.knownAtMs, ms)
}

/** What a state is made from: SQL that selects the rows of tables. */
interface Sources {
  connection: DuckDBConnection
  state: StoreState
  ledger: string
  examples: string
  rejections: string
}

async function addAwards({ connection, state, ledger }: Sources): Promise<void> {
  const agents = readInPieces(
    connection,
    `SELECT agent_id AS "agentId", sum(xp)::DOUBLE AS xp, count(*) FILTER (kind = 'analysis')::DOUBLE AS analyses
     FROM (${ledger}) GROUP BY 1`,
    { agentId: 'string', xp: 'number', analyses: 'number' },
  )
  for await (const { agentId, xp, analyses } of agents) state.agentTotals.set(agentId, { xp, analyses })
}

/** Adds how each agent's submissions ended. Those whose dates have expired, and those of lost files, are not counted. */
async function addOutcomes({ connection, state, examples, rejections }: Sources): Promise<void> {
  const agents = readInPieces(
    connection,
    `SELECT agent_id AS "agentId", count(*) FILTER (outcome = 'validated')::DOUBLE AS validated,
       count(*) FILTER (outcome = 'unvalidated')::DOUBLE AS unvalidated,
       count(*) FILTER (outcome = 'rejected')::DOUBLE AS rejected
     FROM (SELECT agent_id, outcome FROM (${examples}) UNION ALL SELECT agent_id, outcome FROM (${rejections})) GROUP BY 1`,
    { agentId: 'string', validated: 'number', unvalidated: 'number', rejected: 'number' },
  )
  for await (const { agentId, ...counts } of agents) state.agentOutcomes.set(agentId, counts)
}

/** Commits of one millisecond are in the order of their identities, which rise with time. */
const KNOWN = `epoch_ms(known_at)::DOUBLE AS "knownAtMs", epoch_ms(coalesce(received_at, known_at))::DOUBLE AS "atMs"`

/** SQL of the latest rows of a query, in the order of their commits. @param rows SQL that selects `knownAtMs` and `analysisId` too */
const latest = (rows: string, rowsMax: number): string =>
  `FROM (${rows} ORDER BY "knownAtMs" DESC, "analysisId" DESC LIMIT ${rowsMax}) ORDER BY "knownAtMs", "analysisId"`

/** Adds the strikes and cooldowns that follow from the submissions. */
async function addLimits({ connection, state, examples, rejections }: Sources): Promise<void> {
  const columns = { agentId: 'string', knownAtMs: 'number', atMs: 'number' } as const
  const strikes = readInPieces(
    connection,
    latest(
      `SELECT analysis_id AS "analysisId", agent_id AS "agentId", ${KNOWN} FROM (${rejections})
       WHERE known_at > epoch_ms(${state.knownAtMs - STRIKES_RECOVERED_MS})`,
      STRIKES_MAX,
    ),
    columns,
  )
  for await (const { agentId, knownAtMs, atMs } of strikes) state.strikes.push(knownAtMs, { agentId, atMs })
  const sinceMs = state.knownAtMs - state.ageLimits.cooldowns.keptMs
  const starts = readInPieces(
    connection,
    latest(
      `SELECT analysis_id AS "analysisId", agent_id AS "agentId", mint, ${KNOWN}
       FROM (SELECT analysis_id, agent_id, mint, known_at, received_at FROM (${examples})
             UNION ALL SELECT analysis_id, agent_id, mint, known_at, received_at FROM (${rejections}))
       WHERE known_at > epoch_ms(${sinceMs})`,
      COOLDOWNS_MAX,
    ),
    { ...columns, mint: 'string' },
  )
  for await (const { agentId, mint, knownAtMs, atMs } of starts)
    state.cooldowns.push(knownAtMs, { agentId, mint, atMs })
}

/** Adds what the training rows say of each mint. */
async function addCoverage({ connection, state, examples }: Sources): Promise<void> {
  const isShown = `known_at <= epoch_ms(${state.knownAtMs - state.ages.labelsDelayMs})`
  const mints = readInPieces(
    connection,
    `SELECT mint, count(*)::DOUBLE AS count,
       coalesce(arg_max(sentiment, (known_at, analysis_id)) FILTER (${isShown}), '') AS "lastSentiment",
       coalesce(arg_max(score, (known_at, analysis_id)) FILTER (${isShown}), 0) AS "lastScore" FROM (${examples})
     GROUP BY 1 ORDER BY min((known_at, analysis_id)) LIMIT ${COVERED_MINTS_MAX}`,
    { mint: 'string', count: 'number', lastSentiment: 'string', lastScore: 'number' },
  )
  for await (const { mint, ...total } of mints) state.mintTotals.set(mint, total)
  const recent = readInPieces(
    connection,
    latest(
      `SELECT analysis_id AS "analysisId", mint, sentiment, score, ${KNOWN} FROM (${examples}) WHERE NOT ${isShown}`,
      LABELS_WITHHELD_MAX,
    ),
    {
      analysisId: 'string',
      mint: 'string',
      sentiment: 'string',
      score: 'number',
      knownAtMs: 'number',
      atMs: 'number',
    },
  )
  for await (const { knownAtMs, ...labels } of recent) state.recentLabels.push(knownAtMs, labels)
}
