// Whether the disk has room for another commit, in a folder that is this process's. Both are asked at an interval, so that a hanging
// disk delays no commit.

import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { MEGABYTE } from '../../lib/bytes.ts'
import { unavailable } from '../errors.ts'
import { DISK_LOOK_EVERY_MS, RECORDING_RESERVE_FACTOR } from '../limits.ts'
import type { FolderLock } from './folder-lock.ts'

/** Free space needed to flush the log to the lake and the state, as a multiple of its bytes. */
const FLUSH_FACTOR = 2

/** Throws `unavailable` unless `bytes` can be written to the disk of `folder` without using the reserve; `reserveMb` 0: no check. */
export function requireSpace(folder: string, reserveMb: number, bytes: number): void {
  if (reserveMb === 0) return
  const { bavail, bsize } = statfsSync(folder)
  const [freeBytes, neededBytes] = [bavail * bsize, reserveMb * MEGABYTE + bytes]
  if (freeBytes >= neededBytes) return
  const [freeMb, neededMb] = [freeBytes, neededBytes].map((each) => Math.round(each / MEGABYTE))
  throw unavailable(`the disk has ${freeMb} MB left of the ${neededMb} MB that are needed`)
}

export class DiskSpace {
  readonly #folder: string
  readonly #lock: FolderLock
  readonly #reserveBytes: number
  readonly #timer: NodeJS.Timeout
  #freeBytes: number | null = null
  #isRefreshing = false
  /** Why no commit and no event may be written, however much room there is; null: the folder is locked. */
  unlocked: string | null

  /** `reserveMb` is kept free for flushes and for other programs; 0: commits go on until the disk is full. */
  constructor(folder: string, reserveMb: number, lock: FolderLock) {
    this.#folder = folder
    this.#lock = lock
    this.unlocked = lock.missing()
    this.#reserveBytes = reserveMb * MEGABYTE
    this.#timer = setInterval(() => void this.refresh(), DISK_LOOK_EVERY_MS)
    this.#timer.unref()
  }

  /** As last read; null: not known. */
  get freeBytes(): number | null {
    return this.#freeBytes
  }

  mayWrite(unflushedBytes: number): boolean {
    if (this.unlocked !== null) return false
    if (this.#reserveBytes === 0 || this.#freeBytes === null) return true
    return this.#freeBytes >= this.#reserveBytes + FLUSH_FACTOR * unflushedBytes
  }

  /**
   * Whether market events may be recorded, with so many bytes of them that the lake does not have. It ends long before commits.
   * @param usesReserve the last of this run, for which the reserve may be used
   */
  mayRecord(unflushedBytes: number, usesReserve = false): boolean {
    if (this.unlocked !== null) return false
    if (usesReserve || this.#reserveBytes === 0 || this.#freeBytes === null) return true
    return this.#freeBytes >= RECORDING_RESERVE_FACTOR * this.#reserveBytes + FLUSH_FACTOR * unflushedBytes
  }

  /** Throws as `requireSpace` does, by what is free now. */
  require(bytes: number): void {
    requireSpace(this.#folder, this.#reserveBytes / MEGABYTE, bytes)
  }

  /** Does not reject: where the free space cannot be read, a write fails or succeeds by itself. */
  async refresh(): Promise<void> {
    if (this.#isRefreshing) return
    this.#isRefreshing = true
    try {
      const { bavail, bsize } = await statfs(this.#folder)
      this.#freeBytes = bavail * bsize
      this.unlocked = this.#lock.missing()
    } catch {
      this.#freeBytes = null
    } finally {
      this.#isRefreshing = false
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
