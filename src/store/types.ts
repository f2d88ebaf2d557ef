// What the store takes and gives, as the rest of the server uses it.

import type { z } from 'zod'
import type {
  lakeRepairSchema,
  lossSchema,
  setAsideFileSchema,
  stagedBackupSchema,
} from '../schema/api/admin.ts'
import type { lakeTableStateSchema } from '../schema/api/status.ts'
import type { ClosedBar } from '../schema/bar.ts'
import type { RewoundSpan } from '../schema/event.ts'
import type { Row, TableName } from '../schema/tables.ts'

/** Where the market data of a run comes from. Written into every row that depends on it. */
export interface Provenance {
  /** Names of feeds, comma-separated. */
  feed: string
  simulated: boolean
}

export type LakeTableStatus = z.infer<typeof lakeTableStateSchema> & { table: TableName }

/** A missing or damaged file of the lake that was quarantined. */
export type SetAsideFile = z.infer<typeof setAsideFileSchema>

/** What a data folder has lost; see data-folder/losses.ts. */
export type Loss = z.infer<typeof lossSchema>

/** What is wrong with the lake. */
export interface LakeTrouble {
  setAside: readonly SetAsideFile[]
  /** Why expired dates are not removed; null: they are. */
  retentionHeld: string | null
  /** Recorded events that are lost, without a repair having acknowledged it. */
  eventsLost: number
}

export const NO_TROUBLE: LakeTrouble = { setAside: [], retentionHeld: null, eventsLost: 0 }

/** What is missing of the lake. */
export interface LakeLosses {
  files: number
  rowsLost: number
  /** The first of the files. */
  first: readonly SetAsideFile[]
}

/** What a repair of the lake did. Paths are below the lake's folder; what is lost is what nobody had acknowledged before. */
export type LakeRepair = z.infer<typeof lakeRepairSchema>['data']

/** Which submissions calibration counts. */
export interface ShownLabels {
  /** The time that a submission would have now: where recorded data is replayed not the clock's, but that of the data. */
  asOfMs: number
  /** Only submissions that were received by this time count, since anybody may see their labels; null: all. */
  labelsToMs: number | null
}

/** A file of the lake, for readers that fetch it from the server. */
export interface LakeFile {
  /** Unique and without a slash: table, date and row numbers. Its content changes where bars that the lake had twice are taken out. */
  name: string
  table: string
  /** YYYY-MM-DD, UTC. */
  date: string
  rows: number
  bytes: number
  /** SHA-256 of its content, in hexadecimal; null: it was written before hashes were recorded. */
  sha256: string | null
  schemaVersion: number
  writtenAtMs: number
  /** Absolute. */
  path: string
  /** False: it was replaced by a merge or has expired, and is kept for readers who started before. */
  isLive: boolean
}

/** A range of a file's bytes on its way to a client. The caller must read it to the end or stop it. */
export interface Download {
  /** The next bytes, valid until the next call; null at the end. Rejects where the file cannot be read. */
  next(): Promise<Buffer | null>
  /** Ends the download. May be called at any time, and again. */
  stop(): void
}

/** A snapshot in the data folder. */
export type StagedBackup = z.infer<typeof stagedBackupSchema>['data']

/** A consistent copy of a store: its last commit, and its lake. */
export type Snapshot = Omit<StagedBackup, 'path'>

/** Takes closed bars without waiting for them to be durable: a killed server loses those since the last flush. */
export interface BarSink {
  /** Beyond the bound a bar is dropped and counted. A bar that is added twice is written once. */
  add(bar: ClosedBar): void
  /** All bars that ended by this time have been added. It goes back where market time does. */
  completeTo(timeMs: number): void
  /** Market time went back: bars of this span that were added before are not what happened in it. */
  noteRewound(span: RewoundSpan): void
  /**
   * From now on `/health` compares what the lake gets with what the engine closes. @param countClosed how many bars it has closed so
   * far, by index in TIMEFRAMES
   */
  compareWith(countClosed: () => readonly number[]): void
  /** Sends the waiting bars to the lake process. */
  flush(): Promise<void>
  stats(): { waiting: number; dropped: number }
}

/** Takes versions of token profiles. A killed server loses those since the last flush; the next run records them again. */
export interface ProfileSink {
  /** Rows of `tokens`, without `known_at`. Rejects where too many wait: they must then be written again. */
  write(rows: readonly Row[]): Promise<void>
  /** Rows that are not known to be in a file. */
  readonly unconfirmed: number
}

