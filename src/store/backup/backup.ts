// Makes a backup of a store from a copy that nobody writes to, and restores one. Either writes into an empty folder, which is
// marked as unfinished until all of it is durable and verified.

import { existsSync, realpathSync } from 'node:fs'
import { readdir, rm, rmdir, stat, statfs } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { MEGABYTE } from '../../lib/bytes.ts'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import { reserveAboveLostRun } from '../data-folder/positions.ts'
import { isFullError } from '../duckdb/database.ts'
import { invalid, StoreError, unavailable } from '../errors.ts'
import { hashFile, relativePath } from '../lake/lake-files.ts'
import { readLakePaths } from '../lake/links.ts'
import { backupNotePath, lakeFolder } from '../paths.ts'
import type { StagedBackup, StoreLog } from '../types.ts'
import type { Finding } from '../verify/findings.ts'
import { verifyLake } from '../verify/verify.ts'
import { type CopiedStore, type CopyOptions, copyBytes, copyStore } from './copy-store.ts'
import { checkFinished, readBackupNote, writeBackupNote, writeUnfinishedNote } from './note.ts'

/** `check` is called often; where it throws, what was written is removed. */
export interface BackupOptions extends Omit<CopyOptions, 'links'> {
  log: StoreLog
}

export interface FinishedCopy {
  path: string
  /** The last commit that it has. */
  lsn: number
  files: number
  bytes: number
  /** What is missing in the original too: files of its lake that were lost or damaged. */
  findings: readonly Finding[]
}

/** The path with its symbolic links resolved, of a folder that may not be there yet: the paths of catalogs are such. */
export function realPathOf(path: string): string {
  const full = resolve(path)
  const folder = dirname(full)
  if (existsSync(full) || folder === full) return realpathSync(full)
  return join(realPathOf(folder), basename(full))
}

/** Whether a path is a folder or in it. Both are real ones. */
export const isWithin = (path: string, folder: string): boolean =>
  `${path}${sep}`.startsWith(`${folder}${sep}`)

const megabytes = (bytes: number): string => `${Math.ceil(bytes / MEGABYTE)} MB`

/** Copies `staged`, which nobody writes to, to the new or empty folder `out`. */
export async function makeBackup(
  staged: Pick<StagedBackup, 'path' | 'lsn'>,
  out: string,
  options: BackupOptions,
): Promise<FinishedCopy> {
  const { path: source, lsn } = staged
  const note = { madeAtMs: options.nowMs, lsn }
  return copyToEmptyFolder({ source, links: true, lsn }, realPathOf(out), options, (folder, files) =>
    writeBackupNote(folder, { ...note, files }),
  )
}

/** Copies the backup `from`, after a check of every byte, to the new or empty folder `dataDir`, for a server to start on. */
export async function restoreBackup(
  from: string,
  dataDir: string,
  options: BackupOptions,
): Promise<FinishedCopy> {
  const [source, target] = [realPathOf(from), realPathOf(dataDir)]
  if (isWithin(target, source)) throw invalid(`${target} is in the backup: name a folder elsewhere`)
  const { files, lsn, madeAtMs } = readBackupNote(source)
  for (const { path, bytes, sha256 } of files) {
    options.check()
    const found = await stat(join(source, path)).catch(() => null)
    if (found?.size !== bytes || (await hashFile(join(source, path))) !== sha256)
      throw invalid(`${join(source, path)} is missing or not as it was when the backup was made`)
  }
  // Copied, not linked: the backup must not depend on what happens to this folder.
  return copyToEmptyFolder({ source, links: false, lsn }, target, options, async (folder) => {
    await reserveAboveLostRun(folder, Math.max(options.nowMs, madeAtMs), options.log)
    await rm(backupNotePath(folder))
    await syncPath(folder)
  })
}

