// In: nothing. Out: the store's interfaces, as the rest of the server sees them. Never holds state.

import type { Row, SubmissionRow, TableName, TableRow, Write } from '../schema/tables.ts'
import type { ClosedBar } from './market-data/bar-batch.ts'

/** Where the market data of a run comes from: part of every row that depends on it. */
export interface Provenance {
  /** Names of feeds, comma-separated. */
  feed: string
  simulated: boolean
}

/** What the server must know again after a start. Rows are in order of their commits. */
export interface Recovered {
  agents: TableRow<'agents'>[]
  agentKeys: TableRow<'agent_keys'>[]
  /** In order of commit, as all rows here, however the clock was set; those that still mean something. */
  agentEvents: TableRow<'agent_events'>[]
  /** Those of the last 60 s and younger. */
  submitAttempts: TableRow<'submit_attempts'>[]
  /** Those of the last 24 h. */
  idempotency: TableRow<'idempotency'>[]
  /** `{agent_id, xp}`: sums of the ledger. */
  xpTotals: { agentId: string; xp: number; analyses: number }[]
  /** Accepted analyses by mint, with the latest one's labels. */
  coverage: { mint: string; count: number; lastSentiment: string; lastScore: number }[]
  /** Latest submission by agent and mint, younger than the cooldown; by the server's own clock, as strikes are. */
  cooldowns: { agentId: string; mint: string; atMs: number }[]
  /** Rejections of the last 30 days: strikes and suspensions follow from them. */
  strikes: { agentId: string; atMs: number }[]
}

export interface LakeTableStatus {
  table: TableName
  files: number
  rows: number
  bytes: number
  /** Rows durable in the store that no lake file holds yet. */
  backlog: number
}

/** A file of the lake that is gone or damaged, and that readers are kept from. */
export interface SetAsideFile {
  table: string
  /** YYYY-MM-DD, UTC. */
  date: string
  /** Below the lake's folder. */
  path: string
  reason: string
  /** Rows of it that no other file has. */
  rowsLost: number
  sinceMs: number
}

/** What is wrong with the lake. */
export interface LakeTrouble {
  setAside: readonly SetAsideFile[]
  /** Why no date leaves the lake, though its time is over; null: dates leave. */
  retentionHeld: string | null
  /** When the state was lost and taken from the lake's files, Unix ms, until a repair settles it; null: it was not. */
  stateRebuiltAtMs: number | null
}

/** What is missing of the lake. */
export interface LakeLosses {
  files: number
  rowsLost: number
  /** Some of the files, by name. */
  first: readonly SetAsideFile[]
}

/** What a repair of the lake did. Paths are below the lake's folder. */
export interface LakeRepair {
  filesChecked: number
  /** Files that had been set aside and are whole again. */
  restored: readonly string[]
  /** Files whose loss is settled by this. */
  lost: readonly SetAsideFile[]
}

/** A consistent copy of a store. */
export interface Snapshot {
  /** The last commit that it has. */
  lsn: number
  /** Of the lake. */
  files: number
  bytes: number
}

/** Where closed bars go. Nobody waits for them: a kill loses those since the last flush. */
export interface BarSink {
  /** Takes a bar; beyond the bound it is dropped and counted. A bar that comes again is written once. */
  add(bar: ClosedBar): void
  /** All bars that ended by this time have been added. */
  completeTo(timeMs: number): void
  /** Hands the lake process what waits now. */
  flush(): Promise<void>
  stats(): { waiting: number; dropped: number }
}

/** Where versions of token profiles go. A kill loses those since the last flush; the next run says them again. */
export interface ProfileSink {
  /** Rows of `tokens`, without `known_at`. Resolves when the lake process has them; rejects where it cannot take them. */
  write(rows: readonly Row[]): Promise<void>
}

export interface StoreStatus {
  /** Commits are taken, and the lake follows them. */
  healthy: boolean
  isWritable: boolean
  /** A plain sentence for each thing that is wrong. */
  reasons: string[]
  lake: LakeTableStatus[]
  log: { state: string; unflushedCommits: number; unflushedBytes: number; damage: number }
  lakeProcess: { isRunning: boolean; starts: number }
  /** Of the disk, as of the last look; null: it does not tell. */
  freeBytes: number | null
  /** Of the state database. */
  databaseBytes: number
  setAside: LakeLosses
}

/** Every promise rejects with StoreError when the disk, DuckDB or the request is at fault. */
export interface Store {
  readonly recovered: Recovered
  readonly bars: BarSink
  readonly profiles: ProfileSink
  /** Resolves when what the log held at the start is in the lake, or could not be brought there yet. */
  readonly caughtUp: Promise<void>
  /** Resolves when all rows are durable, together. Rejects with `mayBeStored` where nobody can tell. */
  commit(writes: readonly Write[]): Promise<void>
  /** One accepted or rejected submission by its identity, as the row stored; null when there is none. */
  analysis(analysisId: string): Promise<SubmissionRow | null>
  /** Everything committed and told so far is in the lake once this resolves. */
  flushLake(): Promise<void>
  /** Merges small files of the lake, and removes those replaced before the grace. */
  compactLake(): Promise<{ merged: number; removed: number }>
  /** Looks for damaged files in the background, and sets them aside; one look at a time. */
  checkLake(): void
  /** Reads every file of the lake, sets damaged ones aside, takes back whole ones, and settles what is lost. */
  repairLake(): Promise<LakeRepair>
  /** The operator says that the clock is right: dates that are over their time leave the lake. */
  retireLake(): Promise<{ files: number }>
  /**
   * Copies the folder, as of one commit, to a new folder `folder`: a store that is opened there has all rows acknowledged before
   * this was called, those of one LSN and no later. Commits go on meanwhile; flushes wait.
   */
  snapshot(folder: string): Promise<Snapshot>
  /** Files of the lake that are gone or damaged, as far as it is known now. */
  lakeLosses(): LakeLosses
  status(): Promise<StoreStatus>
  /** Flushes and closes. */
  close(): Promise<void>
}

export type ExportFormat = 'parquet' | 'arrow'

/** Which rows of `training` somebody wants. */
export interface ExportRequest {
  format: ExportFormat
  /** Of `submitted_at`, Unix ms: inclusive and exclusive; null: open. */
  fromMs: number | null
  toMs: number | null
  /** Where an earlier answer ended, or Unix ms: rows known from then on; null: from the beginning. */
  since: string | null
  /** Rows of the answer. */
  limit: number
}

/** What is known of an answer before its first byte. */
export interface ExportHead {
  rows: number
  /** Whether the lake has more rows after these. */
  more: boolean
  /** `since` of the request that goes on from here. */
  next: string
}

/** One export under way. Whoever began it reads to the end, or calls it off. */
export interface ExportJob {
  /** Rejects with StoreError when there is nothing to send. */
  readonly head: Promise<ExportHead>
  /** The next bytes; null at the end. Rejects when the rest will not come. */
  next(): Promise<Buffer | null>
  /** Calls it off, whatever it is doing; may be called at any time. */
  stop(): void
}

export interface Exporter {
  /** Throws `unavailable` while too many are under way, `invalid` when `since` is no place. */
  begin(request: ExportRequest): ExportJob
}

/** The part of a logger that the store uses. pino fits. */
export interface StoreLog {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}
