// Writes one segment file. A file gets its name once its first bytes are durable, and must not be written again after an
// operation on it failed. A WriteFailure says whether the bytes may be in the file; log-writer.ts acts on it.
import { join } from 'node:path'
import type { Disk, DiskFile } from '../../../lib/disk/disk.ts'
import type { OverdueCheck } from '../../../lib/disk/disk-operations.ts'
import { copyBytes, createWhole, writeAll } from '../../../lib/disk/whole-files.ts'
import { systemCode } from '../../../lib/error-text.ts'
import { NEXT_NAME } from '../../../lib/segments/numbered-names.ts'
import { BLOCK_BYTES, WRITE_AHEAD_FOR_BYTES_MAX, ZEROS_BYTES_MAX, ZEROS_BYTES_MIN } from '../limits.ts'
import { endText, LineBuffer, NEWLINE, segmentNames } from './format.ts'

export class WriteFailure extends Error {
  /** False: nothing of what was written remains, not even after a restart. True: nobody can tell. */
  readonly isInDoubt: boolean

  constructor(cause: unknown, isInDoubt: boolean) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'WriteFailure'
    this.isInDoubt = isInDoubt
  }
}

/** Memory that nothing ever writes to takes none: the system maps its one page of zeros. */
const ZEROS = Buffer.alloc(WRITE_AHEAD_FOR_BYTES_MAX + ZEROS_BYTES_MAX + BLOCK_BYTES)

/** The disk had no room. Unlike after an error of the device (EIO), what is done next can be relied on. */
const isFull = (error: unknown): boolean => FULL.has(systemCode(error) ?? '')
const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Durably writes a new segment file and its name. Rejects with WriteFailure, which is in doubt only from the naming on. */
async function writeSegment(
  disk: Disk,
  folder: string,
  firstLsn: number,
  check: OverdueCheck,
  write: (file: DiskFile) => Promise<void>,
): Promise<DiskFile> {
  const path = join(folder, segmentNames.nameOf(firstLsn))
  let file: DiskFile | null = null
  let isNamed = false
  try {
    file = await createWhole(disk, join(folder, NEXT_NAME), path, 'createSynced', async (unnamed) => {
      check()
      await write(unnamed)
      check()
      isNamed = true
    })
    check()
    await disk.syncFolder(folder)
    check()
    return file
  } catch (error) {
    await file?.close().catch(() => undefined)
    throw new WriteFailure(error, isNamed)
  }
}

/** A segment that is being written. `createSegment` makes one. */
export class SegmentFile {
  readonly firstLsn: number
  /** Its durable bytes, without the zeros behind them. */
  bytes: number
  commits = 0
  readonly #file: DiskFile
  /** Where the zeros end that were written ahead. */
  #zerosEnd: number
  readonly #writesAhead: boolean

  constructor(firstLsn: number, bytes: number, file: DiskFile, writesAhead: boolean) {
    this.firstLsn = firstLsn
    this.bytes = this.#zerosEnd = bytes
    this.#file = file
    this.#writesAhead = writesAhead
  }

  /** Writes durably. After it has rejected, with WriteFailure, the segment must not be written again. */
  async append(bytes: Uint8Array, check: OverdueCheck): Promise<void> {
    if (this.#writesAhead && bytes.length <= WRITE_AHEAD_FOR_BYTES_MAX)
      await this.#writeZeros(this.bytes + bytes.length, check)
    await this.#writeLines(bytes, check)
  }

  async #writeLines(bytes: Uint8Array, check: OverdueCheck): Promise<void> {
    await this.#write(bytes, undefined, check)
    this.bytes += bytes.length
  }

  /**
   * Writes zeros ahead: the more, the longer the segment already is. Lines that replace zeros change neither the length of the file
   * nor the list of its blocks, so the file system has nothing else to make durable, and syncing them takes a third less time.
   * @param needed where the next lines will end
   */
  async #writeZeros(needed: number, check: OverdueCheck): Promise<void> {
    if (needed <= this.#zerosEnd) return
    const from = Math.max(this.bytes, this.#zerosEnd)
    const ahead = Math.min(Math.max(this.bytes, ZEROS_BYTES_MIN), ZEROS_BYTES_MAX)
    const to = Math.ceil((needed + ahead) / BLOCK_BYTES) * BLOCK_BYTES
    await this.#write(ZEROS.subarray(0, to - from), from, check)
    this.#zerosEnd = to
  }

  /** Rejects with WriteFailure. */
  async #write(bytes: Uint8Array, offset: number | undefined, check: OverdueCheck): Promise<void> {
    try {
      await writeAll(this.#file, bytes, offset)
      check()
    } catch (error) {
      throw new WriteFailure(error, !isFull(error) || !(await this.#truncate(check)))
    }
  }

  /**
   * Removes what a write to a full disk left, and the zeros. The bytes before it are durable, and those that could not be stored
   * are gone with it, so the sync after it can be trusted. This works on a full disk too, where a new segment would not fit.
   * @returns whether the file durably has its former length
   */
  async #truncate(check: OverdueCheck): Promise<boolean> {
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

  /** Writes the end record, so that later damage to the last commits is not mistaken for a torn tail, and closes the file. */
  async seal(lastLsn: number, check: OverdueCheck): Promise<void> {
    // The sync of the record makes the new length durable too.
    if (this.#zerosEnd > this.bytes) await this.#file.truncate(this.bytes)
    check()
    await this.#writeLines(encodeEndLine(lastLsn), check)
    await this.close()
  }

  /** Never rejects: what matters is durable already. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => undefined)
  }
}

/**
 * Creates a segment with its first bytes. Contents, name and folder are durable when it resolves. Rejects with WriteFailure.
 * @param writesAhead whether zeros are written ahead of later lines
 */
export async function createSegment(
  disk: Disk,
  folder: string,
  firstLsn: number,
  bytes: Uint8Array,
  writesAhead: boolean,
  check: OverdueCheck,
): Promise<SegmentFile> {
  const file = await writeSegment(disk, folder, firstLsn, check, (next) => writeAll(next, bytes))
  return new SegmentFile(firstLsn, bytes.length, file, writesAhead)
}

function encodeEndLine(lastLsn: number): Buffer {
  const line = new LineBuffer()
  line.add(endText(lastLsn))
  return line.bytes
}

/**
 * Copies the first `validBytes` of a segment to a new file, seals it, and atomically replaces the old file with it. The previous
 * process may have left bytes that can be read but are not on the disk: if a sync of them failed, a later successful sync would not
 * write them.
 * @returns the size of the new file
 */
export async function rewriteSegment(
  disk: Disk,
  folder: string,
  segment: { firstLsn: number; lastLsn: number; validBytes: number },
  check: OverdueCheck,
): Promise<number> {
  const { firstLsn, lastLsn, validBytes } = segment
  const path = join(folder, segmentNames.nameOf(firstLsn))
  let line = encodeEndLine(lastLsn)
  const file = await writeSegment(disk, folder, firstLsn, check, async (next) => {
    const last = await copyBytes(disk, path, next, validBytes, check)
    // Restores a damaged newline after the last record.
    if (last !== NEWLINE) line = Buffer.concat([Buffer.from('\n'), line])
    await writeAll(next, line)
  })
  await file.close()
  return validBytes + line.length
}
