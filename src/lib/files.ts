// In: paths of files and folders. Out: the same, durable: a sync of a file makes its content last, one of a folder the names
// in it. Never reads or changes what lies there.
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Makes the content of a file, or the names in a folder, durable. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The same, at once. */
export function syncPathNow(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Folders that were made and whose names are not synced, with the topmost that was made with each: whoever wants one after a
 *  sync has failed finds it there, and must sync it all the same. */
const unsynced = new Map<string, string>()

/** Makes a folder and those above it, where they are not there; their names are durable once this resolves. */
export async function makeFolder(path: string): Promise<void> {
  const topmost = (await mkdir(path, { recursive: true })) ?? unsynced.get(path)
  if (topmost === undefined) return
  unsynced.set(path, topmost)
  for (let made = path; made.length >= topmost.length; made = dirname(made)) await syncPath(dirname(made))
  unsynced.delete(path)
}
