// The files of segments as the writer makes them.
import { join } from 'node:path'
import type { Disk, DiskFile } from '../../lib/disk/disk.ts'
import { copyBytes, createWhole, writeAll } from '../../lib/disk/whole-files.ts'
import { NEXT_NAME } from '../../lib/segments/numbered-names.ts'
import { COPY_NAME, headerFrame, type SegmentHeader, segmentNames } from '../segments/format.ts'
import type { WrittenBatch } from '../types.ts'
import type { SegmentState } from './segment-states.ts'

/** A segment that is being written. */
export class SegmentFile {
  readonly firstEventNo: number
  lastEventNo: number
  bytes: number
  /** On the monotonic clock. */
  readonly openedMs: number
  readonly file: DiskFile
  state: SegmentState = 'open'

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

  /** Appends batches in one write. Rejects where not all of it was written: then nothing more may be appended. */
  async append(batches: readonly [WrittenBatch, ...WrittenBatch[]]): Promise<void> {
    const frames = batches.map(({ frame }) => frame)
    const bytes = frames.length === 1 ? frames[0]! : Buffer.concat(frames)
    await writeAll(this.file, bytes)
    this.bytes += bytes.length
    this.lastEventNo = batches.at(-1)!.lastEventNo
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
  const head = headerFrame({ ...header, firstEventNo: batch.firstEventNo })
  const path = join(folder, segmentNames.nameOf(batch.firstEventNo))
  const file = await createWhole(disk, join(folder, NEXT_NAME), path, 'create', (next) =>
    writeAll(next, Buffer.concat([head, batch.frame])),
  )
  return new SegmentFile(file, batch, head.length + batch.frame.length, openedMs)
}

/** Writes a segment anew, since what a failed sync left undone no later sync does. Durable with the next sync of the folder. */
export async function rewriteSegment(disk: Disk, folder: string, name: string): Promise<void> {
  const path = join(folder, name)
  const copy = await createWhole(disk, join(folder, COPY_NAME), path, 'create', async (file) => {
    await copyBytes(disk, path, file)
    await file.sync()
  })
  await copy.close().catch(() => undefined)
}
