// Closed bars in the lake process. They wait in memory until a flush stages them: those that the lake does not have yet become
// rows of an in-memory table, from which the flush writes files. Appending yields to other work every few rows.

import type { DuckDBConnection } from '@duckdb/node-api'
import { nextTurn } from '../../lib/wait.ts'
import type { RewoundSpan } from '../../schema/event.ts'
import { LAKE_SCHEMA_VERSION, TABLES } from '../../schema/tables.ts'
import { TIMEFRAMES } from '../../schema/timeframe.ts'
import { ColumnAppender } from '../duckdb/column-appender.ts'
import { duckdb } from '../duckdb/duckdb.ts'
import { queryRows, queryValue } from '../duckdb/query.ts'
import { createEmptyTable, lakeColumns, literal, MARKET_DATABASE, ROW_SEQ, relation } from '../duckdb/sql.ts'
import { noteRewound } from '../events/rewound-spans.ts'
import { takeKnownMs } from '../lake/known-at.ts'
import type { Lake } from '../lake/lake.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { listLiveFiles, nextSeq } from '../lake/manifest.ts'
import { type ReadableFile, selectAllRows } from '../lake/parquet-sql.ts'
import { BARS_CHUNK_ROWS, BARS_HELD_MAX } from '../limits.ts'
import type { Provenance } from '../types.ts'
import { beginBarAccounts, countBarRows, loadBarAccount, saveBarAccount, toBarCounts } from './bar-account.ts'
import { BAR_NUMBER_COUNT, BAR_NUMBERS, type BarBatch } from './bar-batch.ts'
import { type BarAccount, type BarCounts, noBars, sumBars } from './bar-counts.ts'
import { SeenBars } from './seen-bars.ts'

/** A batch of bars, as the server sends it to the lake process. */
export interface BarDelivery {
  /**
   * How many bars this lake process was sent before these. A reply may come too late for the server, which then sends the
   * same batch again: it is not taken twice.
   */
  first: number
  batch: BarBatch
  /** With this batch, all bars that ended by this market time have been sent. Goes back where market time does. */
  completeToMs: number
  /** Where market time went back since the delivery before. Those of a delivery that was not taken come again. */
  rewound: readonly RewoundSpan[]
  /** How many bars the server has dropped so far. */
  dropped: BarCounts
}

/** The reply to a delivery. */
export interface BarReceipt {
  /** False: there is no room now. */
  taken: boolean
  /** How many bars sent to this process are in files. */
  inLakeBars: number
}

/** How far the bars reach that have been sent, or staged, or written. */
export interface StagedBars {
  /** All bars that ended by this market time are included. */
  toMs: number
  /** Where market time went back, as far as it is not recorded. */
  rewound: RewoundSpan[]
  /** Bars counted since this process started. */
  bars: number
  /** What has become of the bars of this run; what is written counts once their files are listed. */
  account: BarAccount
}

const TABLE = TABLES.bars
const TF = BAR_NUMBERS.indexOf('tf')
const T = BAR_NUMBERS.indexOf('t')
const CLOSE_NO = BAR_NUMBERS.indexOf('close_no')
/** SQL of the name of a staged bar's timeframe. */
const TF_SQL = `[${TIMEFRAMES.map(literal).join(', ')}][staged.tf::INTEGER + 1]`
const STAGED_NAME = 'bars_staged'
const STAGED = `${MARKET_DATABASE}.${STAGED_NAME}`
const STAGED_NUMBERS = [...BAR_NUMBERS, 'uncertain']
const CREATE_STAGED = `CREATE OR REPLACE TABLE ${STAGED} (mint VARCHAR,
  ${STAGED_NUMBERS.map((name) => `${name} DOUBLE`).join(', ')})`
const STAGED_TYPES = [duckdb.VARCHAR, ...STAGED_NUMBERS.map(() => duckdb.DOUBLE)]

interface PendingBatch {
  batch: BarBatch
  /** For each bar of the batch: 1 where the lake may have it already. */
  uncertain: Uint8Array
  /** Indices of the bars that are not duplicates. */
  kept: Uint32Array
}

