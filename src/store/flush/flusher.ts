// Flushes the sealed segments of the log and the buffered market data to the lake, and updates the state, in one transaction, so
// that each commit is applied once. Order: bars, then submissions, which open outcomes, then labels that are due.

import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import pLimit from 'p-limit'
import { errorMessage } from '../../lib/error-text.ts'
import type { SegmentDamage } from '../../lib/segments/types.ts'
import { TABLES } from '../../schema/tables.ts'
import { isFatalError, isSystemError } from '../duckdb/database.ts'
import { StoreError } from '../errors.ts'
import { takeKnownMs } from '../lake/known-at.ts'
import type { FlushBatch, Lake } from '../lake/lake.ts'
import { type NewFile, nextSeq } from '../lake/manifest.ts'
import type { BarStore } from '../market-data/bar-store.ts'
import { lastVersions, type ProfileBuffer } from '../market-data/profile-buffer.ts'
import type { OutcomeLabeler } from '../outcomes/outcome-labeler.ts'
import { openOutcomesSql } from '../outcomes/outcome-sql.ts'
import { flushFolder, logFolder } from '../paths.ts'
import type { FlushAnswer, Requests } from '../process/protocol.ts'
import { AccountsCopy } from '../state/accounts-copy.ts'
import { loadState } from '../state/read-state.ts'
import type { StateAges, StoreState } from '../state/state.ts'
import { saveState } from '../state/state-database.ts'
import { moveDeadRows } from './dead-letters.ts'
import { splitCommits } from './log-rows.ts'
import { RowSplitter, type StagedRows } from './row-splitter.ts'
import { selectStaged } from './staged-sql.ts'

export interface FlushOptions extends StateAges {
  lake: Lake
  logId: string
  bars: BarStore
  tokens: ProfileBuffer
  outcomes: OutcomeLabeler
}

type FlushAsk = Requests['flush']['ask']

export class Flusher {
  readonly #options: FlushOptions
  readonly #accounts: AccountsCopy
  /** As of the last flush; null where it must be loaded, because a failed flush may have changed it without saving it. */
  #state: StoreState | null = null
  /** A flush that its caller gave up may still be running: it has the state and the folder of staged rows to itself. */
  readonly #turns = pLimit(1)

  constructor(options: FlushOptions) {
    this.#options = options
    this.#accounts = new AccountsCopy(options.lake.dataDir)
  }

