// Reads single commits by their position. One read at a time: if the disk hangs, only one of the I/O threads that the process
// shares is held, and later reads are refused.

import { join } from 'node:path'
import pLimit from 'p-limit'
import type { Disk } from '../../../lib/disk/disk.ts'
import { errorMessage, systemCode } from '../../../lib/error-text.ts'
import { unlessLate } from '../../../lib/wait.ts'
import { LogError } from '../errors.ts'
import { READS_QUEUED_MAX } from '../limits.ts'
import type { CommitRecord, Position } from '../types.ts'
import { commitRecord, decodeLine, segmentNames } from './format.ts'

export class PositionReader {
  readonly #disk: Disk
  readonly #folder: string
  readonly #timeoutMs: number
  readonly #turns = pLimit(1)
  #isOverdue = false

  constructor(disk: Disk, folder: string, timeoutMs: number) {
    this.#disk = disk
    this.#folder = folder
    this.#timeoutMs = timeoutMs
  }

  /** Rejects with LogError: `segment_removed`, `damaged_record`, `disk_failed`, `disk_hanging`, `too_many_waiting`. */
  async read(position: Position): Promise<CommitRecord> {
    const reads = this.#turns.activeCount + this.#turns.pendingCount
    if (reads >= READS_QUEUED_MAX)
      throw new LogError('too_many_waiting', `the log's read queue is full (${reads} reads)`)
    return this.#turns(() => this.#readNow(position))
  }

  async #readNow(position: Position): Promise<CommitRecord> {
    if (this.#isOverdue) throw new LogError('disk_hanging', 'a read of the log hangs')
    const read = this.#readCommit(position).finally(() => {
      this.#isOverdue = false
    })
    return unlessLate(this.#timeoutMs, read, () => {
      this.#isOverdue = true
      throw new LogError('disk_hanging', `a read of the log took more than ${this.#timeoutMs} ms`)
    })
  }

  async #readCommit(position: Position): Promise<CommitRecord> {
    const line = await this.#readLine(position)
    const head = decodeLine(line)?.head
    if (head?.kind !== 'entries')
      throw new LogError(
        'damaged_record',
        `there is no valid commit at byte ${position.offset} of ${segmentNames.nameOf(position.segment)}`,
      )
    return commitRecord(head, position, line)
  }

  async #readLine({ segment, offset, length }: Position): Promise<Buffer> {
    const path = join(this.#folder, segmentNames.nameOf(segment))
    try {
      const file = await this.#disk.open(path)
      try {
        const line = Buffer.allocUnsafe(length)
        return line.subarray(0, await file.read(line, offset))
      } finally {
        await file.close().catch(() => undefined)
      }
    } catch (error) {
      if (systemCode(error) === 'ENOENT')
        throw new LogError('segment_removed', `${path} does not exist`, { cause: error })
      throw new LogError('disk_failed', `${path} cannot be read: ${errorMessage(error)}`, { cause: error })
    }
  }
}
