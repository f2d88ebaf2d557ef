// The messages between the server and the lake process.

import type { Instant } from '../../lib/clock.ts'
import type { SegmentDamage } from '../../lib/segments/types.ts'
import type { AgentHits, AgentRecord } from '../../schema/api/agent-record.ts'
import type { Calibration } from '../../schema/api/calibration.ts'
import type { SubmissionPage, SubmissionQuery } from '../../schema/api/submission-list.ts'
import type { SubmissionRow } from '../../schema/tables.ts'
import type { StoreErrorCode } from '../errors.ts'
import type { BarAccount } from '../market-data/bar-counts.ts'
import type { BarDelivery, BarReceipt } from '../market-data/bar-store.ts'
import type { ProfileDelivery } from '../market-data/profile-buffer.ts'
import type { CalibrationQuery } from '../query/calibration.ts'
import type { StoreSettings } from '../settings.ts'
import type { StatePiece } from '../state/read-state.ts'
import type { StateAges } from '../state/state.ts'
import type { SavedPosition } from '../state/state-database.ts'
import type {
  LakeFile,
  LakeRepair,
  LakeTableStatus,
  LakeTrouble,
  LogLine,
  Provenance,
  Snapshot,
} from '../types.ts'
import type { Crash } from './crash-points.ts'

export interface LakeProcessOptions extends Pick<StoreSettings, 'retain' | 'diskReserveMb'> {
  dataDir: string
  /** Null: those with which the folder was used last. */
  ages: StateAges | null
  /** Identity of the log; see log/types.ts. */
  logId: string
  /** Of the server: its bars are counted apart from those of earlier ones. */
  runId: string
  /** How long a replaced file is kept for readers that opened it before. */
  lakeGraceMs: number
  /** Written into every bar and submission. */
  provenance: Provenance | null
  crash: Crash | null
}

export interface FlushAnswer {
  /** Rows that fit no table and were written to the dead letters. */
  deadRows: number
  /** Damage found in the log. */
  damage: SegmentDamage[]
  /** What has become of the bars of this run. */
  bars: BarAccount
  /** How many of the rows that were delivered to this process are in files. */
  inLake: { bars: number; profiles: number }
}

/** How far the lake has recorded events. */
export interface EventsAnswer {
  /** Every event up to this one is in the lake, or known to be lost. */
  eventNo: number
  /** Every event from this one on has stayed in the lake. */
  retainedFrom: number
  /** Damage found in the journal. */
  damage: SegmentDamage[]
}

export interface Requests {
  open: { ask: { nowMs: number }; answer: { position: SavedPosition; ages: StateAges } }
  /** The next piece of the saved state; null: there is no more. To be asked before the first flush. */
  state: { ask: Record<string, never>; answer: { piece: StatePiece | null } }
  /** Writes the commits up to `throughLsn`, and all delivered bars and profiles, to the lake. */
  flush: { ask: { nowMs: number; throughLsn: number }; answer: FlushAnswer }
  /** Writes recorded events up to `throughEventNo` to the lake, as many as in about EVENTS_ROUND_MS. */
  events: { ask: { nowMs: number; throughEventNo: number }; answer: EventsAnswer }
  bars: { ask: BarDelivery; answer: BarReceipt & { held: number } }
  /** `inLake`: rows delivered to this process that are in files. */
  tokens: { ask: ProfileDelivery; answer: { taken: boolean; inLake: number } }
  find: { ask: { analysisId: string; nowMs: number }; answer: SubmissionRow | null }
  list: { ask: { query: SubmissionQuery; nowMs: number }; answer: SubmissionPage }
  calibration: { ask: CalibrationQuery; answer: Calibration }
  agentRecord: { ask: CalibrationQuery & { agentId: string }; answer: Omit<AgentRecord, 'name'> }
  agentHits: { ask: CalibrationQuery & { agentIds: readonly string[] }; answer: AgentHits[] }
  /** Merges small files, and deletes replaced files after the grace period. */
  compact: { ask: { now: Instant; quietMs: number }; answer: { merged: number; removed: number } }
  status: { ask: Record<string, never>; answer: LakeTableStatus[] }
  /** Checks every file; see `Store`. `settles`: acknowledges what is lost. */
  repair: { ask: { nowMs: number; settles: boolean }; answer: Omit<LakeRepair, 'losses'> }
  /** Expires dates, since the operator has confirmed the clock. */
  retire: { ask: { now: Instant }; answer: { files: number } }
  /** The files that readers may fetch. */
  files: { ask: Record<string, never>; answer: LakeFile[] }
  /** Copies the lake and its state to a data folder. */
  snapshot: { ask: { to: string; nowMs: number }; answer: Snapshot }
  close: { ask: Record<string, never>; answer: null }
}

export type RequestKind = keyof Requests

export interface Request<K extends RequestKind = RequestKind> {
  id: number
  kind: K
  ask: Requests[K]['ask']
}

export type Reply =
  | { id: number; ok: true; answer: unknown }
  | { id: number; ok: false; code: StoreErrorCode; message: string }

export type FromLakeProcess = Reply | { log: LogLine } | { trouble: LakeTrouble }
