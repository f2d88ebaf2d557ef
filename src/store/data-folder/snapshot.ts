// Copies a data folder that is in use to a new folder, durably. Files that are never written again become hard links where the
// disk supports them, else copies.
import { existsSync } from 'node:fs'
import { constants, copyFile, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorMessage, ignoreMissing, systemCode } from '../../lib/error-text.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import { invalid, StoreError, unavailable } from '../errors.ts'
import { segmentNames } from '../log/segments/format.ts'
import type { SegmentInfo } from '../log/types.ts'
import {
  checkpointFolder,
  deadLetterFolder,
  folderInfoPath,
  journalFolder,
  logFolder,
  noteFiles,
} from '../paths.ts'

/** Errors of a disk without hard links, or between two disks. */
const CANNOT_LINK = new Set(['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'])

/** Copies a file and syncs it. A disk that can shares its blocks until one of the two is written. @returns its bytes */
export async function copyDurably(from: string, to: string): Promise<number> {
  await makeFolder(dirname(to))
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  await syncPath(to)
  return (await stat(to)).size
}

/** Links a file that is never written again, or copies it. @returns its bytes */
export async function linkOrCopy(from: string, to: string): Promise<number> {
  await makeFolder(dirname(to))
  try {
    await link(from, to)
    return (await stat(to)).size
  } catch (error) {
    if (!CANNOT_LINK.has(systemCode(error))) throw error
    return copyDurably(from, to)
  }
}

/** Makes the entries of these folders durable. */
export async function syncFolders(folders: Iterable<string>): Promise<void> {
  for (const folder of new Set(folders)) await syncPath(folder)
}

/** Copies what the server writes: the description of the folder, and the segments that the lake does not hold. */
async function copyServerFiles(dataDir: string, to: string, segments: readonly SegmentInfo[]): Promise<void> {
  await copyDurably(folderInfoPath(dataDir), folderInfoPath(to))
  for (const path of noteFiles(dataDir))
    await copyDurably(path, join(to, basename(path))).catch(ignoreMissing)
  const dead = deadLetterFolder(dataDir)
  for (const name of existsSync(dead) ? await readdir(dead) : [])
    await copyDurably(join(dead, name), join(deadLetterFolder(to), name))
  await mkdir(logFolder(to), { recursive: true })
  for (const { firstLsn } of segments) {
    const name = segmentNames.nameOf(firstLsn)
    await linkOrCopy(join(logFolder(dataDir), name), join(logFolder(to), name))
  }
  await syncFolders([logFolder(to), to])
}

/**
 * Copies the market that a restart goes on with: checkpoints, and the journal, which is recorded meanwhile. The lake's copy must be
 * older, and the lake must not be written until this is done: segments are deleted once the lake and the checkpoints are past them.
 */
async function copyMarket(dataDir: string, to: string): Promise<void> {
  for (const folder of [checkpointFolder, journalFolder]) {
    const names = await readdir(folder(dataDir)).catch(() => [])
    const whole = names.filter((name) => !name.endsWith('.tmp')).toSorted()
    for (const name of whole) {
      const [from, copy] = [join(folder(dataDir), name), join(folder(to), name)]
      // The newest segment is still being written. A torn end is what a crash leaves, too.
      const isWritten = folder === journalFolder && name === whole.at(-1)
      const copying = isWritten ? copyDurably(from, copy) : linkOrCopy(from, copy).then(() => syncPath(copy))
      await copying.catch(ignoreMissing)
    }
    if (whole.length > 0) await syncFolders([folder(to), to])
  }
}

/**
 * Copies a data folder to `folder`, which appears only once the copy is complete. `copyLake` copies the lake and its state.
 * Throws `invalid` where `folder` exists.
 */
export async function makeSnapshot<Copied>(
  dataDir: string,
  folder: string,
  segments: readonly SegmentInfo[],
  copyLake: (to: string) => Promise<Copied>,
): Promise<Copied> {
  if ((await stat(folder).catch(() => null)) !== null)
    throw invalid(`${folder} is there already: a snapshot is a new folder`)
  const unfinished = join(dirname(folder), `.${basename(folder)}.tmp`)
  try {
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished, { recursive: true })
    const copied = await copyLake(unfinished)
    await copyServerFiles(dataDir, unfinished, segments)
    await copyMarket(dataDir, unfinished)
    await rename(unfinished, folder)
    await syncFolders([dirname(folder)])
    return copied
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true }).catch(() => undefined)
    if (error instanceof StoreError) throw error
    throw unavailable(`the snapshot ${folder} could not be made: ${errorMessage(error)}`)
  }
}
