// The file operations of the log and of the journal, behind an interface that tests implement with a simulated disk. Nothing is retried
// here, and every error is passed on.
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, rename, unlink } from 'node:fs/promises'
import { makeFolder, syncPath } from '../files.ts'

export interface DiskFile {
  /**
   * Writes behind what was written before, or at an offset; the next write without one goes on where the last of these ended.
   * Resolves to the number of bytes written, which is smaller than asked for when the disk is full.
   */
  write(bytes: Uint8Array, offset?: number): Promise<number>
  /** Makes the bytes and the length of the file durable (fdatasync). Its name needs `syncFolder`. */
  sync(): Promise<void>
  truncate(bytes: number): Promise<void>
  /** Reads from an offset. Resolves to the number of bytes read, which is smaller at the end of the file. */
  read(into: Uint8Array, offset: number): Promise<number>
  size(): Promise<number>
  close(): Promise<void>
}

export interface Disk {
  /** Creates a folder and its missing parents, durably. */
  makeFolder(folder: string): Promise<void>
  list(folder: string): Promise<string[]>
  /** Creates a file for writing. Rejects with EEXIST where one exists. */
  create(path: string): Promise<DiskFile>
  /** Like `create`, and each write is durable when it resolves. Where it rejects, writing or syncing has failed. */
  createSynced(path: string): Promise<DiskFile>
  /** Opens an existing file for reading. */
  open(path: string): Promise<DiskFile>
  /** Atomically replaces `to`, if it exists. */
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  /** Makes the file names in a folder durable. */
  syncFolder(folder: string): Promise<void>
}

class NodeFile implements DiskFile {
  readonly #handle: FileHandle

  constructor(handle: FileHandle) {
    this.#handle = handle
  }

  async write(bytes: Uint8Array, offset?: number): Promise<number> {
    return (await this.#handle.write(bytes, 0, bytes.length, offset)).bytesWritten
  }

  sync(): Promise<void> {
    return this.#handle.datasync()
  }

  truncate(bytes: number): Promise<void> {
    return this.#handle.truncate(bytes)
  }

  async read(into: Uint8Array, offset: number): Promise<number> {
    return (await this.#handle.read(into, 0, into.length, offset)).bytesRead
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** Syncs after each write. */
class SyncedNodeFile extends NodeFile {
  override async write(bytes: Uint8Array, offset?: number): Promise<number> {
    const written = await super.write(bytes, offset)
    await this.sync()
    return written
  }
}

/** With O_DSYNC the kernel syncs within the write: one trip through the threads that wait for the disk instead of two. Other
 *  systems than Linux lack it, or promise less. */
async function createSynced(path: string): Promise<DiskFile> {
  if (process.platform !== 'linux') return new SyncedNodeFile(await open(path, 'wx'))
  const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC } = constants
  return new NodeFile(await open(path, O_WRONLY | O_CREAT | O_EXCL | O_DSYNC))
}

/** The file system of this machine. */
export const nodeDisk: Disk = {
  makeFolder,
  list: (folder) => readdir(folder),
  create: async (path) => new NodeFile(await open(path, 'wx')),
  createSynced,
  open: async (path) => new NodeFile(await open(path, 'r')),
  rename,
  unlink,
  syncFolder: syncPath,
}
