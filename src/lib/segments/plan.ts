// Lists the segments of a folder in order, and finds the last valid entry of each, which later segments determine. Reads only the start
// of each file.
import { join } from 'node:path'
import type { Disk } from '../disk/disk.ts'
import { systemCode } from '../error-text.ts'
import { SEGMENT_BYTES, SEGMENT_START_BYTES } from './limits.ts'
import { scan } from './scan.ts'
import { type EntriesHead, type HeaderHead, SegmentError, type SegmentFormat } from './types.ts'

export interface PlannedSegment<Header extends HeaderHead = HeaderHead> {
  name: string
  path: string
  bytes: number
  firstNo: number
  /** Null where it is damaged. */
  header: Header | null
  /** Entries of earlier segments beyond this one are void. */
  afterNo: number
  /** Its own entries beyond this one are void: a later segment says so. Infinity for the newest segment. */
  cutoffNo: number
}

export interface SegmentPlan<Header extends HeaderHead> {
  /** Oldest first. */
  segments: PlannedSegment<Header>[]
  /** Names of files that are no segments of this owner. */
  foreign: string[]
  /** Paths of files that were deleted since the folder was listed. */
  removed: string[]
  /** The highest number in a file name. */
  highestNamedNo: number
}

interface SegmentStart<Header extends HeaderHead> {
  bytes: number
  header: Header | null
  /** As the header says or, where it is damaged, the first entries; Infinity where neither can be read. */
  durableNo: number
}

/** Null where it is a folder. */
async function readStart<Header extends HeaderHead, Entries extends EntriesHead>(
  disk: Disk,
  path: string,
  format: SegmentFormat<Header, Entries>,
): Promise<SegmentStart<Header> | null> {
  const file = await disk.open(path)
  try {
    const bytes = await file.size()
    for await (const { head, offset, error } of scan(file, format, { chunkBytes: SEGMENT_START_BYTES })) {
      if (systemCode(error) === 'EISDIR') return null
      if (offset === 0 && head?.kind === 'header') return { bytes, header: head, durableNo: head.durableNo }
      if (offset === 0 && head?.kind === 'newer') throw unknownFormatError(path, head.format, format.version)
      if (head?.kind === 'entries') return { bytes, header: null, durableNo: head.durableNo }
    }
    return { bytes, header: null, durableNo: Number.POSITIVE_INFINITY }
  } finally {
    await file.close()
  }
}

/** As `readStart`; a file that the disk does not open is known by its name, so that the others are read. */
async function tryReadStart<Header extends HeaderHead, Entries extends EntriesHead>(
  disk: Disk,
  path: string,
  format: SegmentFormat<Header, Entries>,
): Promise<SegmentStart<Header> | null> {
  try {
    return await readStart(disk, path, format)
  } catch (error) {
    if (!format.unreadable.includes(systemCode(error) ?? '')) throw error
    return { bytes: SEGMENT_BYTES, header: null, durableNo: Number.POSITIVE_INFINITY }
  }
}

/**
 * Plans all segments in the folder; none where it is missing. Rejects with SegmentError `unknown_format` where one has a newer format.
 * @param owner identity that they must have; null: any
 */
export async function planSegments<Header extends HeaderHead, Entries extends EntriesHead>(
  disk: Disk,
  folder: string,
  owner: string | null,
  format: SegmentFormat<Header, Entries>,
): Promise<SegmentPlan<Header>> {
  const plan: SegmentPlan<Header> = { segments: [], foreign: [], removed: [], highestNamedNo: 0 }
  for (const name of (await listFolder(disk, folder)).sort()) {
    if (format.isPassedOver(name)) continue
    const firstNo = format.names.numberOf(name)
    const path = join(folder, name)
    plan.highestNamedNo = Math.max(plan.highestNamedNo, firstNo ?? 0)
    try {
      const start = firstNo === null ? null : await tryReadStart(disk, path, format)
      if (firstNo === null || start === null || !isOwn(start.header, firstNo, owner)) plan.foreign.push(name)
      else {
        const { bytes, header, durableNo } = start
        const afterNo = format.countsTo(firstNo, durableNo)
        plan.segments.push({ name, path, bytes, firstNo, header, afterNo, cutoffNo: Infinity })
      }
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error
      plan.removed.push(path)
    }
  }
  let cutoffNo = Number.POSITIVE_INFINITY
  for (const segment of plan.segments.toReversed()) {
    segment.cutoffNo = cutoffNo
    cutoffNo = Math.min(cutoffNo, segment.afterNo)
  }
  return plan
}

/** Whether a header says what the file's name does; a damaged one says nothing else. */
const isOwn = (header: HeaderHead | null, firstNo: number, owner: string | null): boolean =>
  header === null || (header.firstNo === firstNo && (owner === null || header.owner === owner))

const unknownFormatError = (path: string, format: number, version: number): SegmentError =>
  new SegmentError('unknown_format', `${path} has format ${format}, and this version reads up to ${version}`)

async function listFolder(disk: Disk, folder: string): Promise<string[]> {
  try {
    return await disk.list(folder)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  }
}
