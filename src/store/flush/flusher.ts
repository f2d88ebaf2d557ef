// In: sealed segments of the log, and the market's data that waits. Out: all of it in the lake, the state brought up to it,
// in one transaction. Order: bars first, then submissions, whose outcomes are opened, then the labels that are due. Never
// applies a commit twice, and keeps nothing of a flush that failed.
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { type Row, TABLES } from '../../schema/tables.ts'
import type { Database } from '../duckdb/database.ts'
import { isFatalError, isSystemError } from '../duckdb/database.ts'
import { StoreError } from '../errors.ts'
import type { FlushBatch, Flushed, Lake } from '../lake/lake.ts'
import { nextSeq } from '../lake/manifest.ts'
import type { LogDamage } from '../log/types.ts'
import type { BarStore } from '../market-data/bar-store.ts'
import type { ProfileBuffer } from '../market-data/profile-buffer.ts'
import type { OutcomeLabeler } from '../outcomes/outcome-labeler.ts'
import { openOutcomesSql } from '../outcomes/outcome-sql.ts'
import { flushFolder, logFolder } from '../paths.ts'
import type { CrashPoint, FlushAnswer, LogLine, Requests } from '../process/protocol.ts'
import type { StateOptions, StoreState } from '../state/state.ts'
import { loadState, restoreState, saveState } from '../state/state-database.ts'
import { withoutDeadRows } from './dead-letters.ts'
import { splitCommits } from './log-rows.ts'
import { RowSplitter, type StagedRows } from './row-splitter.ts'
import { selectStaged } from './staged-sql.ts'

export interface FlushOptions extends StateOptions {
  dataDir: string
  logId: string
  database: Database
  lake: Lake
  bars: BarStore
  tokens: ProfileBuffer
  outcomes: OutcomeLabeler
  failpoint(point: CrashPoint): void
  log(line: LogLine): void
}

type FlushAsk = Requests['flush']['ask']

export class Flusher {
  readonly #options: FlushOptions
  /** As of the last flush; null: to be loaded, since a flush that failed may have left it ahead of what is saved. */
  #state: StoreState | null = null

  constructor(options: FlushOptions) {
    this.#options = options
  }

  async flush(ask: FlushAsk): Promise<FlushAnswer> {
    const { bars, outcomes, tokens, dataDir } = this.#options
    const staged = await bars.stage(ask.nowMs)
    const profiles = tokens.held
    const splitter = new RowSplitter(flushFolder(dataDir))
    const state = await this.#loaded()
    try {
      const firstLsn = state.lsn + 1
      const damage = await this.#readCommits(ask, state, splitter)
      this.#splitProfiles(splitter, profiles, ask.nowMs)
      this.#options.failpoint('flush:read')
      const lsns = { first: firstLsn, last: state.lsn }
      // Nothing else tells that they are in files: a flush that is tried again would write them twice.
      const onListed = () => tokens.release(profiles)
      const flushed = await this.#write({ staged: splitter.finish(), lsns, onListed }, state, ask.nowMs)
      await bars.release(staged)
      await this.#label(outcomes, bars, ask.nowMs)
      return { lsn: state.lsn, damage, ...flushed }
    } catch (error) {
      this.#state = null
      throw error
    } finally {
      splitter.remove()
    }
  }

  async #write(
    { staged: rows, ...written }: Omit<FlushBatch, 'record'>,
    state: StoreState,
    nowMs: number,
  ): Promise<Flushed & { deadRows: number }> {
    const { database, lake, dataDir } = this.#options
    const numbered = await database.maintenance.run((connection) => numberProfiles(connection, rows))
    const batch = (staged: readonly StagedRows[]) => ({
      ...written,
      staged,
      record: (connection: DuckDBConnection) => this.#record(connection, state, staged),
    })
    try {
      return { ...(await lake.flush(batch(numbered), nowMs)), deadRows: 0 }
    } catch (error) {
      if (isSystemError(error) || error instanceof StoreError) throw error
      const { staged, deadRows } = await database.maintenance.run((connection) =>
        removeDeadRows(connection, dataDir, numbered),
      )
      if (deadRows === 0) throw error
      return { ...(await lake.flush(batch(staged), nowMs)), deadRows }
    }
  }

  async #loaded(): Promise<StoreState> {
    const { database } = this.#options
    this.#state ??= restoreState(await database.maintenance.run(loadState), this.#options)
    return this.#state
  }

  async #readCommits(
    { throughLsn }: FlushAsk,
    state: StoreState,
    splitter: RowSplitter,
  ): Promise<LogDamage[]> {
    if (throughLsn <= state.lsn) return []
    const { dataDir, logId } = this.#options
    const report = await splitCommits({ folder: logFolder(dataDir), logId, throughLsn }, state, splitter)
    // Numbers that were void, or are lost, lie behind too: nobody will ask for them again.
    state.lsn = Math.max(state.lsn, throughLsn)
    return report.damage
  }

  #splitProfiles(splitter: RowSplitter, count: number, nowMs: number): void {
    for (const row of this.#options.tokens.waiting().slice(0, count))
      splitter.add(TABLES.tokens, row as Row, nowMs)
  }

  async #record(
    connection: DuckDBConnection,
    state: StoreState,
    staged: readonly StagedRows[],
  ): Promise<void> {
    for (const rows of staged.filter(({ table }) => table.name === TABLES.training.name))
      await connection.run(openOutcomesSql(selectStaged(TABLES.training, rows)))
    await saveState(connection, state, join(flushFolder(this.#options.dataDir), 'state'))
    this.#options.failpoint('flush:recorded')
  }

  /** What has become of submissions goes to the lake with the next flush. A failure is no reason to fail this one. */
  async #label(outcomes: OutcomeLabeler, bars: BarStore, nowMs: number): Promise<void> {
    try {
      await outcomes.labelDue(bars.inLakeToMs, nowMs)
    } catch (error) {
      if (isFatalError(error)) throw error
      const fields = { error: errorMessage(error) }
      this.#options.log({ level: 'error', message: 'outcomes could not be computed; trying again', fields })
    }
  }
}

/** Profiles count table by table: their numbers name their file. */
async function numberProfiles(
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

async function removeDeadRows(connection: DuckDBConnection, dataDir: string, rows: readonly StagedRows[]) {
  const staged: StagedRows[] = []
  let deadRows = 0
  for (const each of rows) {
    const left = await withoutDeadRows(connection, dataDir, each)
    deadRows += left.dead
    if (left.staged.rows > 0) staged.push(left.staged)
  }
  return { staged, deadRows }
}
