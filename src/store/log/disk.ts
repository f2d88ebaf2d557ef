// In: paths and bytes. Out: the few operations that the log does on a disk, asynchronous, and so small that a test can
// stand a simulated disk in their place. Never retries and never hides an error.
import { type FileHandle, open, readdir, rename, unlink } from 'node:fs/promises'
import { makeFolder, syncPath } from '../../lib/files.ts'

export interface DiskFile {
  /** Writes behind what was written so far. Answers how many bytes were taken: fewer where the disk is full. */
  write(bytes: Uint8Array): Promise<number>
  /** Resolves when the bytes and the length of the file are durable (fdatasync). Its name is not: see `syncFolder`. */
  sync(): Promise<void>
  truncate(bytes: number): Promise<void>
  /** Reads from an offset. Answers how many bytes there were: fewer at the end of the file. */
  read(into: Uint8Array, offset: number): Promise<number>
  size(): Promise<number>
  close(): Promise<void>
}

export interface Disk {
  /** Makes a folder and those above it, durably. */
  makeFolder(folder: string): Promise<void>
  list(folder: string): Promise<string[]>
  /** A new file for writing; rejects with EEXIST where there is one. */
  create(path: string): Promise<DiskFile>
  /** An existing file for reading. */
  open(path: string): Promise<DiskFile>
  /** Takes the place of `to`, if there is one, at once. */
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  /** Resolves when the names in a folder are durable. */
  syncFolder(folder: string): Promise<void>
}

class NodeFile implements DiskFile {
  readonly #handle: FileHandle

  constructor(handle: FileHandle) {
    this.#handle = handle
  }

  async write(bytes: Uint8Array): Promise<number> {
    return (await this.#handle.write(bytes)).bytesWritten
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

/** The file system of this machine. */
export const nodeDisk: Disk = {
  makeFolder,
  list: (folder) => readdir(folder),
  create: async (path) => new NodeFile(await open(path, 'wx')),
  open: async (path) => new NodeFile(await open(path, 'r')),
  rename,
  unlink,
  syncFolder: syncPath,
}
