// In: nothing. Out: what the server and the lake process say to one another. Never holds state.
import type { Instant } from '../../lib/clock.ts'
import type { SubmissionRow } from '../../schema/tables.ts'
import type { StoreErrorCode } from '../errors.ts'
import type { LakeSnapshot } from '../lake/lake-snapshot.ts'
import type { RetainedDays } from '../lake/retention.ts'
import type { LogDamage } from '../log/types.ts'
import type { BarDelivery, BarReceipt } from '../market-data/bar-store.ts'
import type { ProfileDelivery } from '../market-data/profile-buffer.ts'
import type { StateOptions } from '../state/state.ts'
import type { SavedState } from '../state/state-database.ts'
import type { LakeRepair, LakeTableStatus, LakeTrouble, Provenance } from '../types.ts'

/** Places in the lake's work where a test may have the lake process killed. */
export const CRASH_POINTS = [
  'flush:read',
  'flush:copied',
  'flush:synced',
  'flush:published',
  'flush:recorded',
  'flush:listed',
  'flush:linked',
  'merge:planned',
  'merge:copied',
  'merge:published',
  'merge:listed',
  'merge:linked',
  'expire:removed',
  'expire:forgotten',
  'outcomes:computed',
  'outcomes:recorded',
  'outcomes:committed',
  'catalog:written',
  'catalog:swapped',
  'retain:listed',
  'retain:unlinked',
] as const
export type CrashPoint = (typeof CRASH_POINTS)[number]

/** Where a test has the first lake process killed, and whether the server is killed with it. */
export interface Crash {
  at: CrashPoint
  withServer: boolean
}

export interface LakeProcessOptions extends StateOptions {
  dataDir: string
  /** Identity of the log; see log/types.ts. */
  logId: string
  /** How long a replaced file stays for readers who have begun, ms. */
  lakeGraceMs: number
  retainDays: RetainedDays
  /** Files are merged only while more of the disk is free, MB; 0: until it is full. */
  diskReserveMb: number
  /** What every row says of where its data came from. */
  provenance: Provenance | null
  crash: Crash | null
}

export interface FlushAnswer {
  /** Every commit up to this one is in the lake. */
  lsn: number
  files: number
  rows: number
  /** Rows that no table takes, set aside in a file of their own. */
  deadRows: number
  /** What was found wrong with the log. */
  damage: LogDamage[]
}

export interface Requests {
  open: { ask: { nowMs: number }; answer: { saved: SavedState } }
  /** Writes the log's commits up to `throughLsn`, and all bars and profiles that were delivered, to the lake. */
  flush: { ask: { nowMs: number; throughLsn: number }; answer: FlushAnswer }
  bars: { ask: BarDelivery; answer: BarReceipt & { held: number } }
  /** `inLake`: rows delivered to this process that are in files. */
  tokens: { ask: ProfileDelivery; answer: { taken: boolean; inLake: number } }
  find: { ask: { analysisId: string; nowMs: number }; answer: SubmissionRow | null }
  /** Merges small files, and removes those replaced long enough ago. */
  compact: { ask: { now: Instant; quietMs: number }; answer: { merged: number; removed: number } }
  status: { ask: Record<string, never>; answer: { lake: LakeTableStatus[] } }
  /** Looks through every file; see the store's functions. `settles`: what is lost is taken for settled. */
  repair: { ask: { nowMs: number; settles: boolean }; answer: LakeRepair }
  /** Dates that are over their time leave the lake, since the operator says that the clock is right. */
  retire: { ask: { now: Instant }; answer: { files: number } }
  /** Copies the lake and its state to a data folder. */
  snapshot: { ask: { to: string }; answer: LakeSnapshot }
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

export interface LogLine {
  level: 'info' | 'warn' | 'error'
  message: string
  fields: Record<string, unknown>
}

export type FromLakeProcess = Reply | { log: LogLine } | { trouble: LakeTrouble }
