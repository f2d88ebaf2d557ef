// In: files of a folder that is in use. Out: the same files in another folder: as links where the disk can, since files of the
// store are never written in place, else as copies; durable. Never changes a file.
import { existsSync } from 'node:fs'
import { constants, copyFile, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { syncPath } from '../../lib/files.ts'
import { StoreError, unavailable } from '../errors.ts'
import { segmentName } from '../log/segments/format.ts'
import type { SegmentInfo } from '../log/types.ts'
import { deadLetterFolder, folderInfoPath, logFolder, positionsPath } from '../paths.ts'

/** Disks that know no links, or not between these two folders. */
const CANNOT_LINK = new Set(['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'])

/** A copy with bytes of its own. @returns how many */
export async function copyDurably(from: string, to: string): Promise<number> {
  await mkdir(dirname(to), { recursive: true })
  await copyFile(from, to, constants.COPYFILE_EXCL)
  await syncPath(to)
  return (await stat(to)).size
}

/** A second name of a file that nobody will write to, or a copy. @returns its bytes */
export async function linkOrCopy(from: string, to: string): Promise<number> {
  await mkdir(dirname(to), { recursive: true })
  try {
    await link(from, to)
    return (await stat(to)).size
  } catch (error) {
    if (!CANNOT_LINK.has(systemCode(error))) throw error
    return copyDurably(from, to)
  }
}

/** The same of a file that need not be there. */
async function copyIfThere(from: string, to: string): Promise<void> {
  try {
    await copyDurably(from, to)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  }
}

/** Makes the entries of a folder and of those below it durable. */
export async function syncFolders(folders: Iterable<string>): Promise<void> {
  for (const folder of new Set(folders)) await syncPath(folder)
}

/** What the server's part of a snapshot has: what the folder says of itself, and the segments that the lake does not have. */
async function copyLog(dataDir: string, to: string, segments: readonly SegmentInfo[]): Promise<void> {
  await copyDurably(folderInfoPath(dataDir), folderInfoPath(to))
  await copyIfThere(positionsPath(dataDir), positionsPath(to))
  const dead = deadLetterFolder(dataDir)
  for (const name of existsSync(dead) ? await readdir(dead) : [])
    await copyDurably(join(dead, name), join(deadLetterFolder(to), name))
  await mkdir(logFolder(to), { recursive: true })
  for (const { firstLsn } of segments) {
    const name = segmentName(firstLsn)
    await linkOrCopy(join(logFolder(dataDir), name), join(logFolder(to), name))
  }
  await syncFolders([logFolder(to), to])
}

/**
 * Makes `folder` a copy of a data folder: under its name only once it is whole. `copyLake` copies the lake and its state.
 * Throws `invalid` where something of that name is there.
 */
export async function makeSnapshot<Copied>(
  dataDir: string,
  folder: string,
  segments: readonly SegmentInfo[],
  copyLake: (to: string) => Promise<Copied>,
): Promise<Copied> {
  if ((await stat(folder).catch(() => null)) !== null)
    throw new StoreError('invalid', `${folder} is there already: a snapshot is a new folder`)
  const unfinished = join(dirname(folder), `.${basename(folder)}.tmp`)
  try {
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished, { recursive: true })
    const copied = await copyLake(unfinished)
    await copyLog(dataDir, unfinished, segments)
    await rename(unfinished, folder)
    await syncFolders([dirname(folder)])
    return copied
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true }).catch(() => undefined)
    if (error instanceof StoreError) throw error
    throw unavailable(`the snapshot ${folder} could not be made: ${errorMessage(error)}`)
  }
}
