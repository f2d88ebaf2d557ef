// In: nothing. Out: the words in which the log speaks with the store. Never holds state.
import type { Clock } from '../../lib/clock.ts'
import type { Row, TableName } from '../../schema/tables.ts'
import type { StoreLog } from '../types.ts'
import type { Disk } from './disk.ts'

/** One row, checked and encoded: `encodeWrite` makes it. */
export interface EncodedRow {
  table: TableName
  /** A JSON object on one line. */
  json: string
}

/** Where a record lies. */
export interface Position {
  /** First LSN of its segment, which names the file. */
  segment: number
  /** Of its line, in bytes. */
  offset: number
  length: number
}

export interface Appended {
  lsn: number
  knownAtMs: number
  position: Position
}

/** One commit as it was read. */
export interface CommitRecord {
  lsn: number
  knownAtMs: number
  position: Position
  /** The JSON of the whole record. A view of the reader's buffer: good until the visit ends. */
  payload: Buffer
  /** Its rows, parsed anew at each call. Only while the visit lasts. */
  rows(): [TableName, Row][]
}

/** LSNs from the first to the last, both included. */
export interface LsnRange {
  from: number
  to: number
}

/** A segment that will not be written any more. */
export interface SegmentInfo {
  /** Names the file. */
  firstLsn: number
  /** Its last commit; one less than `firstLsn` where it has none. */
  lastLsn: number
  commits: number
  bytes: number
}

export type DamageKind =
  /** Bytes that are no record, before records that count or where acknowledged records were. */
  | 'invalid_bytes'
  /** A segment whose header cannot be read. Its records are used. */
  | 'invalid_header'
  /** Acknowledged commits that no file holds. */
  | 'missing'
  /** A record whose LSN was there already. It is not used. */
  | 'out_of_order'
  /** Records that were proven durable, and that a later header leaves out. They are not used. */
  | 'contradiction'
  /** The operating system could not read on. */
  | 'unreadable'
  /** A file that is no segment of this log. It is not used. */
  | 'foreign_file'

export interface LogDamage {
  kind: DamageKind
  /** File name; null where a whole file is missing. */
  file: string | null
  /** Bytes concerned: inclusive and exclusive. */
  fromByte: number
  toByte: number
  /** Commits that are lost with it; null: none. Some of them may have been void. */
  missing: LsnRange | null
}

/** Bytes at the end of a segment that were never acknowledged. No damage. */
export interface TornTail {
  file: string
  fromByte: number
  toByte: number
}

export interface ReadReport {
  /** Segments read, oldest first. */
  segments: SegmentInfo[]
  commits: number
  /** Last commit that counts, or the LSN that reading began after. */
  lastLsn: number
  /** No LSN up to this one may be given out again: it was seen, or may have been that of a torn record. */
  highestLsn: number
  lastKnownAtMs: number
  /** LSNs that were given out and never acknowledged. */
  voids: LsnRange[]
  tornTails: TornTail[]
  damage: LogDamage[]
  /** All damage found; `damage` keeps the first ones. */
  damageCount: number
}

export interface ReadOptions {
  disk?: Disk
  folder: string
  /** Identity of the log: files of another one are not used. */
  logId: string
  /** Commits up to this LSN are kept elsewhere by now, and are not visited. 0: none. */
  afterLsn: number
  /** Segments that begin later are not read; commits up to this LSN are known to be durable. */
  throughLsn?: number
}

export interface LogOptions {
  disk?: Disk
  folder: string
  /** Identity of the log, the same at each start. Up to 64 characters. */
  logId: string
  clock: Clock
  log: StoreLog
  /** The last commit that is kept elsewhere. New numbers are higher, though the log be empty. */
  flushed: { lsn: number; knownAtMs: number }
  /** Whether there is room to write beside the bytes that the log holds. Asked at each append, so it answers from memory. */
  mayWrite?: (unflushedBytes: number) => boolean
  timeoutMs?: number
  segmentBytes?: number
  recordBytesMax?: number
  groupBytesMax?: number
  groupCommitsMax?: number
  waitingBytesMax?: number
  waitingCommitsMax?: number
}

/** `recovering`: refuses, until what a failure left in doubt is settled. `hanging`: an operation is overdue. */
export type LogState = 'ready' | 'recovering' | 'hanging' | 'closed'

export interface LogStatus {
  state: LogState
  lastLsn: number
  lastKnownAtMs: number
  /** Segments on the disk, the one being written included; their commits and bytes. */
  segments: number
  unflushedCommits: number
  unflushedBytes: number
  waitingCommits: number
  waitingBytes: number
  /** How long the operation under way has taken; null: none is. */
  operationMs: number | null
  /** Durations of the last groups, write and sync together, oldest first. */
  recentGroupMs: readonly number[]
  /** Since the start. */
  totals: {
    commits: number
    groups: number
    bytes: number
    /** Commits refused before they were written. */
    refused: number
    /** Commits written, and then not acknowledged. */
    doubtful: number
    failures: number
    overdue: number
  }
}

export interface CommitLog {
  /** What the start found. */
  readonly recovered: ReadReport
  /** Resolves when the rows are durable, together. Rejects with LogError, which says whether they may be stored. */
  append(rows: readonly EncodedRow[]): Promise<Appended>
  /** Reads one commit back, checked. */
  read(position: Position): Promise<Omit<CommitRecord, 'position'>>
  /** Ends the current segment, if it has commits: `segments` lists it then. */
  seal(): Promise<void>
  /** Segments that a flush may read, oldest first. */
  segments(): SegmentInfo[]
  /** Deletes a segment, durably. Its commits are kept elsewhere by now. Oldest first. */
  remove(firstLsn: number): Promise<void>
  /** Instead of `remove`, where a segment is damaged: the file keeps its bytes under a name that ends in `.damaged`. */
  setAside(firstLsn: number): Promise<void>
  status(): LogStatus
  /** Writes what waits, ends the segment. Resolves within the time limit, whatever the disk does. */
  close(): Promise<void>
}
