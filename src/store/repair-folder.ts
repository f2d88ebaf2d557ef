// `mintlake repair`: brings a data folder that no server can start on to where one can. What is damaged is kept beside its place and
// made anew from what else the folder has; what is lost is noted and told.
import { existsSync } from 'node:fs'
import { readdir, rename } from 'node:fs/promises'
import { basename } from 'node:path'
import { errorFirstLine } from '../lib/error-text.ts'
import { syncPath } from '../lib/files.ts'
import { checkFinished } from './backup/note.ts'
import { isDamagedInfo, readFolderInfo, writeFolderInfo } from './data-folder/folder-info.ts'
import { lockFolder } from './data-folder/folder-lock.ts'
import { type FoundLoss, Losses } from './data-folder/losses.ts'
import { findLostInfo } from './data-folder/lost-info.ts'
import { findOddPaths } from './data-folder/odd-paths.ts'
import { isDamagedState, readWholeState } from './duckdb/damaged-state.ts'
import { notFound } from './errors.ts'
import * as paths from './paths.ts'
import type { Store } from './store.ts'
import { openStore, type StoreOptions } from './store.ts'
import type { LakeRepair } from './types.ts'

export interface FolderRepair extends LakeRepair {
  /** A sentence for each thing that was not as it should be. */
  done: readonly string[]
}

/** Rejects with `not_found` where there is no store, with `unavailable` while another process uses it. */
export async function repairFolder(options: StoreOptions): Promise<FolderRepair> {
  const { dataDir, clock } = options
  const nowMs = Math.floor(clock.now())
  await checkFolder(dataDir)
  const lock = lockFolder(dataDir)
  const done: string[] = []
  try {
    const losses = new Losses(dataDir)
    for (const loss of await replaceOddPaths(dataDir, nowMs, done)) await losses.record(loss, nowMs)
    await repairFolderInfo(dataDir, nowMs, done)
    await repairState(dataDir, nowMs, done)
  } finally {
    lock.release()
  }
  const store = await openRepaired(options, nowMs, done)
  try {
    await store.caughtUp
    return { ...(await store.repairLake({ acknowledges: false })), done }
  } finally {
    await store.close()
  }
}

async function checkFolder(dataDir: string): Promise<void> {
  const names = await readdir(dataDir).catch((error: unknown) => {
    throw notFound(`${dataDir} cannot be read: ${errorFirstLine(error)}`)
  })
  const known = [paths.folderInfoPath, paths.statePath, paths.accountsPath, paths.logFolder, paths.lakeFolder]
  if (!known.some((pathOf) => names.includes(basename(pathOf(dataDir)))))
    throw notFound(`there is no store in ${dataDir}`)
  checkFinished(dataDir)
}

/** Moves what is damaged out of the way: it is kept under another name. */
async function setAside(path: string, nowMs: number, why: string, done: string[]): Promise<void> {
  const kept = `${path}.${nowMs}.set-aside`
  await rename(path, kept)
  done.push(`${basename(path)} ${why}; it is kept as ${basename(kept)}`)
}

/** Moves files that lie where folders should be, and folders where files should be. @returns what is lost by it */
async function replaceOddPaths(dataDir: string, nowMs: number, done: string[]): Promise<FoundLoss[]> {
  const odd = findOddPaths(dataDir)
  for (const { path, fault } of odd) await setAside(path, nowMs, fault, done)
  return odd.flatMap(({ loss }) => loss ?? [])
}

/** Makes store.json anew where it is missing or damaged. */
async function repairFolderInfo(dataDir: string, nowMs: number, done: string[]): Promise<void> {
  const path = paths.folderInfoPath(dataDir)
  try {
    if (readFolderInfo(dataDir) !== null) return
  } catch (error) {
    if (!isDamagedInfo(dataDir, error)) throw error
    await setAside(path, nowMs, 'is damaged', done)
  }
  const info = await findLostInfo(dataDir, nowMs)
  if (info === null) return
  writeFolderInfo(dataDir, info)
  done.push(`${basename(path)} was made anew: this is the store ${info.logId}`)
}

/** Sets the state database aside where a part of it cannot be read: the next start makes it anew. */
async function repairState(dataDir: string, nowMs: number, done: string[]): Promise<void> {
  const fault = await readWholeState(dataDir)
  if (fault !== null) await setStateAside(dataDir, nowMs, fault, done)
}

async function setStateAside(dataDir: string, nowMs: number, fault: string, done: string[]): Promise<void> {
  await setAside(paths.statePath(dataDir), nowMs, fault, done)
  const log = paths.stateLogPath(dataDir)
  if (existsSync(log)) await rename(log, `${log}.${nowMs}.set-aside`)
  await syncPath(dataDir)
}

/** Opens the store, which makes a missing state anew. That it is older than the lake shows only then. */
async function openRepaired(options: StoreOptions, nowMs: number, done: string[]): Promise<Store> {
  try {
    return await openStore(options)
  } catch (error) {
    if (!isDamagedState(options.dataDir, error)) throw error
    await setStateAside(options.dataDir, nowMs, 'is older than the lake', done)
    return openStore(options)
  }
}
