// In: the folder of a log. Out: its commits, each once and in order, every CRC checked, and a report on what is damaged.
// For recovery, the flush in its process, and verification. Holds one record at a time. Never writes.

import { systemCode } from '../../lib/error-text.ts'
import type { Row, TableName } from '../../schema/tables.ts'
import { type Disk, nodeDisk } from './disk.ts'
import { addDamage, emptyReport, keep, rangeOf } from './findings.ts'
import { BEGINNING_BYTES, SCAN_CHUNK_BYTES } from './limits.ts'
import { type PlannedSegment, planReading, removedMeanwhile } from './plan.ts'
import { type CommitHead, rowsOf } from './segments/format.ts'
import { type Scanned, scan } from './segments/scan.ts'
import { SegmentReader } from './segments/segment-reader.ts'
import type { CommitRecord, Position, ReadOptions, ReadReport } from './types.ts'

export type Visit = (record: CommitRecord) => void | Promise<void>

class VisitedCommit implements CommitRecord {
  readonly lsn: number
  readonly knownAtMs: number
  readonly position: Position
  readonly payload: Buffer

  constructor(segment: number, { lsn, knownAt }: CommitHead, { offset, length, payload }: Scanned) {
    this.lsn = lsn
    this.knownAtMs = knownAt
    this.position = { segment, offset, length }
    this.payload = payload
  }

  rows(): [TableName, Row][] {
    return rowsOf(this.payload)
  }
}

async function* scanSegment(disk: Disk, { path, bytes }: PlannedSegment): AsyncGenerator<Scanned, void> {
  const file = await disk.open(path).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') throw removedMeanwhile(path)
    return null
  })
  if (file === null) return yield { head: null, offset: 0, length: 0, payload: Buffer.alloc(0), error: 'EIO' }
  try {
    yield* scan(file, Math.min(Math.max(bytes, BEGINNING_BYTES), SCAN_CHUNK_BYTES))
  } finally {
    await file.close()
  }
}

/** Up to which LSN the commits of the last segment are known to have been durable. */
async function provenIn(disk: Disk, segment: PlannedSegment): Promise<number> {
  let provenLsn = segment.afterLsn
  for await (const { head } of scanSegment(disk, segment))
    if (head !== null) provenLsn = Math.max(provenLsn, head.afterLsn)
  return provenLsn
}

/** What is left of the last segment that was read, for whoever goes on writing. */
export interface LastSegment {
  firstLsn: number
  /** Its records that count end here. */
  keptBytes: number
  /** Commits up to it were durable, whether they can still be read or not. */
  provenLsn: number
  /** It was ended in order. */
  isEnded: boolean
  isDamaged: boolean
}

export interface Reading {
  report: ReadReport
  last: LastSegment | null
}

/** As `readLog`, with what the writer must know besides. */
export async function readAll(options: ReadOptions, visit: Visit): Promise<Reading> {
  const { disk = nodeDisk, folder, logId, afterLsn, throughLsn = Infinity } = options
  const plan = await planReading(disk, folder, logId)
  const report = emptyReport(afterLsn)
  report.highestLsn = Math.max(afterLsn, plan.highestNamedLsn)
  for (const name of plan.foreign)
    addDamage(report, { kind: 'foreign_file', file: name, fromByte: 0, toByte: 0, missing: null })
  const segments = plan.segments.filter(({ firstLsn }) => firstLsn <= throughLsn)
  const lost = rangeOf(afterLsn + 1, segments[0]?.afterLsn ?? 0)
  if (lost !== null) addDamage(report, { kind: 'missing', file: null, fromByte: 0, toByte: 0, missing: lost })
  let last: LastSegment | null = null
  for (const segment of segments) {
    const isVoided = rangeOf(segment.afterLsn + 1, segment.firstLsn - 1)
    if (isVoided !== null) keep(report.voids, isVoided)
    report.lastKnownAtMs = Math.max(report.lastKnownAtMs, segment.knownAtMs)
    last = await readSegment(disk, segment, options, report, visit)
  }
  return { report, last }
}

async function readSegment(
  disk: Disk,
  segment: PlannedSegment,
  { afterLsn, throughLsn = 0 }: ReadOptions,
  report: ReadReport,
  visit: Visit,
): Promise<LastSegment> {
  const { firstLsn, cutoffLsn } = segment
  const isLast = cutoffLsn === Infinity
  const provenLsn = isLast ? Math.max(throughLsn, await provenIn(disk, segment)) : cutoffLsn
  const damageBefore = report.damageCount
  const reading = new SegmentReader(segment, provenLsn, report)
  for await (const piece of scanSegment(disk, segment)) {
    if (!reading.take(piece)) continue
    const record = new VisitedCommit(firstLsn, piece.head as CommitHead, piece)
    report.lastLsn = Math.max(report.lastLsn, record.lsn)
    if (record.lsn <= afterLsn) continue
    report.commits++
    const visited = visit(record)
    if (visited !== undefined) await visited
  }
  reading.finish()
  report.segments.push(reading.info)
  const isDamaged = report.damageCount > damageBefore
  return { firstLsn, keptBytes: reading.keptBytes, provenLsn, isEnded: reading.isEnded, isDamaged }
}

/**
 * Visits every commit behind `afterLsn`, each once and in order, and answers what was found. Damage never stops it: the
 * records behind are visited. Rejects where a visit does, where a segment is of a newer format, and with
 * `segment_removed` where one was deleted meanwhile.
 */
export async function readLog(options: ReadOptions, visit: Visit): Promise<ReadReport> {
  return (await readAll(options, visit)).report
}
