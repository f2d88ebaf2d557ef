// The files of segments as the writer makes them.
import { join } from 'node:path'
import type { Disk, DiskFile } from '../../lib/disk/disk.ts'
import { createAnew, writeAll } from '../../lib/disk/whole-files.ts'
import { SCAN_CHUNK_BYTES } from '../../lib/segments/limits.ts'
import { NEXT_NAME } from '../../lib/segments/numbered-names.ts'
import { COPY_NAME, headerFrame, type SegmentHeader, segmentNames } from '../segments/format.ts'
import type { WrittenBatch } from '../types.ts'

/** A segment that is being written. */
export class SegmentFile {
  readonly firstEventNo: number
  lastEventNo: number
  bytes: number
  /** On the monotonic clock. */
  readonly openedMs: number
  readonly file: DiskFile

  constructor(file: DiskFile, batch: WrittenBatch, bytes: number, openedMs: number) {
    this.file = file
    this.firstEventNo = batch.firstEventNo
    this.lastEventNo = batch.lastEventNo
    this.bytes = bytes
    this.openedMs = openedMs
  }

  get name(): string {
    return segmentNames.nameOf(this.firstEventNo)
  }

  /** Rejects where not all of it was written: then nothing more may be appended. */
  async append({ frame, lastEventNo }: WrittenBatch): Promise<void> {
    await writeAll(this.file, frame)
    this.bytes += frame.length
    this.lastEventNo = lastEventNo
  }
}

/**
 * Makes the segment that begins with this batch. Its name appears when the batch is in it, and takes the place of a segment whose
 * first batch could not be written.
 */
export async function createSegment(
  disk: Disk,
  folder: string,
  header: Omit<SegmentHeader, 'firstEventNo'>,
  batch: WrittenBatch,
  openedMs: number,
): Promise<SegmentFile> {
  const next = join(folder, NEXT_NAME)
  const file = await createAnew(disk, next, 'create')
  try {
    const head = headerFrame({ ...header, firstEventNo: batch.firstEventNo })
    await writeAll(file, Buffer.concat([head, batch.frame]))
    await disk.rename(next, join(folder, segmentNames.nameOf(batch.firstEventNo)))
    return new SegmentFile(file, batch, head.length + batch.frame.length, openedMs)
  } catch (error) {
    await file.close().catch(() => undefined)
    throw error
  }
}

/** The bytes that were to be copied could not be read. */
export class UnreadableError extends Error {}

/** Writes a segment anew, since what a failed sync left undone no later sync does. Durable with the next sync of the folder. */
export async function rewriteSegment(disk: Disk, folder: string, name: string): Promise<void> {
  const path = join(folder, name)
  const copyPath = join(folder, COPY_NAME)
  const source = await disk.open(path)
  try {
    const copy = await createAnew(disk, copyPath, 'create')
    try {
      const chunk = Buffer.allocUnsafe(SCAN_CHUNK_BYTES)
      for (let offset = 0; ; ) {
        const read = await source.read(chunk, offset).catch((error: unknown) => {
          throw new UnreadableError(`${path} cannot be read`, { cause: error })
        })
        if (read === 0) break
        await writeAll(copy, chunk.subarray(0, read))
        offset += read
      }
      await copy.sync()
    } finally {
      await copy.close().catch(() => undefined)
    }
    await disk.rename(copyPath, path)
  } finally {
    await source.close().catch(() => undefined)
  }
}
