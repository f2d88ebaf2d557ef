// In: the folder of a log. Out: its segments in order, and for each the last LSN that counts in it, as the headers behind
// it say. Reads of each file its beginning only.
import { join } from 'node:path'
import { systemCode } from '../../lib/error-text.ts'
import type { Disk } from './disk.ts'
import { LogError } from './errors.ts'
import { BEGINNING_BYTES, SEGMENT_BYTES } from './limits.ts'
import {
  DAMAGED_SUFFIX,
  FORMAT,
  firstLsnOf,
  NEXT_NAME,
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
  /** Its own commits beyond this one are void, since a later segment says so. Infinity: it is the last. */
  cutoffLsn: number
}

export interface ReadingPlan {
  segments: PlannedSegment[]
  /** Names that are no segment of this log. */
  foreign: string[]
  /** The highest LSN that a file bears in its name. */
  highestNamedLsn: number
}

interface Beginning {
  bytes: number
  header: SegmentHeader | null
  /** `afterLsn` of the first commit. */
  firstAfterLsn: number
  isFolder: boolean
}

/** The header of a file; where it is damaged, the file's first commit tells what was acknowledged before it. */
async function beginningOf(disk: Disk, path: string): Promise<Beginning> {
  const beginning: Beginning = { bytes: 0, header: null, firstAfterLsn: Infinity, isFolder: false }
  const file = await disk.open(path)
  try {
    beginning.bytes = await file.size()
    for await (const { head, offset, error } of scan(file, BEGINNING_BYTES)) {
      if (systemCode(error) === 'EISDIR') beginning.isFolder = true
      if (offset === 0 && head?.kind === 'header') beginning.header = head
      if (head?.kind === 'commit') beginning.firstAfterLsn = head.afterLsn
      if (head !== null && isTelling(head, offset)) break
    }
  } finally {
    await file.close()
  }
  return beginning
}

const isTelling = ({ kind }: RecordHead, offset: number): boolean =>
  kind === 'commit' || (kind === 'header' && offset === 0)

/** A file by its name and beginning; null where it is no segment of this log. */
async function planSegment(
  disk: Disk,
  folder: string,
  name: string,
  logId: string,
): Promise<PlannedSegment | null> {
  const firstLsn = firstLsnOf(name)
  if (firstLsn === null) return null
  const path = join(folder, name)
  const { bytes, header, firstAfterLsn, isFolder } = await beginningOf(disk, path)
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

/** As `planSegment`. A file that the disk cannot read does not stop the others from being read. */
async function planned(disk: Disk, folder: string, name: string, logId: string) {
  try {
    return await planSegment(disk, folder, name, logId)
  } catch (error) {
    const path = join(folder, name)
    if (systemCode(error) === 'ENOENT') throw removedMeanwhile(path)
    const firstLsn = firstLsnOf(name)
    if (systemCode(error) !== 'EIO' || firstLsn === null) throw error
    const unknown = { bytes: SEGMENT_BYTES, hasHeader: false, knownAtMs: 0, cutoffLsn: Infinity }
    return { name, path, firstLsn, afterLsn: firstLsn - 1, ...unknown }
  }
}

/** What a reader is told when a flush deletes a segment under it: to begin anew, after a later LSN. */
export const removedMeanwhile = (path: string): LogError =>
  new LogError('segment_removed', `${path} was removed while the log was read`)

/** Reads the beginnings of all segments in the folder. Rejects where one is of a newer format. */
export async function planReading(disk: Disk, folder: string, logId: string): Promise<ReadingPlan> {
  const plan: ReadingPlan = { segments: [], foreign: [], highestNamedLsn: 0 }
  for (const name of (await disk.list(folder)).sort()) {
    if (name === NEXT_NAME || name.endsWith(DAMAGED_SUFFIX)) continue
    const segment = await planned(disk, folder, name, logId)
    plan.highestNamedLsn = Math.max(plan.highestNamedLsn, firstLsnOf(name) ?? 0)
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