/** SQL of one column of the table, from a staged row. */
function cellSql(
  { name, type }: (typeof TABLE.columns)[number],
  knownMs: number,
  provenance: Provenance | null,
): string {
  if (name === 'feed') return provenance === null ? 'NULL' : literal(provenance.feed)
  if (name === 'simulated') return provenance === null ? 'NULL' : String(provenance.simulated)
  if (name === 'tf') return TF_SQL
  if (name === 'known_at') return `epoch_ms(${knownMs})`
  if (name === 'schema_version') return String(LAKE_SCHEMA_VERSION)
  if (type === 'TIMESTAMP') return `epoch_ms(${name}::BIGINT)`
  if (type === 'BOOLEAN') return `${name} = 1`
  return type === 'BIGINT' ? `${name}::BIGINT` : name
}

/** Start of the youngest bar in the lake, Unix ms; 0 without any. */
async function findYoungestInLake(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  nowMs: number,
): Promise<number> {
  const newestDate = (await listLiveFiles(connection, TABLE.name)).at(-1)?.date
  return reader.read(connection, {
    table: TABLE,
    nowMs,
    isNeeded: ({ date }) => date === newestDate,
    work: (files) => {
      const sql = `SELECT coalesce(epoch_ms(max(t)), 0)::DOUBLE FROM (${selectAllRows(TABLE, files)})`
      return queryValue(connection, sql, 'number')
    },
  })
}

/** The staged columns of the kept bars from index `from` to `to` (exclusive), or to the last. */
function stagedColumns({ batch, kept, uncertain }: PendingBatch, from: number, to: number) {
  const bars = Array.from(kept.subarray(from, to))
  return [
    bars.map((bar) => batch.mints[bar]),
    ...BAR_NUMBERS.map((_, index) => bars.map((bar) => batch.numbers[bar * BAR_NUMBER_COUNT + index])),
    bars.map((bar) => uncertain[bar]),
  ]
}

async function appendStaged(connection: DuckDBConnection, batches: readonly PendingBatch[]): Promise<void> {
  const appender = await ColumnAppender.open(connection, STAGED_NAME, STAGED_TYPES, MARKET_DATABASE)
  try {
    for (const each of batches) {
      for (let from = 0; from < each.kept.length; from += BARS_CHUNK_ROWS) {
        appender.append(stagedColumns(each, from, from + BARS_CHUNK_ROWS))
        await nextTurn()
      }
    }
    appender.flush()
  } finally {
    appender.close()
  }
}

/** SQL of the staged bars, each with whether the lake's files, the rows in memory or a bar before it have the same one. */
function markRepeatedSql(files: readonly ReadableFile[]): string {
  const known = [`SELECT mint, tf, t FROM ${relation(TABLE)}`]
  if (files.length > 0) known.push(`SELECT mint, tf, t FROM (${selectAllRows(TABLE, files)})`)
  return `SELECT *, (uncertain = 1 AND EXISTS (SELECT 1 FROM (${known.join(' UNION ALL ')}) AS known
      WHERE known.mint = staged.mint AND known.tf = ${TF_SQL} AND known.t = epoch_ms(staged.t::BIGINT)))
    OR row_number() OVER (PARTITION BY mint, tf, t ORDER BY rowid) > 1 AS is_repeated FROM ${STAGED} AS staged`
}

/** Dates of staged bars that the lake may have already. */
async function findUncertainDates(connection: DuckDBConnection): Promise<ReadonlySet<string>> {
  const rows = await queryRows(
    connection,
    `SELECT DISTINCT strftime(epoch_ms(t::BIGINT), '%Y-%m-%d') AS date FROM ${STAGED} WHERE uncertain = 1`,
    { date: 'string' },
  )
  return new Set(rows.map(({ date }) => date))
}

/** A run of the server. */
interface Run {
  runId: string
  /** Written into every row; null where it is unknown. */
  provenance: Provenance | null
}

/** What the lake has of bars when a process begins. */
interface BarsInLake {
  /** Start of the youngest one. */
  youngestMs: number
  /** The first row number that it does not have. */
  firstSeq: number
  /** Of this run, which had another lake process before. */
  account: BarAccount
}

