// The data folder: whether a server can use it, how much room it has, and how fast its disk syncs.

import { existsSync } from 'node:fs'
import { open, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../config/settings.ts'
import { MEGABYTE } from '../../lib/bytes.ts'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { checkDataFolder } from '../../server/startable.ts'
import { checkFinished } from '../../store/backup/note.ts'
import { readFolderInfo } from '../../store/data-folder/folder-info.ts'
import { findLockHolder } from '../../store/data-folder/folder-lock.ts'
import { Losses } from '../../store/data-folder/losses.ts'
import { checkPaths } from '../../store/data-folder/odd-paths.ts'
import { damagedState, readWholeState } from '../../store/duckdb/damaged-state.ts'
import { stagedCopyFolder, stagingFolder } from '../../store/paths.ts'
import { DISK_FREE_MB_USUAL, SYNC_MS_USUAL, SYNCS_MEASURED } from '../limits.ts'
import { isOfAnotherFolder } from '../server-client.ts'
import { type CheckResult, fail, ok, warn } from './check.ts'

/** Types of file systems, as statfs tells them on Linux. */
const TMPFS = 0x01021994
const NFS = 0x6969

/** The folder, or the nearest one above it that exists. */
function existingFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : existingFolder(dirname(path))
}

/** A server that answers. */
export interface AnsweringServer {
  url: string
  /** Identity of its data folder, where it tells. */
  folderId: string | undefined
  /** It runs on this machine. */
  isHere: boolean
}

function isServerOf(dataDir: string, { folderId, isHere }: AnsweringServer): boolean {
  const isUsed = existsSync(dataDir) && findLockHolder(dataDir) !== null
  return (isUsed || !isHere) && !isOfAnotherFolder(folderId, dataDir)
}

/** @param server that is checked too, or null @param isMarketKnown the settings tell which kind of market comes to the folder */
export async function checkFolder(
  config: Config,
  server: AnsweringServer | null,
  isMarketKnown: boolean,
): Promise<CheckResult> {
  const { dataDir } = config
  if (server !== null && !isServerOf(dataDir, server))
    return warn(
      `${server.url} answers, but is not the server of ${dataDir}: these checks are about another folder than the server's`,
      'name the folder of the server with --data-dir, or the server of this folder with --url',
    )
  if (!existsSync(dataDir)) return ok(`${dataDir} is made at the first start`)
  try {
    checkFinished(dataDir)
    checkPaths(dataDir)
    const holder = findLockHolder(dataDir)
    // A server that runs on it has started.
    const info = holder === null && isMarketKnown ? checkDataFolder(config) : readFolderInfo(dataDir)
    if (
      holder === null &&
      existsSync(stagedCopyFolder(dataDir)) &&
      findLockHolder(stagingFolder(dataDir)) === null
    )
      return warn(
        `${stagedCopyFolder(dataDir)} is left of a backup that was killed, and keeps room on the disk`,
        'remove it, or make a backup',
      )
    if (holder !== null) return ok(`${dataDir} is in use by process ${holder}`)
    const fault = await readWholeState(dataDir)
    if (fault !== null) throw damagedState(dataDir, fault)
    const losses = new Losses(dataDir)
    await losses.load(Date.now())
    const [loss] = losses.sentences
    if (loss !== undefined)
      return warn(loss, 'put back a copy if there is one, then mintlake lake repair settles what stays lost')
    if (info === null) return ok(`${dataDir} has no store yet`)
    return ok(`${dataDir} has a store of format ${info.format}, which nobody uses now`)
  } catch (error) {
    return fail(
      errorMessage(error),
      'do as it says, restore a whole backup, or name another folder with --data-dir',
    )
  }
}

/** Writes and syncs a small file as the log does. */
async function measureSyncs(path: string): Promise<number[]> {
  const file = await open(path, 'wx')
  try {
    const times: number[] = []
    for (let count = 0; count < SYNCS_MEASURED; count++) {
      const beganMs = performance.now()
      await file.write('mintlake doctor\n')
      await file.datasync()
      times.push(performance.now() - beganMs)
    }
    return times.sort((a, b) => a - b)
  } finally {
    await file.close()
    await rm(path)
  }
}

export async function checkWritable(dataDir: string): Promise<CheckResult> {
  const folder = existingFolder(dataDir)
  try {
    if (!(await stat(folder)).isDirectory())
      return fail(`${folder} is no folder`, 'name another with --data-dir')
    const times = await measureSyncs(join(folder, `.mintlake-doctor-${process.pid}`))
    const median = times[Math.floor(times.length / 2)] ?? 0
    const slowest = times.at(-1) ?? 0
    const found = `${folder} can be written; a sync takes ${median.toFixed(2)} ms, the slowest of ${times.length} ${slowest.toFixed(1)} ms`
    const { type } = await statfs(folder)
    if (type === TMPFS)
      return warn(
        `${folder} is in memory (tmpfs)`,
        'all is lost at a reboot: name a folder on a disk with --data-dir',
      )
    if (type === NFS)
      return warn(`${folder} is on NFS`, 'locks and hard links may fail there: use a local disk')
    if (median <= SYNC_MS_USUAL) return ok(found)
    return warn(
      found,
      'each submission waits for at least one sync: use a faster disk, or one that fewer programs use',
    )
  } catch (error) {
    const full = ['ENOSPC', 'EDQUOT'].includes(systemCode(error))
    return fail(
      `${folder} cannot be written: ${errorMessage(error)}`,
      full
        ? 'make room on the disk'
        : 'give it to the user that runs the server, or name another with --data-dir',
    )
  }
}

/** @param reserveMb below which submissions are refused */
export async function checkDiskSpace(dataDir: string, reserveMb: number): Promise<CheckResult> {
  const folder = existingFolder(dataDir)
  const { bavail, bsize } = await statfs(folder)
  const freeMb = Math.floor((bavail * bsize) / MEGABYTE)
  const found = `${freeMb} MB of the disk are free`
  const remedy = 'make room, or let rows expire with --retain'
  if (freeMb < reserveMb) return fail(`${found}: below --disk-reserve-mb submissions are refused`, remedy)
  return freeMb < DISK_FREE_MB_USUAL ? warn(found, remedy) : ok(found)
}
