// Reads the commits of a log, each once and in order, with every CRC checked, and reports damage. Recovery, the flush and
// verification use it. Holds one record in memory at a time.

import { type Disk, nodeDisk } from '../../lib/disk/disk.ts'
import { systemCode } from '../../lib/error-text.ts'
import type { Row, TableName } from '../../schema/tables.ts'
import { SCAN_CHUNK_BYTES, SEGMENT_START_BYTES } from './limits.ts'
import { type PlannedSegment, planRead, segmentRemovedError } from './read-plan.ts'
import { addDamage, addEntry, lsnRange, newReadReport } from './read-report.ts'
import { type CommitHead, parseRows } from './segments/format.ts'
import { type ScanItem, scan } from './segments/scan.ts'
import { SegmentValidator } from './segments/segment-validator.ts'
import type { CommitRecord, Position, ReadOptions, ReadReport } from './types.ts'

export type Visit = (record: CommitRecord) => void | Promise<void>

class VisitedCommit implements CommitRecord {
  readonly lsn: number
  readonly knownAtMs: number
  readonly position: Position
  readonly payload: Buffer

  constructor(segment: number, { lsn, knownAt }: CommitHead, { offset, length, payload }: ScanItem) {
    this.lsn = lsn
    this.knownAtMs = knownAt
    this.position = { segment, offset, length }
    this.payload = payload
  }

  rows(): [TableName, Row][] {
    return parseRows(this.payload)
  }
}

async function* scanSegment(
  disk: Disk,
  { path, bytes }: PlannedSegment,
  fromByte = 0,
): AsyncGenerator<ScanItem, void> {
  const file = await disk.open(path).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') throw segmentRemovedError(path)
    return null
  })
  if (file === null) return yield { head: null, offset: 0, length: 0, payload: Buffer.alloc(0), error: 'EIO' }
  try {
    yield* scan(file, Math.min(Math.max(bytes, SEGMENT_START_BYTES), SCAN_CHUNK_BYTES), fromByte)
  } finally {
    await file.close()
  }
}

/**
 * The highest LSN that a record of the newest segment proves to have been durable. These numbers never decrease, so the end of the
 * file tells; where no record can be read there, the whole file is searched.
 */
async function findProvenLsn(disk: Disk, segment: PlannedSegment): Promise<number> {
  const endFrom = Math.max(0, segment.bytes - SCAN_CHUNK_BYTES)
  const provenLsn = await findProvenFrom(disk, segment, endFrom)
  return provenLsn ?? (endFrom > 0 ? await findProvenFrom(disk, segment, 0) : null) ?? segment.afterLsn
}

/** Null where there is no record behind `fromByte`. */
async function findProvenFrom(disk: Disk, segment: PlannedSegment, fromByte: number): Promise<number | null> {
  let provenLsn: number | null = null
  for await (const { head } of scanSegment(disk, segment, fromByte))
    if (head !== null) provenLsn = Math.max(provenLsn ?? segment.afterLsn, head.afterLsn)
  return provenLsn
}

/** What the writer must know about the newest segment. */
export interface LastSegment {
  firstLsn: number
  /** Where its last valid record ends. */
  validBytes: number
  /** It ends with an end record. */
  isSealed: boolean
  isDamaged: boolean
}

export interface LogRead {
  report: ReadReport
  /** Null where the log has no segment. */
  last: LastSegment | null
  /** Commits up to this one were durable, even those that can no longer be read. */
  provenLsn: number
}

/** Like `readLog`, and also returns what the writer needs to continue after the newest segment. */
export async function readSegments(options: ReadOptions, visit: Visit): Promise<LogRead> {
  const { disk = nodeDisk, folder, logId, afterLsn, throughLsn = Infinity, knownLsn = 0 } = options
  const plan = await planRead(disk, folder, logId)
  const report = newReadReport(afterLsn)
  report.highestLsn = Math.max(afterLsn, plan.highestNamedLsn)
  for (const name of plan.foreign)
    addDamage(report, { kind: 'foreign_file', file: name, fromByte: 0, toByte: 0, missing: null })
  const segments = plan.segments.filter(({ firstLsn }) => firstLsn <= throughLsn)
  const lost = lsnRange(afterLsn + 1, segments[0]?.afterLsn ?? Math.min(knownLsn, throughLsn))
  if (lost !== null) addDamage(report, { kind: 'missing', file: null, fromByte: 0, toByte: 0, missing: lost })
  let last: LastSegment | null = null
  let provenLsn = knownLsn
  for (const segment of segments) {
    const voided = lsnRange(segment.afterLsn + 1, segment.firstLsn - 1)
    if (voided !== null) addEntry(report.voids, voided)
    report.lastKnownAtMs = Math.max(report.lastKnownAtMs, segment.knownAtMs)
    const read = await readSegment(disk, segment, options, report, visit)
    last = read.segment
    provenLsn = Math.max(provenLsn, read.provenLsn)
  }
  return { report, last, provenLsn }
}

async function readSegment(
  disk: Disk,
  segment: PlannedSegment,
  { afterLsn, throughLsn = 0, knownLsn = 0 }: ReadOptions,
  report: ReadReport,
  visit: Visit,
): Promise<{ segment: LastSegment; provenLsn: number }> {
  const { firstLsn, cutoffLsn } = segment
  const isLast = cutoffLsn === Infinity
  const provenLsn = isLast ? Math.max(throughLsn, knownLsn, await findProvenLsn(disk, segment)) : cutoffLsn
  const damageBefore = report.damageCount
  const validator = new SegmentValidator(segment, provenLsn, report)
  for await (const item of scanSegment(disk, segment)) {
    const commit = validator.check(item)
    if (commit === null) continue
    const record = new VisitedCommit(firstLsn, commit, item)
    report.lastLsn = Math.max(report.lastLsn, record.lsn)
    if (record.lsn <= afterLsn) continue
    report.commits++
    const visited = visit(record)
    if (visited !== undefined) await visited
  }
  validator.finish()
  report.segments.push(validator.info)
  const isDamaged = report.damageCount > damageBefore
  const { validBytes, isSealed } = validator
  return { segment: { firstLsn, validBytes, isSealed, isDamaged }, provenLsn }
}

/**
 * Visits every commit after `afterLsn`, each once and in order. Damaged parts are reported and skipped. Rejects where a visit
 * does, with `unknown_format` where a segment has a newer format, and with `segment_removed` where one was deleted meanwhile.
 */
export async function readLog(options: ReadOptions, visit: Visit): Promise<ReadReport> {
  return (await readSegments(options, visit)).report
}
