// What the writers of numbered files do with them besides the plain operations of a disk.
import { systemCode } from '../error-text.ts'
import type { Disk, DiskFile } from './disk.ts'

/** How much is copied at once. */
const COPY_CHUNK_BYTES = 1024 * 1024

class ShortWriteError extends Error {
  readonly code = 'ENOSPC'
}

/** Writes as `DiskFile.write`. Rejects with the code ENOSPC where the disk took a part only. */
export async function writeAll(file: DiskFile, bytes: Uint8Array, offset?: number): Promise<void> {
  const written = await file.write(bytes, offset)
  if (written < bytes.length)
    throw new ShortWriteError(`only ${written} of ${bytes.length} bytes were written`)
}

/** The two ways in which a disk creates files. */
type Way = 'create' | 'createSynced'

/**
 * Creates a file that has its name, at the place of another one perhaps, only once it is written. Whether the name is durable is up to
 * the caller.
 * @param temporaryPath what it is called until then. A file that a failed attempt or a killed process left there is replaced
 * @param write all that is to be in it by then
 */
export async function createWhole(
  disk: Disk,
  temporaryPath: string,
  path: string,
  way: Way,
  write: (file: DiskFile) => Promise<void>,
): Promise<DiskFile> {
  const file = await createAnew(disk, temporaryPath, way)
  let isWritten = false
  try {
    await write(file)
    isWritten = true
    await disk.rename(temporaryPath, path)
    return file
  } catch (error) {
    await file.close().catch(() => undefined)
    // Without this, on a full disk the next attempt would lack the space.
    if (!isWritten) await disk.unlink(temporaryPath).catch(() => undefined)
    throw error
  }
}

async function createAnew(disk: Disk, path: string, way: Way): Promise<DiskFile> {
  try {
    return await disk[way](path)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    await disk.unlink(path)
    return await disk[way](path)
  }
}

/** The bytes that were to be copied could not be read. */
export class UnreadableError extends Error {}

/**
 * Copies a file, or its first bytes, behind what was written to another one.
 * @param check called between any two calls on the disk; throws to give up
 * @returns the last of them
 */
export async function copyBytes(
  disk: Disk,
  from: string,
  to: DiskFile,
  bytes = Number.POSITIVE_INFINITY,
  check: () => void = () => undefined,
): Promise<number | undefined> {
  const source = await disk.open(from)
  try {
    const chunk = Buffer.allocUnsafeSlow(Math.min(bytes, COPY_CHUNK_BYTES))
    let last: number | undefined
    for (let at = 0; at < bytes; ) {
      const wanted = chunk.subarray(0, Math.min(chunk.length, bytes - at))
      const read = await source.read(wanted, at).catch((error: unknown) => {
        throw new UnreadableError(`${from} cannot be read`, { cause: error })
      })
      if (read === 0 && bytes === Number.POSITIVE_INFINITY) break
      if (read === 0) throw new UnreadableError(`${from} has shrunk to ${at} bytes`)
      check()
      await writeAll(to, chunk.subarray(0, read))
      check()
      at += read
      last = chunk[read - 1]
    }
    return last
  } finally {
    await source.close().catch(() => undefined)
  }
}