/** The journal of recorded events, as far as the store needs it: it must be open until the store is closed. */
export interface EventSource {
  /** Number of the last event recorded. */
  readonly lastEventNo: number
  /** Resolves when all events so far are durable in complete segments, with the number of the last one. */
  seal(): Promise<{ throughEventNo: number }>
}

/** How far the lake has recorded events. */
export interface EventProgress {
  /** The lake has every event up to this one, durably: the journal need not keep it. 0: none. */
  eventNo: number
  /** Every event from this one on has stayed in the lake; earlier ones have left it. */
  retainedFrom: number
}

/** What is measured of the store, without asking the lake process or the disk. */
export interface StoreFigures {
  isWritable: boolean
  /** As last reported by the lake process. */
  lake: readonly LakeTableStatus[]
  /** How long the lake may have been behind the log, ms; 0: it has every commit. */
  lakeLagMs: number
  lakeProcess: { isRunning: boolean; starts: number }
  log: {
    unflushedCommits: number
    unflushedBytes: number
    /** Damaged parts that were found. */
    damage: number
    /** The slowest of the latest writes with their sync, ms. */
    slowestGroupMs: number
    /** Since the start. */
    commits: number
    refused: number
    failures: number
  }
  /** Closed bars of this run that the lake should have and does not. */
  barsMissing: number
  /** Free disk space as last read; null: not known. */
  freeBytes: number | null
  /** Of the state database. */
  databaseBytes: number
  setAside: LakeLosses
  /** What the data folder has lost and nobody has acknowledged. */
  losses: number
}

/** How the store is, and those of its figures that `/health` tells, those of the lake renewed. */
export interface StoreStatus
  extends Pick<
    StoreFigures,
    'isWritable' | 'lake' | 'lakeProcess' | 'freeBytes' | 'databaseBytes' | 'setAside'
  > {
  /** Identity of the data folder. */
  folderId: string
  log: Pick<StoreFigures['log'], 'unflushedCommits' | 'unflushedBytes' | 'damage'> & { state: string }
  /** Commits are taken, and the lake follows them. */
  healthy: boolean
  /** A plain sentence for each thing that is wrong. */
  reasons: string[]
}

export type ExportFormat = 'parquet' | 'arrow'

/** Selects rows of `training` to export. */
export interface ExportRequest {
  format: ExportFormat
  /** Range of `submitted_at`, Unix ms, from inclusive to exclusive; null: unbounded. */
  fromMs: number | null
  toMs: number | null
  /** `next` of an earlier response, or Unix ms: rows known since then; null: all rows. */
  since: string | null
  /** Maximum number of rows. */
  limit: number
}

/** What is known of an export before its first byte. */
export interface ExportHead {
  rows: number
  /** Whether the lake has more rows after these. */
  more: boolean
  /** `since` of the request that continues after this one. */
  next: string
  /** Missing or damaged files of the table: their rows are left out. */
  missingFiles: number
}

/** A running export. The caller must read it to the end or stop it. */
export interface ExportJob {
  /** Rejects with StoreError where the export cannot be made. */
  readonly head: Promise<ExportHead>
  /** The next bytes; null at the end. Rejects where the export fails meanwhile. */
  next(): Promise<Buffer | null>
  /** Cancels the export. May be called at any time. */
  stop(): void
}

export type QueryFormat = 'json' | 'csv'

export interface QueryRequest {
  /** As DuckDB understands it. Of several statements the last one gives the rows. */
  sql: string
  format: QueryFormat
  /** Rows that are wanted at most. */
  rowsMax: number
  /** Who asks: bounds what one client may have running. */
  owner: string
}

/** The rows of a query, as far as rows and bytes are within bounds. */
export interface QueryAnswer {
  columns: readonly { name: string; type: string }[]
  rows: number
  /** Whether the result has more rows. */
  isTruncated: boolean
  /** How long the query ran, ms. */
  ms: number
  /** Missing or damaged files of the lake: their rows are left out. */
  missingFiles: number
  /** The rows: a JSON array of arrays, or CSV with a line of column names. */
  text: Buffer
}

/** A query that waits or runs. */
export interface QueryRun {
  /** Rejects with StoreError: `query_failed`, `query_too_costly`, `overloaded`, `unavailable`, `closing`. */
  readonly answer: Promise<QueryAnswer>
  /** Gives up the query. May be called at any time. */
  stop(): void
}

/** A line for the log of the server. */
export interface LogLine {
  level: 'info' | 'warn' | 'error'
  message: string
  fields: Record<string, unknown>
}

/** The part of a logger that the store uses. pino fits. */
export interface StoreLog {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}