export async function openBarStore(lake: Lake, run: Run, nowMs: number): Promise<BarStore> {
  const { database, reader } = lake
  return database.maintenance.run(async (connection) => {
    await connection.run(CREATE_STAGED)
    await beginBarAccounts(connection)
    return new BarStore(lake, run, {
      youngestMs: await findYoungestInLake(connection, reader, nowMs),
      firstSeq: await nextSeq(connection, TABLE.name),
      account: await loadBarAccount(connection, run.runId),
    })
  })
}

export class BarStore {
  readonly #lake: Pick<Lake, 'database' | 'reader'>
  readonly #run: Run
  readonly #seen: SeenBars
  #pending: PendingBatch[] = []
  #pendingBars = 0
  #stagedBars = 0
  #nextSeq: number
  readonly #taken: StagedBars
  readonly #inLake = { toMs: 0, bars: 0 }
  /** The earliest time that was told since bars were staged: market time may go back, and on again, while a flush runs. */
  #leastToMs = Number.POSITIVE_INFINITY

  constructor(
    lake: Pick<Lake, 'database' | 'reader'>,
    run: Run,
    { youngestMs, firstSeq, account }: BarsInLake,
  ) {
    this.#lake = lake
    this.#run = run
    this.#seen = new SeenBars(youngestMs)
    this.#nextSeq = firstSeq
    this.#taken = { toMs: 0, rewound: [], bars: 0, account }
  }

  /** Bars that are in no file yet; at most BARS_HELD_MAX. */
  get held(): number {
    return this.#pendingBars + this.#stagedBars
  }

  /** How many bars sent to this process are in files. */
  get inLakeBars(): number {
    return this.#inLake.bars
  }

  /** Market time up to which the lake has all bars of this run. */
  get inLakeToMs(): number {
    return this.#inLake.toMs
  }

  /** Takes a batch. @returns false where there is no room; then no bar was taken */
  take({ first, batch, completeToMs, rewound, dropped }: BarDelivery): boolean {
    const count = batch.mints.length
    // At once where market time went back: what is submitted since would be labelled by bars that are still to come.
    this.#taken.toMs = Math.min(this.#taken.toMs, completeToMs)
    this.#inLake.toMs = Math.min(this.#inLake.toMs, completeToMs)
    this.#leastToMs = Math.min(this.#leastToMs, completeToMs)
    const wasTaken = this.#taken.bars > first
    if (!wasTaken) {
      if (this.held + count > BARS_HELD_MAX) return false
      this.#keepNew(batch, dropped)
      this.#taken.bars += count
    }
    this.#taken.rewound.push(...rewound)
    this.#taken.toMs = completeToMs
    return true
  }