/** Reads the whole copy. @returns what the original lacks as well @throws where anything else is wrong */
async function verifyCopy(
  source: string,
  folder: string,
  { losses }: CopiedStore,
  { nowMs, check }: BackupOptions,
): Promise<Finding[]> {
  const lost = new Set(losses.map(relativePath))
  const { findings } = await verifyLake({ dataDir: folder, nowMs, onStage: check })
  const [wrong] = findings.filter(({ file, isLoss }) => isLoss !== true && (file === null || !lost.has(file)))
  if (wrong !== undefined) {
    const { file, table, message } = wrong
    const isOriginal = file !== null && (await isSameFile(file, source, folder))
    throw unavailable(
      isOriginal
        ? `${file} is damaged in the lake itself: ${message}; mintlake lake repair sets it aside, then a backup has the rest`
        : `the copy in ${folder} is not whole: ${file ?? table}: ${message}`,
    )
  }
  return [...findings]
}

/** Whether a file of the lake has the same content in two data folders. */
async function isSameFile(file: string, one: string, other: string): Promise<boolean> {
  const hashOf = async (dataDir: string): Promise<string | null> => {
    const { root } = await readLakePaths(lakeFolder(dataDir))
    return hashFile(join(root, file)).catch(() => null)
  }
  const hash = await hashOf(one)
  return hash !== null && hash === (await hashOf(other))
}

/** What is copied, whether its files may be linked, and the last commit that it has. */
interface Origin {
  source: string
  links: boolean
  lsn: number
}

/** Copies a store to a folder that is marked as unfinished until `finish`, and verifies the copy. Where it fails, all of it is removed. */
async function copyToEmptyFolder(
  origin: Origin,
  folder: string,
  options: BackupOptions,
  finish: (folder: string, files: CopiedStore['files']) => Promise<void>,
): Promise<FinishedCopy> {
  const { source, links, lsn } = origin
  const isNew = await claimEmptyFolder(folder)
  try {
    await writeUnfinishedNote(folder)
    await requireRoom(origin, folder)
    options.check()
    const copied = await copyStore(source, folder, { ...options, links })
    const findings = await verifyCopy(source, folder, copied, options)
    await finish(folder, copied.files)
    const bytes = copied.files.reduce((sum, file) => sum + file.bytes, 0)
    return { path: folder, lsn, files: copied.files.length, bytes, findings }
  } catch (error) {
    await empty(folder, isNew).catch(() => undefined)
    if (isFullError(error)) throw unavailable(`the disk of ${folder} is full: nothing of it was kept`)
    if (error instanceof StoreError || systemCode(error) === '') throw error
    throw unavailable(`${folder} cannot be written: ${errorMessage(error)}`)
  }
}

/** Removes everything in a folder, and the folder too where it is new. */
async function empty(folder: string, isNew: boolean): Promise<void> {
  const note = backupNotePath(folder)
  const paths = (await readdir(folder)).map((name) => join(folder, name))
  for (const path of paths) if (path !== note) await rm(path, { recursive: true, force: true })
  // Last, so that a folder that could not be emptied is still marked.
  await rm(note, { force: true })
  if (isNew) await rmdir(folder)
}

/** Makes the folder, or finds it empty. @returns whether it is new @throws StoreError `invalid` where something is in it */
async function claimEmptyFolder(folder: string): Promise<boolean> {
  try {
    if (!existsSync(folder)) {
      await makeFolder(folder)
      return true
    }
    if ((await readdir(folder)).length === 0) return false
  } catch (error) {
    throw unavailable(`${folder} cannot be used: ${errorMessage(error)}`)
  }
  checkFinished(folder)
  throw invalid(`${folder} is not empty: name a new folder`)
}

/** Throws where the disk has no room for a copy, unless most of it can be linked. */
async function requireRoom({ source, links }: Origin, folder: string): Promise<void> {
  const [from, to] = [await stat(source), await stat(folder)]
  if (links && from.dev === to.dev) return
  const { bavail, bsize } = await statfs(folder)
  const neededBytes = await copyBytes(source)
  if (bavail * bsize >= neededBytes) return
  throw unavailable(
    `the disk of ${folder} has ${megabytes(bavail * bsize)} left of the ${megabytes(neededBytes)} that are needed`,
  )
}
