// Makes files and folders durable. Syncing a file makes its content durable, syncing a folder the names in it.
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { mkdir, open, rename, writeFile } from 'node:fs/promises'
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

/** Creates a folder and its missing parents. Resolves when their names are durable. */
export async function makeFolder(path: string): Promise<void> {
  const topmost = (await mkdir(path, { recursive: true })) ?? unsynced.get(path)
  if (topmost === undefined) return
  unsynced.set(path, topmost)
  for (let made = path; made.length >= topmost.length; made = dirname(made)) await syncPath(dirname(made))
  unsynced.delete(path)
}