  /** Can be called again after it has rejected, even where the rows were listed before a later step failed. */
  flush(ask: FlushAsk): Promise<FlushAnswer> {
    const askedMs = performance.now()
    // What is delivered while it waits for its turn is written too: that is not known before the turn begins.
    return this.#turns(() =>
      this.#flush({ ...ask, nowMs: ask.nowMs + Math.floor(performance.now() - askedMs) }),
    )
  }

  async #flush(ask: FlushAsk): Promise<FlushAnswer> {
    const { bars, lake, tokens } = this.#options
    const staged = await bars.stage(ask.nowMs)
    const profiles = tokens.held
    const splitter = new RowSplitter(flushFolder(lake.dataDir))
    const state = await this.#loadState()
    try {
      const firstLsn = state.lsn + 1
      const damage = await this.#readCommits(ask, state, splitter)
      await this.#addProfiles(profiles, splitter, ask.nowMs)
      lake.failpoint('flush:read')
      const lsns = { first: firstLsn, last: state.lsn }
      // Released as soon as they are listed. If a later step failed, the next flush would write them a second time otherwise.
      const onListed = () => {
        tokens.release(profiles)
        // Which bars are not complete is told by the catalog, also where no file is new.
        if (staged.rewound.length > 0) lake.markCatalogStale()
      }
      const record: FlushBatch['record'] = (connection, written) => {
        const paths = written.filter(({ table }) => table === TABLES.bars.name).map(lake.pathOf)
        return bars.record(connection, staged, paths)
      }
      const written = { staged: splitter.finish(), lsns, onListed, record }
      const deadRows = await this.#write(written, state, ask.nowMs)
      await bars.release(staged)
      await this.#labelOutcomes(ask.nowMs)
      const inLake = { bars: bars.inLakeBars, profiles: tokens.inLake }
      return { damage, deadRows, bars: await bars.recorded(), inLake }
    } catch (error) {
      this.#state = null
      throw error
    } finally {
      splitter.remove()
    }
  }

  /** Writes the rows to the lake. Where DuckDB cannot read some, moves those to the dead letters and tries again. @returns how many */
  async #write({ staged: rows, ...written }: FlushBatch, state: StoreState, nowMs: number): Promise<number> {
    const { lake } = this.#options
    const { database, dataDir } = lake
    const sequenced = await database.maintenance.run((connection) => assignProfileSeqs(connection, rows))
    const batch = (staged: readonly StagedRows[]) => ({
      ...written,
      staged,
      record: async (connection: DuckDBConnection, files: readonly NewFile[]) => {
        await written.record(connection, files)
        await this.#recordState(connection, state, staged)
      },
    })
    try {
      await lake.flush(batch(sequenced), nowMs)
      return 0
    } catch (error) {
      if (isSystemError(error) || error instanceof StoreError) throw error
      const { staged, deadRows } = await database.maintenance.run((connection) =>
        moveAllDeadRows(connection, dataDir, sequenced),
      )
      if (deadRows === 0) throw error
      await lake.flush(batch(staged), nowMs)
      return deadRows
    }
  }

  /** Adds the first `count` profiles that wait. */
  async #addProfiles(count: number, splitter: RowSplitter, nowMs: number): Promise<void> {
    const { lake, tokens } = this.#options
    const rows = lastVersions(tokens.waiting().slice(0, count))
    if (rows.length === 0) return
    const knownMs = await lake.database.maintenance.run((connection) => takeKnownMs(connection, nowMs))
    for (const row of rows) splitter.add(TABLES.tokens, row, knownMs)
  }

  async #loadState(): Promise<StoreState> {
    const { database } = this.#options.lake
    this.#state ??= await database.maintenance.run((connection) => loadState(connection, this.#options))
    return this.#state
  }

  async #readCommits(
    { throughLsn }: FlushAsk,
    state: StoreState,
    splitter: RowSplitter,
  ): Promise<SegmentDamage[]> {
    if (throughLsn <= state.lsn) return []
    const { lake, logId } = this.#options
    const report = await splitCommits({ folder: logFolder(lake.dataDir), logId, throughLsn }, state, splitter)
    // LSNs that are void or lost count as flushed too, so that later flushes do not look for them.
    state.lsn = Math.max(state.lsn, throughLsn)
    return report.damage
  }

  /** Opens outcomes and saves the state, in the transaction that lists the new files. */
  async #recordState(
    connection: DuckDBConnection,
    state: StoreState,
    staged: readonly StagedRows[],
  ): Promise<void> {
    for (const rows of staged.filter(({ table }) => table.name === TABLES.training.name))
      await connection.run(openOutcomesSql(selectStaged(TABLES.training, rows)))
    await this.#accounts.write(connection, state)
    const { dataDir, failpoint } = this.#options.lake
    await saveState(connection, state, join(flushFolder(dataDir), 'state'))
    failpoint('flush:recorded')
  }

  /** Computes due outcomes, which the next flush writes to the lake. An ordinary failure is logged: it must not fail this flush. */
  async #labelOutcomes(nowMs: number): Promise<void> {
    const { bars, lake, outcomes } = this.#options
    try {
      await outcomes.labelDue(bars.inLakeToMs, nowMs)
    } catch (error) {
      if (isFatalError(error)) throw error
      const fields = { error: errorMessage(error) }
      const message = 'outcomes could not be computed; the next flush tries again'
      lake.log({ level: 'error', message, fields })
    }
  }
}

/** Gives profiles consecutive sequence numbers, which their file is named after: they have no LSN. */
async function assignProfileSeqs(
  connection: DuckDBConnection,
  rows: readonly StagedRows[],
): Promise<StagedRows[]> {
  let first = await nextSeq(connection, TABLES.tokens.name)
  return rows.map((each) => {
    if (each.table.name !== TABLES.tokens.name) return each
    const range = { first, last: first + each.rows - 1 }
    first += each.rows
    return { ...each, range }
  })
}

/** @returns the files that still have rows, and how many rows were moved */
async function moveAllDeadRows(connection: DuckDBConnection, dataDir: string, rows: readonly StagedRows[]) {
  const staged: StagedRows[] = []
  let deadRows = 0
  for (const each of rows) {
    const result = await moveDeadRows(connection, dataDir, each)
    deadRows += result.deadRows
    if (result.staged.rows > 0) staged.push(result.staged)
  }
  return { staged, deadRows }
}
