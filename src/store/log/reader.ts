// Reads the commits of a log, each once and in order, with every CRC checked, and reports damage. Recovery, the flush and
// verification use it. Holds one record in memory at a time.

import { nodeDisk } from '../../lib/disk/disk.ts'
import { SegmentReader } from '../../lib/segments/segment-reader.ts'
import {
  damageOf,
  numberRange,
  type PlannedSegment,
  removedError,
  type SegmentDamage,
} from '../../lib/segments/types.ts'
import { REPORT_ENTRIES_MAX } from './limits.ts'
import {
  type CommitHead,
  commitRecord,
  type LogHeader,
  logFormat,
  RECORD_BYTES_MIN,
} from './segments/format.ts'
import type { CommitRecord, ReadOptions, ReadReport } from './types.ts'

type LogSegment = PlannedSegment<LogHeader>
type LogReader = SegmentReader<LogHeader, CommitHead>

export type Visit = (record: CommitRecord) => void | Promise<void>

export interface LogRead {
  report: ReadReport
  /** Where the last valid record of the newest segment ends, if that was left unsealed and is not damaged; else null. */
  unsealedBytes: number | null
  /** Commits up to this one were durable, even those that can no longer be read. */
  provenLsn: number
}

/** Like `readLog`, and also returns what the writer needs to continue after the newest segment. */
export async function readSegments(options: ReadOptions, visit: Visit): Promise<LogRead> {
  const { disk = nodeDisk, folder, logId, afterLsn, throughLsn = Infinity, knownLsn = 0 } = options
  const reader = new SegmentReader(disk, logFormat)
  const plan = await reader.plan(folder, logId)
  // The flush deleted it: the caller has to start again, after a later LSN.
  for (const path of plan.removed) throw removedError(path)
  const report: ReadReport = {
    segments: [],
    commits: 0,
    lastLsn: afterLsn,
    highestLsn: Math.max(afterLsn, plan.highestNamedNo),
    lastKnownAtMs: 0,
    tornTails: [],
    damage: [],
  }
  for (const name of plan.foreign) addEntry(report.damage, damageOf('foreign_file', name, null))
  const segments = plan.segments.filter(({ firstNo }) => firstNo <= throughLsn)
  const lost = numberRange(afterLsn + 1, segments[0]?.afterNo ?? Math.min(knownLsn, throughLsn))
  if (lost !== null) addEntry(report.damage, damageOf('missing', null, lost))
  let unsealedBytes: number | null = null
  let provenLsn = knownLsn
  for (const segment of segments) {
    report.lastKnownAtMs = Math.max(report.lastKnownAtMs, segment.header?.knownAtMs ?? 0)
    const read = await readSegment(reader, segment, options, report, visit)
    unsealedBytes = read.unsealedBytes
    provenLsn = Math.max(provenLsn, read.provenLsn)
  }
  return { report, unsealedBytes, provenLsn }
}

/** Commits up to this one are in the segment, void or damaged. */
async function provenIn(
  reader: LogReader,
  segment: LogSegment,
  { throughLsn = 0, knownLsn = 0 }: ReadOptions,
) {
  if (segment.cutoffNo < Infinity) return segment.cutoffNo
  return Math.max(throughLsn, knownLsn, segment.afterNo, await reader.findProvenNo(segment))
}

/** Damage without the commits that are stored elsewhere: a kill between a flush and the removal leaves their segment. Null: it lost no others. */
function damageAfter(afterLsn: number, damage: SegmentDamage): SegmentDamage | null {
  if (damage.missing === null) return damage
  const missing = numberRange(Math.max(damage.missing.from, afterLsn + 1), damage.missing.to)
  return missing === null ? null : { ...damage, missing }
}

async function readSegment(
  reader: LogReader,
  segment: LogSegment,
  options: ReadOptions,
  report: ReadReport,
  visit: Visit,
): Promise<Omit<LogRead, 'report'>> {
  const { name, firstNo: firstLsn, bytes } = segment
  const provenLsn = await provenIn(reader, segment, options)
  // Also by damage that is not told.
  let isDamaged = false
  const info = { firstLsn, lastLsn: firstLsn - 1, commits: 0, bytes }
  const check = reader.check({
    segment,
    provenNo: provenLsn,
    onDamage: (damage) => {
      isDamaged = true
      const told = damageAfter(options.afterLsn, damage)
      if (told !== null) addEntry(report.damage, told)
    },
    onTornTail: (tail) => addEntry(report.tornTails, tail),
  })
  let isContradicted = false
  for await (const item of reader.scan(segment)) {
    const { head, offset, length } = item
    if (head?.kind === 'entries') {
      report.highestLsn = Math.max(report.highestLsn, head.lastNo)
      report.lastKnownAtMs = Math.max(report.lastKnownAtMs, head.knownAtMs)
      if (head.durableNo > segment.cutoffNo && !isContradicted) {
        isContradicted = true
        isDamaged = true
        const place = { file: name, fromByte: offset, toByte: offset + length }
        addEntry(report.damage, { ...place, kind: 'contradiction', missing: null })
      }
    }
    const commit = check.check(item)
    if (commit === null) continue
    info.commits++
    info.lastLsn = commit.lastNo
    report.lastLsn = Math.max(report.lastLsn, commit.lastNo)
    if (commit.lastNo <= options.afterLsn) continue
    report.commits++
    const visited = visit(commitRecord(commit, { segment: firstLsn, offset, length }, item.frame))
    if (visited !== undefined) await visited
  }
  check.finish()
  report.segments.push(info)
  // A torn tail may have held as many.
  const possibleLsn = check.nextNo - 1 + Math.ceil(check.skippedBytes / RECORD_BYTES_MIN)
  report.highestLsn = Math.max(report.highestLsn, possibleLsn)
  return {
    unsealedBytes: check.isSealed || isDamaged ? null : check.validBytes,
    provenLsn: Math.max(provenLsn, check.provenNo),
  }
}

/** Adds to one of a report's lists, unless it is full. */
function addEntry<Entry>(entries: Entry[], entry: Entry): void {
  if (entries.length < REPORT_ENTRIES_MAX) entries.push(entry)
}

/**
 * Visits every commit after `afterLsn`, each once and in order. Damaged parts are reported and skipped. Rejects where a visit
 * does, with `unknown_format` where a segment has a newer format, and with `segment_removed` where one was deleted meanwhile.
 */
export async function readLog(options: ReadOptions, visit: Visit): Promise<ReadReport> {
  return (await readSegments(options, visit)).report
}
