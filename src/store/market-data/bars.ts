// In: batches of closed bars. Out: those that the lake does not have yet, as rows of the table in memory that the lake is
// written from; and the table empty again once they are in files. Works on the maintenance connection and in small
// steps: a commit never waits for it. Never writes a bar twice, never holds more than BARS_HELD_MAX of them.
import type {
  DuckDBAppender,
  DuckDBConnection,
  DuckDBDataChunk,
  DuckDBDoubleVector,
  DuckDBVarCharVector,
} from '@duckdb/node-api'
import { LAKE_SCHEMA_VERSION, TABLES } from '../../schema/tables.ts'
import { TIMEFRAMES } from '../../schema/timeframe.ts'
import { appending, type Database } from '../duckdb/database.ts'
import { duckdb } from '../duckdb/duckdb.ts'
import { query } from '../duckdb/query.ts'
import { createTable, lakeColumns, literal, MARKET_DATABASE, ROW_SEQ, relation } from '../duckdb/sql.ts'
import { liveParts, nextSeq } from '../lake/manifest.ts'
import { type ReadableFile, selectEveryRow } from '../lake/parquet-sql.ts'
import type { SetAside } from '../lake/set-aside.ts'
import { BARS_CHUNK_ROWS, BARS_HELD_MAX } from '../limits.ts'
import type { Provenance } from '../types.ts'
import { BAR_NUMBER_COUNT, BAR_NUMBERS, type BarBatch } from './bar-batch.ts'
import { BarMarks } from './bar-marks.ts'

/** Bars as the lake process is handed them. */
export interface BarDelivery {
  /** How many bars this process was handed before these. An answer may come too late for the server, which then hands the
   *  same batch over again: it is not taken twice. */
  first: number
  batch: BarBatch
  /** All bars that ended by this market time have been delivered, with this. */
  completeToMs: number
}

/** What it says to that. */
export interface BarReceipt {
  /** False: there is no room for them now. */
  taken: boolean
  /** Bars delivered to this process that are in files. */
  inLakeBars: number
}

/** What one call of `stage` has made rows of. */
export interface Staged {
  /** The market time up to which these are all bars there are. */
  toMs: number
  /** Bars delivered so far. */
  bars: number
}

export interface BarStore {
  /** Takes bars. False: there is no room, and nothing was taken. */
  take(delivery: BarDelivery): boolean
  /** Bars that are in no file yet. */
  readonly held: number
  /** Bars delivered that are in files. */
  readonly inLakeBars: number
  /** Makes rows of what was taken. */
  stage(nowMs: number): Promise<Staged>
  /** Forgets rows that the lake has: all that were staged then. */
  release(staged: Staged): Promise<void>
  /** Market time up to which the lake has all bars that this run has seen. */
  readonly inLakeToMs: number
}

type LakeFiles = Pick<SetAside, 'read'>

const TABLE = TABLES.bars
const TF = BAR_NUMBERS.indexOf('tf')
const T = BAR_NUMBERS.indexOf('t')
/** The name of a staged bar's timeframe. */
const TF_SQL = `[${TIMEFRAMES.map(literal).join(', ')}][staged.tf::INTEGER + 1]`
const STAGED = `${MARKET_DATABASE}.bars_staged`
const STAGED_NUMBERS = [...BAR_NUMBERS, 'doubtful']
const CREATE_STAGED = `CREATE OR REPLACE TABLE ${STAGED} (mint VARCHAR,
  ${STAGED_NUMBERS.map((name) => `${name} DOUBLE`).join(', ')})`
const CHUNK_TYPES = [duckdb.VARCHAR, ...STAGED_NUMBERS.map(() => duckdb.DOUBLE)]

interface Pending {
  batch: BarBatch
  /** By bar of the batch: 1 where the lake must be asked. */
  doubtful: Uint8Array
  /** Bars of the batch that count, by index. */
  kept: Uint32Array
}