  /** Turns the bars taken so far into rows for the next flush. @returns how far they reach, for `release` */
  async stage(nowMs: number): Promise<StagedBars> {
    return this.#lake.database.maintenance.run(async (connection) => {
      // Copies: what arrives while this waits is for the next flush.
      const batches = [...this.#pending]
      const count = this.#pendingBars
      const staged = structuredClone(this.#taken)
      this.#leastToMs = Number.POSITIVE_INFINITY
      if (count === 0) return staged
      await connection.run(CREATE_STAGED)
      await appendStaged(connection, batches)
      const repeated = await this.#insertNew(connection, nowMs)
      for (const { account } of [staged, this.#taken])
        account.repeated = account.repeated.map((bars, index) => bars + repeated[index])
      this.#nextSeq += count
      this.#pending = this.#pending.slice(batches.length)
      this.#pendingBars -= count
      this.#stagedBars += count
      await connection.run(CREATE_STAGED)
      return staged
    })
  }

  /**
   * Counts the bars in files that were written, and saves what has become of those of this run, and where market time went back. Called
   * in the transaction that lists the files.
   */
  async record(
    connection: DuckDBConnection,
    { account, rewound, toMs }: StagedBars,
    paths: readonly string[],
  ): Promise<void> {
    const { runId } = this.#run
    await noteRewound(connection, rewound)
    if (sumBars(account.closed) === 0) return
    const before = await loadBarAccount(connection, runId)
    const added = await countBarRows(connection, paths)
    const written = before.written.map((bars, index) => bars + added[index])
    const { settled } = before
    await saveBarAccount(connection, runId, { ...account, written, settled }, toMs)
  }

  /** What has become of the bars of this run, as of the last flush. */
  recorded(): Promise<BarAccount> {
    return this.#lake.database.maintenance.run((connection) => loadBarAccount(connection, this.#run.runId))
  }

  /** Drops the staged rows that are in files by now. */
  async release({ toMs, bars, rewound }: StagedBars): Promise<void> {
    this.#taken.rewound = this.#taken.rewound.slice(rewound.length)
    this.#inLake.toMs = Math.min(toMs, this.#leastToMs)
    this.#inLake.bars = Math.max(this.#inLake.bars, bars)
    if (this.#stagedBars === 0) return
    await this.#lake.database.maintenance.run(async (connection) => {
      const first = await nextSeq(connection, TABLE.name)
      const sql = `SELECT count(*)::DOUBLE AS rows FROM ${relation(TABLE)} WHERE ${ROW_SEQ} >= ${first}`
      const rows = await queryValue(connection, sql, 'number')
      // Replacing the table frees its memory; deleting rows does not.
      if (rows === 0) await connection.run(createEmptyTable(TABLE))
      else await connection.run(`DELETE FROM ${relation(TABLE)} WHERE ${ROW_SEQ} < ${first}`)
      this.#stagedBars = rows
    })
  }

  /** Keeps the bars of a batch that are not duplicates. */
  #keepNew(batch: BarBatch, dropped: BarCounts): void {
    const { account } = this.#taken
    const count = batch.mints.length
    const uncertain = new Uint8Array(count)
    const kept = new Uint32Array(count)
    let keptCount = 0
    for (let bar = 0; bar < count; bar++) {
      const at = bar * BAR_NUMBER_COUNT
      const tf = batch.numbers[at + TF]
      const skipped = batch.numbers[at + CLOSE_NO] - account.closed[tf] - 1
      // Sent again because the server did not know yet that the process before had brought it to a file.
      if (skipped < 0) continue
      account.closed[tf] += skipped + 1
      account.dropped[tf] = Math.min(account.dropped[tf] + skipped, dropped[tf])
      const status = this.#seen.note(batch.mints[bar], tf, batch.numbers[at + T])
      if (status === 'duplicate') {
        account.repeated[tf]++
        continue
      }
      uncertain[bar] = status === 'uncertain' ? 1 : 0
      kept[keptCount++] = bar
    }
    if (keptCount > 0) this.#pending.push({ batch, uncertain, kept: kept.subarray(0, keptCount) })
    this.#pendingBars += keptCount
  }

  /** Inserts the staged bars that the lake does not have. @returns how many it has */
  async #insertNew(connection: DuckDBConnection, nowMs: number): Promise<BarCounts> {
    const knownMs = await takeKnownMs(connection, nowMs)
    const cells = TABLE.columns.map((column) => cellSql(column, knownMs, this.#run.provenance)).join(', ')
    const insert = (staged: string) =>
      connection.run(
        `INSERT INTO ${relation(TABLE)} (${ROW_SEQ}, ${lakeColumns(TABLE)})
         SELECT ${this.#nextSeq - 1} + row_number() OVER (), ${cells} FROM ${staged}`,
      )
    const dates = await findUncertainDates(connection)
    if (dates.size === 0) {
      await insert(`${STAGED} AS staged`)
      return noBars()
    }
    return this.#lake.reader.read(connection, {
      table: TABLE,
      nowMs,
      isNeeded: ({ date }) => dates.has(date),
      async work(files) {
        const marked = `(${markRepeatedSql(files)}) AS staged`
        const repeated = await queryRows(
          connection,
          `SELECT ${TF_SQL} AS tf, count(*)::DOUBLE AS bars FROM ${marked} WHERE is_repeated GROUP BY 1`,
          { tf: 'string', bars: 'number' },
        )
        await insert(`${marked} WHERE NOT is_repeated`)
        return toBarCounts(repeated)
      },
    })
  }
}
