// Reads one planned segment.
import type { Disk } from '../disk/disk.ts'
import { systemCode } from '../error-text.ts'
import { SCAN_CHUNK_BYTES, SEGMENT_START_BYTES } from './limits.ts'
import type { PlannedSegment } from './plan.ts'
import { type ScanItem, scan } from './scan.ts'
import { type EntriesHead, type HeaderHead, removedError, type SegmentFormat } from './types.ts'

/** Scans a segment from a byte on. Rejects with SegmentError where it was removed; that it cannot be opened is an item. */
export async function* scanSegment<Header extends HeaderHead, Entries extends EntriesHead>(
  disk: Disk,
  { path, bytes }: PlannedSegment,
  format: SegmentFormat<Header, Entries>,
  fromByte = 0,
): AsyncGenerator<ScanItem<Header, Entries>, void> {
  let file: Awaited<ReturnType<Disk['open']>>
  try {
    file = await disk.open(path)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw removedError(path)
    return yield { head: null, offset: 0, length: 0, frame: Buffer.alloc(0), error }
  }
  try {
    const chunkBytes = Math.min(Math.max(bytes, SEGMENT_START_BYTES), SCAN_CHUNK_BYTES)
    yield* scan(file, format, { chunkBytes, fromByte })
  } finally {
    await file.close()
  }
}

/**
 * The last entry that the frames of a segment prove to have been durable; 0 where there are none. These numbers never decrease, so the end
 * of the file tells; where no frame can be read there, the whole file is searched.
 */
export async function findProvenNo(
  disk: Disk,
  segment: PlannedSegment,
  format: SegmentFormat,
): Promise<number> {
  const endFrom = Math.max(0, segment.bytes - SCAN_CHUNK_BYTES)
  for (const fromByte of new Set([endFrom, 0])) {
    let provenNo: number | null = null
    for await (const { head } of scanSegment(disk, segment, format, fromByte))
      if (head !== null) provenNo = Math.max(provenNo ?? 0, head.durableNo)
    if (provenNo !== null) return provenNo
  }
  return 0
}
