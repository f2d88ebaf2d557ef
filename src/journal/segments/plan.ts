// Lists the segments of a folder in order, from their names and headers.
import { join } from 'node:path'
import type { Disk } from '../../lib/disk/disk.ts'
import { systemCode } from '../../lib/error-text.ts'
import { JournalError } from '../errors.ts'
import { SEGMENT_BYTES } from '../limits.ts'
import { COPY_NAME, FORMAT, NEXT_NAME, parseSegmentName, readHeader, type SegmentHeader } from './format.ts'
import { scanFrames } from './frame-scan.ts'

export interface PlannedSegment {
  name: string
  path: string
  bytes: number
  firstEventNo: number
  /** Null where it is damaged. */
  header: SegmentHeader | null
  /** Its events beyond this one are void: a later segment goes on behind it. Infinity for the newest segment. */
  cutoffEventNo: number
}

export interface JournalPlan {
  segments: PlannedSegment[]
  /** Names of files that are no segments of this journal. */
  foreign: string[]
}

interface SegmentStart {
  bytes: number
  header: SegmentHeader | null
}

async function readStart(disk: Disk, path: string): Promise<SegmentStart> {
  const file = await disk.open(path)
  try {
    const bytes = await file.size()
    for await (const { kind, frame, offset, error } of scanFrames(file)) {
      if (error !== undefined) throw error
      if (offset > 0 || kind !== 'header') break
      const header = readHeader(frame)
      if (header !== null && header.format > FORMAT)
        throw new JournalError(
          'unknown_format',
          `${path} has format ${header.format}, and this version reads up to ${FORMAT}`,
        )
      return { bytes, header: header !== null && 'folderId' in header ? header : null }
    }
    return { bytes, header: null }
  } finally {
    await file.close()
  }
}

/** Null where the file is no segment of this journal, or is gone. */
async function planSegment(
  disk: Disk,
  folder: string,
  name: string,
  folderId: string | null,
): Promise<PlannedSegment | null> {
  const firstEventNo = parseSegmentName(name)
  if (firstEventNo === null) return null
  const path = join(folder, name)
  const planned = { name, path, firstEventNo, cutoffEventNo: Infinity }
  try {
    const { bytes, header } = await readStart(disk, path)
    const isOurs =
      header === null ||
      (header.firstEventNo === firstEventNo && (folderId === null || header.folderId === folderId))
    return isOurs ? { ...planned, bytes, header } : null
  } catch (error) {
    if (error instanceof JournalError || !['EIO', 'EACCES', 'EISDIR'].includes(systemCode(error))) throw error
    // It is planned by its name, so that the others are read; reading it reports what is wrong.
    return systemCode(error) === 'EISDIR' ? null : { ...planned, bytes: SEGMENT_BYTES, header: null }
  }
}

/**
 * Plans all segments in the folder; none where it is missing.
 * @param folderId identity of the folder that they must have; null: any
 */
export async function planJournal(disk: Disk, folder: string, folderId: string | null): Promise<JournalPlan> {
  const plan: JournalPlan = { segments: [], foreign: [] }
  for (const name of (await listFolder(disk, folder)).sort()) {
    if (name === NEXT_NAME || name === COPY_NAME) continue
    try {
      const segment = await planSegment(disk, folder, name, folderId)
      if (segment === null) plan.foreign.push(name)
      else plan.segments.push(segment)
    } catch (error) {
      // Deleted since the folder was listed: the lake and the checkpoints are past it.
      if (systemCode(error) !== 'ENOENT') throw error
    }
  }
  let cutoffEventNo = Infinity
  for (const segment of plan.segments.toReversed()) {
    segment.cutoffEventNo = cutoffEventNo
    cutoffEventNo = segment.firstEventNo - 1
  }
  return plan
}

async function listFolder(disk: Disk, folder: string): Promise<string[]> {
  try {
    return await disk.list(folder)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  }
}

export const segmentRemovedError = (path: string): JournalError =>
  new JournalError('segment_removed', `${path} was removed while the journal was read`)
