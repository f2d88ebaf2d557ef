// How far a numbered sequence got that lies in files of a folder: a small file beside that folder. Without it an end that was deleted or
// cut off looks like one that was never written.
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { Disk, DiskFile } from './disk.ts'
import { createWhole, writeAll } from './whole-files.ts'

/** Within one sector, so that no power cut leaves a part of it. */
const BYTES = 256
/** A write takes some 60 µs of the processor: after so many at once there is one in each interval. */
const WRITES_AT_ONCE = 64
const WRITE_EVERY_MS = 10

function encode(owner: string, reached: number): Buffer {
  const text = JSON.stringify({ of: owner, reached })
  const line = JSON.stringify({ of: owner, reached, crc32: crc32(text) })
  return Buffer.from(`${line.padEnd(BYTES - 1)}\n`)
}

/**
 * The number up to which a process of this owner is known to have been durable.
 * @param owner identity of the sequence: a file of another one says nothing
 * @returns 0 where there is no file, or none that can be read
 */
export async function readHighWaterMark(disk: Disk, path: string, owner: string): Promise<number> {
  try {
    const file = await disk.open(path)
    try {
      const bytes = Buffer.alloc(BYTES + 1)
      const length = await file.read(bytes, 0)
      const { reached } = JSON.parse(bytes.toString('utf8', 0, length))
      const isWhole =
        Number.isSafeInteger(reached) && encode(owner, reached).equals(bytes.subarray(0, length))
      return isWhole ? reached : 0
    } finally {
      await file.close()
    }
  } catch {
    return 0
  }
}

/**
 * Notes what is durable already, without syncing: the file may tell less than there is, never more. A kill of the process leaves all
 * that was noted, but for the last WRITE_EVERY_MS of a time of many notes; a power cut what the system wrote by then (Linux: within
 * 30 s). Where the disk refuses, the file stays behind.
 */
export class HighWaterMark {
  readonly #disk: Disk
  readonly #path: string
  readonly #owner: string
  #reached = 0
  #noted = 0
  #file: DiskFile | null = null
  #writing: Promise<void> | null = null
  /** When the next write is due, if there are many, on the monotonic clock. */
  #dueMs = 0
  #isClosed = false

  /** @param owner identity of the sequence: at most 64 letters, digits, `_` or `-` */
  constructor(disk: Disk, path: string, owner: string) {
    this.#disk = disk
    this.#path = path
    this.#owner = owner
  }

  /** Everything up to this number is durable. Never waits and never throws; one write at a time, the newest number last. */
  note(reached: number): void {
    if (reached <= this.#reached || this.#isClosed) return
    this.#reached = reached
    this.#writing ??= this.#write()
  }

  /** Waits for the write that is running. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#writing
    await this.#file?.close().catch(() => undefined)
  }

  async #write(): Promise<void> {
    try {
      while (this.#noted < this.#reached) {
        await this.#untilDue()
        const reached = this.#reached
        const bytes = encode(this.#owner, reached)
        if (this.#file === null) this.#file = await this.#create(bytes)
        else await writeAll(this.#file, bytes, 0)
        this.#noted = reached
      }
    } catch {
      // Made anew with the next number.
      await this.#file?.close().catch(() => undefined)
      this.#file = null
    }
    // No await behind the last look: what is noted from now on begins a write of its own.
    this.#writing = null
  }

  async #untilDue(): Promise<void> {
    const nowMs = performance.now()
    this.#dueMs = Math.max(this.#dueMs, nowMs - WRITES_AT_ONCE * WRITE_EVERY_MS) + WRITE_EVERY_MS
    if (this.#dueMs > nowMs) await sleep(this.#dueMs - nowMs, undefined, { ref: false })
  }

  /** Takes the place of what an earlier process left, which is there until then. */
  #create(bytes: Buffer): Promise<DiskFile> {
    const path = this.#path
    return createWhole(this.#disk, `${path}.tmp`, path, 'create', async (file) => {
      await writeAll(file, bytes)
      await file.sync()
    })
  }
}