/** A cell of the table from the staged row. */
function cellSql(
  { name, type }: (typeof TABLE.columns)[number],
  nowMs: number,
  provenance: Provenance | null,
): string {
  if (name === 'feed') return provenance === null ? 'NULL' : literal(provenance.feed)
  if (name === 'simulated') return provenance === null ? 'NULL' : String(provenance.simulated)
  if (name === 'tf') return TF_SQL
  if (name === 'known_at') return `epoch_ms(${nowMs})`
  if (name === 'schema_version') return String(LAKE_SCHEMA_VERSION)
  if (type === 'TIMESTAMP') return `epoch_ms(${name}::BIGINT)`
  return type === 'BIGINT' ? `${name}::BIGINT` : name
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Start of the youngest bar that any file holds, Unix ms; 0 for none. */
async function youngestInLake(
  connection: DuckDBConnection,
  files: LakeFiles,
  nowMs: number,
): Promise<number> {
  const newest = (await liveParts(connection, TABLE.name)).at(-1)?.date
  const latest = (parts: readonly ReadableFile[]) =>
    query<{ ms: number }>(
      connection,
      `SELECT coalesce(epoch_ms(max(t)), 0)::DOUBLE AS ms FROM (${selectEveryRow(TABLE, parts)})`,
    )
  const [{ ms }] = await files.read(connection, {
    table: TABLE,
    nowMs,
    wanted: ({ date }) => date === newest,
    work: latest,
  })
  return ms
}

/** Writes the bars `from` to `to` of what is kept. */
function appendChunk(
  appender: DuckDBAppender,
  chunk: DuckDBDataChunk,
  pending: Pending,
  from: number,
  to: number,
): void {
  const { batch, kept, doubtful } = pending
  chunk.reset()
  chunk.rowCount = to - from
  const mints = chunk.getColumnVector(0) as DuckDBVarCharVector
  const numbers = STAGED_NUMBERS.map((_, index) => chunk.getColumnVector(index + 1) as DuckDBDoubleVector)
  for (let row = 0; row < to - from; row++) {
    const bar = kept[from + row]
    mints.setItem(row, batch.mints[bar])
    for (let index = 0; index < BAR_NUMBER_COUNT; index++)
      numbers[index].setItem(row, batch.numbers[bar * BAR_NUMBER_COUNT + index])
    numbers[BAR_NUMBER_COUNT].setItem(row, doubtful[bar])
  }
  for (const vector of [mints, ...numbers]) vector.flush()
  appender.appendDataChunk(chunk)
}

/** The bars on their way into `database`'s lake. */
export async function openBarStore(
  database: Database,
  files: LakeFiles,
  provenance: Provenance | null,
  nowMs: number,
): Promise<BarStore> {
  const { earlierToMs, firstSeq } = await database.maintenance.run(async (connection) => {
    await connection.run(CREATE_STAGED)
    return {
      earlierToMs: await youngestInLake(connection, files, nowMs),
      firstSeq: await nextSeq(connection, TABLE.name),
    }
  })
  const marks = new BarMarks(earlierToMs)
  /** Used again and again: its memory is outside of what the garbage collector sees. */
  const chunk = duckdb.DuckDBDataChunk.create(CHUNK_TYPES)
  let pending: Pending[] = []
  let pendingBars = 0
  let stagedBars = 0
  let next = firstSeq
  const taken: Staged = { toMs: 0, bars: 0 }
  const inLake: Staged = { toMs: 0, bars: 0 }

  function take({ first, batch, completeToMs }: BarDelivery): boolean {
    const count = batch.mints.length
    if (taken.bars > first) {
      taken.toMs = Math.max(taken.toMs, completeToMs)
      return true
    }
    if (pendingBars + stagedBars + count > BARS_HELD_MAX) return false
    const doubtful = new Uint8Array(count)
    const kept = new Uint32Array(count)
    let keptCount = 0
    for (let bar = 0; bar < count; bar++) {
      const at = bar * BAR_NUMBER_COUNT
      const freshness = marks.note(batch.mints[bar], batch.numbers[at + TF], batch.numbers[at + T])
      if (freshness === 'again') continue
      doubtful[bar] = freshness === 'doubtful' ? 1 : 0
      kept[keptCount++] = bar
    }
    if (keptCount > 0) pending.push({ batch, doubtful, kept: kept.subarray(0, keptCount) })
    pendingBars += keptCount
    taken.toMs = Math.max(taken.toMs, completeToMs)
    taken.bars += count
    return true
  }

  async function append(connection: DuckDBConnection, batches: readonly Pending[]): Promise<void> {
    await appending(connection, 'bars_staged', MARKET_DATABASE, async (appender) => {
      for (const each of batches) {
        for (let from = 0; from < each.kept.length; from += BARS_CHUNK_ROWS) {
          appendChunk(appender, chunk, each, from, Math.min(each.kept.length, from + BARS_CHUNK_ROWS))
          await nextTurn()
        }
      }
    })
  }

  /** Dates of staged bars that the lake may have already. */
  async function doubtfulDates(connection: DuckDBConnection): Promise<ReadonlySet<string>> {
    const dates = await query<{ date: string }>(
      connection,
      `SELECT DISTINCT strftime(epoch_ms(t::BIGINT), '%Y-%m-%d') AS date FROM ${STAGED} WHERE doubtful = 1`,
    )
    return new Set(dates.map(({ date }) => date))
  }

  /** Condition on a staged bar: no file and no row in memory has it. */
  function isMissing(parts: readonly ReadableFile[]): string {
    const known = [`SELECT mint, tf, t FROM ${relation(TABLE)}`]
    if (parts.length > 0) known.push(`SELECT mint, tf, t FROM (${selectEveryRow(TABLE, parts)})`)
    return `doubtful = 0 OR NOT EXISTS (SELECT 1 FROM (${known.join(' UNION ALL ')}) AS known
      WHERE known.mint = staged.mint AND known.tf = ${TF_SQL} AND known.t = epoch_ms(staged.t::BIGINT))`
  }

  async function stage(nowMs: number): Promise<Staged> {
    return database.maintenance.run(async (connection) => {
      const batches = pending
      const count = pendingBars
      const staged = { ...taken }
      if (count === 0) return staged
      await connection.run(CREATE_STAGED)
      await append(connection, batches)
      const cells = TABLE.columns.map((column) => cellSql(column, nowMs, provenance)).join(', ')
      const dates = await doubtfulDates(connection)
      await files.read(connection, {
        table: TABLE,
        nowMs,
        wanted: ({ date }) => dates.has(date),
        work: (parts) =>
          connection.run(
            `INSERT INTO ${relation(TABLE)} (${ROW_SEQ}, ${lakeColumns(TABLE)})
             SELECT ${next - 1} + row_number() OVER (), ${cells} FROM ${STAGED} AS staged
             WHERE ${isMissing(parts)}`,
          ),
      })
      next += count
      pending = pending.slice(batches.length)
      pendingBars -= count
      stagedBars += count
      await connection.run(CREATE_STAGED)
      return staged
    })
  }

  async function release({ toMs, bars }: Staged): Promise<void> {
    inLake.toMs = Math.max(inLake.toMs, toMs)
    inLake.bars = Math.max(inLake.bars, bars)
    if (stagedBars === 0) return
    await database.maintenance.run(async (connection) => {
      const first = await nextSeq(connection, TABLE.name)
      const sql = `SELECT count(*)::DOUBLE AS rows FROM ${relation(TABLE)} WHERE ${ROW_SEQ} >= ${first}`
      const [{ rows }] = await query<{ rows: number }>(connection, sql)
      // A new table gives the memory back, deleted rows do not.
      if (rows === 0) await connection.run(createTable(TABLE).replace('CREATE', 'CREATE OR REPLACE'))
      else await connection.run(`DELETE FROM ${relation(TABLE)} WHERE ${ROW_SEQ} < ${first}`)
      stagedBars = rows
    })
  }

  return {
    take,
    get held() {
      return pendingBars + stagedBars
    },
    get inLakeToMs() {
      return inLake.toMs
    },
    get inLakeBars() {
      return inLake.bars
    },
    stage,
    release,
  }
}
