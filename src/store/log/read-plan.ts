// Plans a read of the log: lists the segments in order and finds the last valid LSN of each, which the headers of later
// segments determine. Reads only the start of each file.
import { join } from 'node:path'
import type { Disk } from '../../lib/disk/disk.ts'
import { systemCode } from '../../lib/error-text.ts'
import { LogError } from './errors.ts'
import { SEGMENT_BYTES, SEGMENT_START_BYTES } from './limits.ts'
import {
  DAMAGED_SUFFIX,
  FORMAT,
  NEXT_NAME,
  parseSegmentName,
  type RecordHead,
  type SegmentHeader,
} from './segments/format.ts'
import { scan } from './segments/scan.ts'

export interface PlannedSegment {
  name: string
  path: string
  firstLsn: number
  bytes: number
  hasHeader: boolean
  /** Commits of earlier segments beyond it are void. */
  afterLsn: number
  knownAtMs: number
  /** Its own commits beyond this one are void, according to a later segment. Infinity for the newest segment. */
  cutoffLsn: number
}

export interface ReadPlan {
  segments: PlannedSegment[]
  /** Names of files that are not segments of this log. */
  foreign: string[]
  /** The highest LSN in a file name. */
  highestNamedLsn: number
}

interface SegmentStart {
  /** Size of the file. */
  bytes: number
  header: SegmentHeader | null
  /** `afterLsn` of the first commit; Infinity where it was not read. */
  firstAfterLsn: number
  isFolder: boolean
}

/** Reads the header. Where it is damaged, reads on to the first commit, which tells what had been acknowledged before it. */
async function readSegmentStart(disk: Disk, path: string): Promise<SegmentStart> {
  const start: SegmentStart = { bytes: 0, header: null, firstAfterLsn: Infinity, isFolder: false }
  const file = await disk.open(path)
  try {
    start.bytes = await file.size()
    for await (const { head, offset, error } of scan(file, SEGMENT_START_BYTES)) {
      if (systemCode(error) === 'EISDIR') start.isFolder = true
      if (offset === 0 && head?.kind === 'header') start.header = head
      if (head?.kind === 'commit') start.firstAfterLsn = head.afterLsn
      if (head !== null && isEndOfStart(head, offset)) break
    }
  } finally {
    await file.close()
  }
  return start
}

const isEndOfStart = ({ kind }: RecordHead, offset: number): boolean =>
  kind === 'commit' || (kind === 'header' && offset === 0)

/** Null where the file is not a segment of this log. */
async function planSegment(
  disk: Disk,
  folder: string,
  name: string,
  logId: string,
): Promise<PlannedSegment | null> {
  const firstLsn = parseSegmentName(name)
  if (firstLsn === null) return null
  const path = join(folder, name)
  const { bytes, header, firstAfterLsn, isFolder } = await readSegmentStart(disk, path)
  if (header !== null && header.format > FORMAT)
    throw new LogError(
      'unknown_format',
      `${path} has format ${header.format}, and this version reads up to ${FORMAT}`,
    )
  const isOurs = header === null || (header.log === logId && header.firstLsn === firstLsn)
  if (!isOurs || isFolder) return null
  return {
    name,
    path,
    firstLsn,
    bytes,
    hasHeader: header !== null,
    afterLsn: header?.afterLsn ?? Math.min(firstAfterLsn, firstLsn - 1),
    knownAtMs: header?.knownAt ?? 0,
    cutoffLsn: Infinity,
  }
}

/** Like `planSegment`, but a file that the disk cannot read (EIO) is planned by its name, so that the others are read. */
async function tryPlanSegment(disk: Disk, folder: string, name: string, logId: string) {
  try {
    return await planSegment(disk, folder, name, logId)
  } catch (error) {
    const path = join(folder, name)
    if (systemCode(error) === 'ENOENT') throw segmentRemovedError(path)
    const firstLsn = parseSegmentName(name)
    if (systemCode(error) !== 'EIO' || firstLsn === null) throw error
    const unknown = { bytes: SEGMENT_BYTES, hasHeader: false, knownAtMs: 0, cutoffLsn: Infinity }
    return { name, path, firstLsn, afterLsn: firstLsn - 1, ...unknown }
  }
}

/** The flush deleted a segment during the read: the reader has to start again, after a later LSN. */
export const segmentRemovedError = (path: string): LogError =>
  new LogError('segment_removed', `${path} was removed while the log was read`)

/** Plans all segments in the folder. Rejects with LogError `unknown_format` where one has a newer format. */
export async function planRead(disk: Disk, folder: string, logId: string): Promise<ReadPlan> {
  const plan: ReadPlan = { segments: [], foreign: [], highestNamedLsn: 0 }
  for (const name of (await disk.list(folder)).sort()) {
    if (name === NEXT_NAME || name.endsWith(DAMAGED_SUFFIX)) continue
    const segment = await tryPlanSegment(disk, folder, name, logId)
    plan.highestNamedLsn = Math.max(plan.highestNamedLsn, parseSegmentName(name) ?? 0)
    if (segment === null) plan.foreign.push(name)
    else plan.segments.push(segment)
  }
  let cutoffLsn = Infinity
  for (const segment of plan.segments.toReversed()) {
    segment.cutoffLsn = cutoffLsn
    cutoffLsn = Math.min(cutoffLsn, segment.afterLsn)
  }
  return plan
}
