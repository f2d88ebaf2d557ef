// In: positions of records. Out: the records, read from their files and checked. One at a time: a disk that hangs holds one
// thread of the pool that the process shares, and those who ask meanwhile are refused.
import { join } from 'node:path'
import { systemCode } from '../../../lib/error-text.ts'
import type { Disk } from '../disk.ts'
import { LogError } from '../errors.ts'
import { READS_WAITING_MAX } from '../limits.ts'
import type { CommitRecord, Position } from '../types.ts'
import { PREFIX_BYTES, payloadLengthAt, recordAt, rowsOf, segmentName } from './format.ts'

export class PositionReader {
  readonly #disk: Disk
  readonly #folder: string
  readonly #timeoutMs: number
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #isOverdue = false

  constructor(disk: Disk, folder: string, timeoutMs: number) {
    this.#disk = disk
    this.#folder = folder
    this.#timeoutMs = timeoutMs
  }

  /** Rejects with LogError: `segment_removed`, `damaged_record`, `disk_failed`, `disk_hanging`, `too_many_waiting`. */
  async read(position: Position): Promise<CommitRecord> {
    if (this.#waiting >= READS_WAITING_MAX)
      throw new LogError('too_many_waiting', `${this.#waiting} look-ups in the log wait for the disk`)
    this.#waiting++
    const result = this.#last.then(() => this.#readNow(position))
    this.#last = result.catch(() => undefined)
    return result.finally(() => this.#waiting--)
  }

  async #readNow(position: Position): Promise<CommitRecord> {
    if (this.#isOverdue) throw new LogError('disk_hanging', 'a look-up in the log takes too long')
    const { promise, resolve, reject } = Promise.withResolvers<CommitRecord>()
    const timer = setTimeout(() => {
      this.#isOverdue = true
      reject(new LogError('disk_hanging', `a look-up took more than ${this.#timeoutMs} ms`))
    }, this.#timeoutMs)
    void this.#recordAt(position)
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer)
        this.#isOverdue = false
      })
    return promise
  }

  async #recordAt(position: Position): Promise<CommitRecord> {
    const line = await this.#lineAt(position)
    const payloadLength = line.length < PREFIX_BYTES ? -1 : payloadLengthAt(line, 0)
    const isWhole = payloadLength !== -1 && PREFIX_BYTES + payloadLength <= line.length
    const head = isWhole ? recordAt(line, 0, payloadLength) : null
    if (head?.kind !== 'commit')
      throw new LogError(
        'damaged_record',
        `no record lies at byte ${position.offset} of ${segmentName(position.segment)}`,
      )
    const payload = line.subarray(PREFIX_BYTES, PREFIX_BYTES + payloadLength)
    return { lsn: head.lsn, knownAtMs: head.knownAt, position, payload, rows: () => rowsOf(payload) }
  }

  async #lineAt({ segment, offset, length }: Position): Promise<Buffer> {
    const path = join(this.#folder, segmentName(segment))
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
        throw new LogError('segment_removed', `${path} is not there`, { cause: error })
      throw new LogError('disk_failed', `${path} cannot be read: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }
}
