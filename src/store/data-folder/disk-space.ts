// In: a folder. Out: whether its disk has room for another commit. Looks now and then, so that a disk that hangs delays nobody.
import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { unavailable } from '../errors.ts'
import { DISK_LOOK_EVERY_MS } from '../limits.ts'

const MEGABYTE = 1_048_576
/** A commit is written again as Parquet, beside the state: so many times its bytes must be free besides. */
const FLUSH_ROOM = 2

/** Throws `unavailable` unless `bytes` can be written to the disk of `folder` and the reserve is left; 0: there is none. */
export function requireSpace(folder: string, reserveMb: number, bytes: number): void {
  if (reserveMb === 0) return
  const { bavail, bsize } = statfsSync(folder)
  const [free, needed] = [bavail * bsize, reserveMb * MEGABYTE + bytes]
  if (free >= needed) return
  const [freeMb, neededMb] = [free, needed].map((each) => Math.round(each / MEGABYTE))
  throw unavailable(`the disk has ${freeMb} MB left of the ${neededMb} MB that are needed`)
}

export class DiskSpace {
  readonly #folder: string
  readonly #reserveBytes: number
  readonly #timer: NodeJS.Timeout
  #freeBytes: number | null = null
  #isRefreshing = false

  /** `reserveMb`: what is left to the rest of the machine and to flushes; 0: nothing, commits go on until the disk is full. */
  constructor(folder: string, reserveMb: number) {
    this.#folder = folder
    this.#reserveBytes = reserveMb * MEGABYTE
    this.#timer = setInterval(() => void this.refresh(), DISK_LOOK_EVERY_MS)
    this.#timer.unref()
  }

  /** As of the last look; null: not known. */
  get freeBytes(): number | null {
    return this.#freeBytes
  }

  mayWrite(unflushedBytes: number): boolean {
    if (this.#reserveBytes === 0 || this.#freeBytes === null) return true
    return this.#freeBytes >= this.#reserveBytes + FLUSH_ROOM * unflushedBytes
  }

  /** Never rejects: where the disk does not tell, the write itself does. */
  async refresh(): Promise<void> {
    if (this.#isRefreshing) return
    this.#isRefreshing = true
    try {
      const { bavail, bsize } = await statfs(this.#folder)
      this.#freeBytes = bavail * bsize
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
