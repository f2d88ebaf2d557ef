// In: nothing. Out: the words that the door (main thread) and the cellar (worker thread) exchange. Never holds state.
import type { ErrorCode } from '../schema/errors.ts'
import type { Row } from '../schema/tables.ts'
import type { BarDelivery, BarReceipt } from './bars.ts'
import type { JournalEntry } from './cells.ts'
import type { RetainedDays } from './retention.ts'
import type { LakeRepair, LakeTableStatus, LakeTrouble, Recovered } from './types.ts'

/** Places in the lake's work where a test may have the process killed. */
export const CRASH_POINTS = [
  'flush:planned',
  'flush:copied',
  'flush:synced',
  'flush:renamed-first',
  'flush:renamed-all',
  'flush:listed',
  'flush:shown',
  'merge:planned',
  'merge:copied',
  'merge:published',
  'merge:listed',
  'merge:shown',
  'expire:removed',
  'expire:forgotten',
  'outcomes:computed',
  'outcomes:recorded',
  'outcomes:committed',
  'catalog:written',
  'catalog:swapped',
  'retain:listed',
  'retain:hidden',
  'spread:copied',
  'spread:marked',
  'spread:renewed',
  'thin:deleted',
  'thin:done',
] as const
export type CrashPoint = (typeof CRASH_POINTS)[number]

export interface WorkerOptions {
  dataDir: string
  /** How long a replaced file stays for readers who have begun, ms. */
  lakeGraceMs: number
  /** Row numbers, counted back from the youngest, that stay in the store's tables though the lake has them. */
  keptSeqs: number
  /** How long a submission keeps its agent from the same mint, ms: so long its time is kept for a restart. */
  cooldownMs: number
  retainDays: RetainedDays
  /** A log of a database file that is so long is written into the file. */
  checkpointLogBytes: number
  /** Nothing is written while less of the disk is free, MB; 0: until it is full. */
  diskReserveMb: number
  crashAt: CrashPoint | null
}

/** `ackedSeq`: the highest row number that a caller was told of; rows beyond it were refused and are taken back. */
export interface Requests {
  open: {
    ask: { nowMs: number; ackedSeq: number | null }
    answer: { recovered: Recovered; ackedSeq: number }
  }
  commit: {
    ask: { entries: JournalEntry[]; nowMs: number; ackedSeq: number }
    answer: { ackedSeq: number }
  }
  analysis: { ask: { analysisId: string; nowMs: number }; answer: Row | null }
  /** `held`: bars that are in no file yet. */
  bars: {
    ask: BarDelivery & { nowMs: number; ackedSeq: number }
    answer: BarReceipt & { held: number }
  }
  flush: { ask: { nowMs: number; ackedSeq: number }; answer: { files: number; rows: number } }
  /** Merges small files, and removes those replaced long enough ago. */
  tidy: {
    ask: { nowMs: number; monotonicMs: number; ackedSeq: number; quietMs: number }
    answer: { merged: number; removed: number }
  }
  /** Reads every file of the lake, and where `settles` says so takes what is lost for settled. */
  repair: { ask: { nowMs: number; ackedSeq: number; settles: boolean }; answer: LakeRepair }
  /** The operator says that the clock is right: dates that are over their time leave the lake. */
  retire: { ask: { nowMs: number; monotonicMs: number; ackedSeq: number }; answer: { files: number } }
  prune: { ask: { nowMs: number }; answer: null }
  /** `noRoom`: why nothing can be written; null: it can. */
  status: { ask: { ackedSeq: number }; answer: { lake: LakeTableStatus[]; noRoom: string | null } }
  close: { ask: { nowMs: number; ackedSeq: number }; answer: null }
}

export type RequestKind = keyof Requests

export interface Request<K extends RequestKind = RequestKind> {
  id: number
  kind: K
  ask: Requests[K]['ask']
}

export type Reply =
  | { id: number; ok: true; answer: unknown }
  | { id: number; ok: false; code: ErrorCode; message: string }

export interface LogLine {
  level: 'info' | 'warn' | 'error'
  message: string
  fields: Record<string, unknown>
}

/** `trouble`: what is wrong with the lake, whenever that is something else than before. */
export type FromWorker = Reply | { log: LogLine } | { trouble: LakeTrouble }
