// The interface of the log, its options, and what it reports.
import type { Clock } from '../../lib/clock.ts'
import type { Disk } from '../../lib/disk/disk.ts'
import type { TornTail } from '../../lib/segments/segment-check.ts'
import type { SegmentDamage } from '../../lib/segments/types.ts'
import type { Row, TableName } from '../../schema/tables.ts'
import type { StoreLog } from '../types.ts'

/** One row, validated and encoded by `encodeWrite`. */
export interface EncodedRow {
  table: TableName
  /** A JSON object without a newline. */
  json: string
}

/** Where a record is in the log's files. */
export interface Position {
  /** First LSN of its segment; the file is named after it. */
  segment: number
  /** Where its line begins, in bytes. */
  offset: number
  /** Of its line with the newline, in bytes. */
  length: number
}

/** Where an acknowledged commit was stored. */
export interface AppendResult {
  lsn: number
  knownAtMs: number
  position: Position
}

/** A commit that was read from the log. */
export interface CommitRecord {
  lsn: number
  knownAtMs: number
  position: Position
  /** The JSON of the whole record. A view of the reader's buffer, valid only during the visit. */
  payload: Buffer
  /** Parses the rows from `payload` at each call. */
  rows(): [TableName, Row][]
}

/** A commit, for those who know where it is. */
export type StoredCommit = Omit<CommitRecord, 'position'>

/** A segment that will not be written again. */
export interface SegmentInfo {
  /** The file is named after it. */
  firstLsn: number
  /** `firstLsn - 1` where the segment has no commits. */
  lastLsn: number
  commits: number
  bytes: number
}

/** Of each list the first entries. */
export interface ReadReport {
  /** Segments read, oldest first. */
  segments: SegmentInfo[]
  commits: number
  /** The last valid commit, or `afterLsn` where there is none. */
  lastLsn: number
  /** LSNs up to this one must not be assigned again: each was seen, or may have been in a torn tail. */
  highestLsn: number
  lastKnownAtMs: number
  tornTails: TornTail[]
  damage: SegmentDamage[]
}

export interface ReadOptions {
  disk?: Disk
  folder: string
  /** Identity of the log. Files of another log are not used. */
  logId: string
  /** Commits up to this LSN are not visited. 0: all are. */
  afterLsn: number
  /** Segments that begin after this LSN are not read. Commits up to it are known to be durable. */
  throughLsn?: number
  /** Commits up to this LSN are known to have been durable, whatever the segments say. */
  knownLsn?: number
}

export interface LogOptions {
  disk?: Disk
  folder: string
  /** Identity of the log, the same at each start. 1 to 64 letters, digits, `_` or `-`. */
  logId: string
  clock: Clock
  log: StoreLog
  /** The last commit that is stored elsewhere. New LSNs and times are higher, even where the log is empty. */
  flushed: { lsn: number; knownAtMs: number }
  /** Where it is noted how far the log went; see lib/disk/high-water-mark.ts. Default: nowhere. */
  markPath?: string
  /** Whether appends are permitted, given the bytes in the log. Called at each append, so it must be fast. */
  mayWrite?: (unflushedBytes: number) => boolean
  timeoutMs?: number
  segmentBytes?: number
}

/** `recovering`: appends are refused until recovery from a failure has succeeded. `hanging`: an operation is overdue. */
export type LogState = 'ready' | 'recovering' | 'hanging' | 'closed'

export interface LogStatus {
  state: LogState
  lastKnownAtMs: number
  /** In the segments on the disk, including the current one. */
  unflushedCommits: number
  unflushedBytes: number
  /** The most that writing and syncing one of the last groups took, ms. */
  slowestGroupMs: number
  /** Since the start. */
  totals: {
    commits: number
    /** Commits that were refused before they were written. */
    refused: number
    /** Disk operations that failed or exceeded the time limit. */
    failures: number
  }
}
