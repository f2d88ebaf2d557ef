// In: bytes of records. Out: them in a segment, durable, or an error that says whether they may be in it. A file gets its
// name when its first bytes are durable, and is never written again once an operation on it failed. Never decides what
// follows from a failure.
import { join } from 'node:path'
import { systemCode } from '../../../lib/error-text.ts'
import type { Disk, DiskFile } from '../disk.ts'
import { COPY_CHUNK_BYTES } from '../limits.ts'
import { endText, LineBuffer, NEWLINE, NEXT_NAME, segmentName } from './format.ts'

/** Why an operation did not succeed. */
export class WriteFailure extends Error {
  /** False: what it wrote is gone, whatever happens next. */
  readonly isInDoubt: boolean

  constructor(cause: unknown, isInDoubt: boolean) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'WriteFailure'
    this.isInDoubt = isInDoubt
  }
}

/** Throws when the operation is overdue: no further call on the disk is made then. */
export type Checkpoint = () => void

class ShortWriteError extends Error {
  readonly code = 'ENOSPC'
}

async function writeAll(file: DiskFile, bytes: Uint8Array): Promise<void> {
  const written = await file.write(bytes)
  if (written < bytes.length) throw new ShortWriteError(`the disk took ${written} of ${bytes.length} bytes`)
}

/** A file under its own name only when the bytes are durable. What lies there from an attempt before is not used again. */
async function createNext(disk: Disk, path: string): Promise<DiskFile> {
  try {
    return await disk.create(path)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    await disk.unlink(path)
    return await disk.create(path)
  }
}

/** Makes a segment of what `write` writes. In doubt only from when the file may bear its name. */
async function publish(
  disk: Disk,
  folder: string,
  firstLsn: number,
  check: Checkpoint,
  write: (file: DiskFile) => Promise<void>,
): Promise<DiskFile> {
  const next = join(folder, NEXT_NAME)
  let file: DiskFile | null = null
  let isNamed = false
  try {
    file = await createNext(disk, next)
    check()
    await write(file)
    check()
    await file.sync()
    check()
    isNamed = true
    await disk.rename(next, join(folder, segmentName(firstLsn)))
    check()
    await disk.syncFolder(folder)
    check()
    return file
  } catch (error) {
    await file?.close().catch(() => undefined)
    // On a full disk the next attempt needs its room.
    if (!isNamed) await disk.unlink(next).catch(() => undefined)
    throw new WriteFailure(error, isNamed)
  }
}

/** The segment that is being written. */
export class SegmentFile {
  readonly firstLsn: number
  /** Its durable bytes. */
  bytes: number
  commits = 0
  readonly #file: DiskFile

  private constructor(firstLsn: number, bytes: number, file: DiskFile) {
    this.firstLsn = firstLsn
    this.bytes = bytes
    this.#file = file
  }

  /** A new segment with its first bytes, all durable: contents, name and folder. */
  static async begin(
    disk: Disk,
    folder: string,
    firstLsn: number,
    bytes: Uint8Array,
    check: Checkpoint,
  ): Promise<SegmentFile> {
    const file = await publish(disk, folder, firstLsn, check, (next) => writeAll(next, bytes))
    return new SegmentFile(firstLsn, bytes.length, file)
  }

  /** Adds bytes, durable when it resolves. Rejects with WriteFailure: then the segment must not be written again. */
  async append(bytes: Uint8Array, check: Checkpoint): Promise<void> {
    try {
      await writeAll(this.#file, bytes)
    } catch (error) {
      throw new WriteFailure(error, !(await this.#cutBack(check)))
    }
    try {
      check()
      await this.#file.sync()
      check()
    } catch (error) {
      throw new WriteFailure(error, true)
    }
    this.bytes += bytes.length
  }

  /**
   * Takes back what a failed write left: no sync has failed on this file, so a later one that succeeds can be believed.
   * A full disk has room for that where it has none for a new segment.
   */
  async #cutBack(check: Checkpoint): Promise<boolean> {
    try {
      check()
      await this.#file.truncate(this.bytes)
      check()
      await this.#file.sync()
      check()
      return true
    } catch {
      return false
    }
  }

  /** Writes that the segment ends here, so that damage in its last records is not taken for a torn tail. */
  async end(lastLsn: number, check: Checkpoint): Promise<void> {
    const line = endLine(lastLsn)
    await this.append(line, check)
    await this.close()
  }

  /** What it holds will not change any more. Never rejects. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => undefined)
  }
}

function endLine(lastLsn: number): Buffer {
  const line = new LineBuffer()
  line.add(endText(lastLsn))
  return line.bytes
}

/**
 * Writes the records of a segment anew, up to `keptBytes`, and ends it; the new file takes the place of the old one at
 * once. A process that was killed, or whose sync failed, may have left bytes that can be read and are not on the disk:
 * an fsync that succeeds now would say nothing about them.
 */
export async function rewriteSegment(
  disk: Disk,
  folder: string,
  segment: { firstLsn: number; lastLsn: number; keptBytes: number },
  check: Checkpoint,
): Promise<number> {
  const { firstLsn, lastLsn, keptBytes } = segment
  const old = await disk.open(join(folder, segmentName(firstLsn)))
  let line = endLine(lastLsn)
  try {
    const file = await publish(disk, folder, firstLsn, check, async (next) => {
      const chunk = Buffer.allocUnsafeSlow(Math.min(keptBytes, COPY_CHUNK_BYTES))
      for (let at = 0; at < keptBytes; ) {
        const read = await old.read(chunk.subarray(0, Math.min(chunk.length, keptBytes - at)), at)
        if (read === 0) throw new Error(`the segment is shorter than it was: ${at} bytes`)
        check()
        await writeAll(next, chunk.subarray(0, read))
        check()
        at += read
        // A newline that was lost is put back.
        if (at === keptBytes && chunk[read - 1] !== NEWLINE) line = Buffer.concat([Buffer.from('\n'), line])
      }
      await writeAll(next, line)
    })
    await file.close()
  } finally {
    await old.close().catch(() => undefined)
  }
  return keptBytes + line.length
}
