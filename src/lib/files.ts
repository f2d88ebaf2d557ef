// Makes files and folders durable. Syncing a file makes its content durable, syncing a folder the names in it.
import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { mkdir, open, rename, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Syncs a file or a folder. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** As `syncPath`, but blocks until it is done. */
export function syncPathNow(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Gives a file a new content, durably: readers find the old one or the new one, whole. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`
  await writeFile(temporary, text)
  await syncPath(temporary)
  await rename(temporary, path)
  await syncPath(dirname(path))
}

/** Folders that were created but not synced yet, each with the topmost folder created along with it. When a sync fails, the next
 *  call finds the folder on the disk and must still sync it. */
const unsynced = new Map<string, string>()

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/**
 * Creates a folder and its missing parents, one after another: `mkdir` with `recursive` never returns in a place that takes no folder
 * and says ENOENT, such as below /proc, and says ENOENT where a disk is read-only. @returns the topmost one it has created
 */
export function makeFolderNow(path: string): string | undefined {
  if (isFolder(path)) return undefined
  const parent = dirname(path)
  const topmost = parent === path ? undefined : makeFolderNow(parent)
  try {
    mkdirSync(path)
    return topmost ?? path
  } catch (error) {
    // Another process was faster.
    if (isFolder(path)) return topmost
    throw error
  }
}

/** Creates a folder and its missing parents. Resolves when their names are durable. */
export async function makeFolder(path: string): Promise<void> {
  const topmost = (await createFolder(path)) ?? unsynced.get(path)
  if (topmost === undefined) return
  unsynced.set(path, topmost)
  for (let made = path; made.length >= topmost.length; made = dirname(made)) await syncPath(dirname(made))
  unsynced.delete(path)
}

/** As `makeFolderNow`, without blocking. */
async function createFolder(path: string): Promise<string | undefined> {
  const isThere = async (): Promise<boolean> => (await stat(path).catch(() => null))?.isDirectory() ?? false
  if (await isThere()) return undefined
  const parent = dirname(path)
  const topmost = parent === path ? undefined : await createFolder(parent)
  try {
    await mkdir(path)
    return topmost ?? path
  } catch (error) {
    if (await isThere()) return topmost
    throw error
  }
}
