// What the writers of log and journal do with files besides the plain operations of a disk.
import { systemCode } from '../error-text.ts'
import type { Disk, DiskFile } from './disk.ts'

class ShortWriteError extends Error {
  readonly code = 'ENOSPC'
}

/** Writes as `DiskFile.write`. Rejects with the code ENOSPC where the disk took a part only. */
export async function writeAll(file: DiskFile, bytes: Uint8Array, offset?: number): Promise<void> {
  const written = await file.write(bytes, offset)
  if (written < bytes.length)
    throw new ShortWriteError(`only ${written} of ${bytes.length} bytes were written`)
}

/** Creates a file by one of the disk's two ways. One that a failed attempt or a killed process left under its name is replaced. */
export async function createAnew(
  disk: Disk,
  path: string,
  way: 'create' | 'createSynced',
): Promise<DiskFile> {
  try {
    return await disk[way](path)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    await disk.unlink(path)
    return await disk[way](path)
  }
}
