// Reads the batches of one segment in order and decides what is missing: events that are known to have been durable are damage. Others
// were being written when a process ended; a disk writes pages in any order, so nothing behind such a gap counts.
import type { Disk } from '../../lib/disk/disk.ts'
import { systemCode } from '../../lib/error-text.ts'
import { type BatchHead, decodeBatchHead } from '../batch/batch-decoder.ts'
import type { JournalDamage } from '../types.ts'
import { isBatch, readEnd } from './format.ts'
import { type ScannedFrame, scanFrames } from './frame-scan.ts'
import { type PlannedSegment, segmentRemovedError } from './plan.ts'

export interface FoundBatch extends BatchHead {
  /** A view, valid until the next batch is asked for. */
  frame: Buffer
}

export interface SegmentEnding {
  /** The number that follows the last event of this segment, lost ones included. */
  nextEventNo: number
  /** The journal ends in this segment: what follows was never durable and is not whole. */
  isCutOff: boolean
}

async function* scanSegment(disk: Disk, { path, bytes }: PlannedSegment): AsyncGenerator<ScannedFrame, void> {
  let file: Awaited<ReturnType<Disk['open']>>
  try {
    file = await disk.open(path)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw segmentRemovedError(path)
    return yield { kind: null, offset: 0, length: bytes, frame: Buffer.alloc(0), error }
  }
  try {
    yield* scanFrames(file)
  } finally {
    await file.close()
  }
}

/** The last event that the frames of a segment show to have been durable; 0 where they show none. */
export async function findProven(disk: Disk, segment: PlannedSegment): Promise<number> {
  let provenEventNo = 0
  for await (const { kind, frame } of scanSegment(disk, segment)) {
    const shown = isBatch(kind) ? decodeBatchHead(frame)?.syncedEventNo : null
    const ending = kind === 'end' ? readEnd(frame)?.lastEventNo : null
    provenEventNo = Math.max(provenEventNo, shown ?? 0, ending ?? 0)
  }
  return provenEventNo
}

/** Follows the frames of a segment: which batches are valid, and what is missing between them. */
class SegmentCheck {
  /** The number that the next batch should begin with. */
  nextEventNo: number
  isCutOff = false
  readonly #segment: PlannedSegment
  readonly #provenEventNo: number
  readonly #onDamage: (damage: JournalDamage) => void
  /** Bytes since the last valid batch that hold none. */
  #skipped: { from: number; to: number } | null = null
  #isUnreadable = false

  constructor({ segment, provenEventNo, onDamage }: SegmentReadOptions) {
    this.nextEventNo = segment.firstEventNo
    this.#segment = segment
    this.#provenEventNo = provenEventNo
    this.#onDamage = onDamage
  }

  /** Takes the next item of the scan. @returns the valid batch in it, if there is one */
  check({ kind, offset, length, frame, error }: ScannedFrame): BatchHead | null {
    const head = isBatch(kind) ? decodeBatchHead(frame) : null
    if (head !== null) return this.#checkBatch(head, offset, length)
    this.#isUnreadable = error !== undefined
    const isInPlace = (kind === 'end' && readEnd(frame) !== null) || (kind === 'header' && offset === 0)
    if (!isInPlace) this.#skip(offset, length)
    return null
  }

  #checkBatch(head: BatchHead, offset: number, length: number): BatchHead | null {
    const { firstEventNo, lastEventNo } = head
    const { cutoffEventNo } = this.#segment
    // Void: a later segment has these events.
    if (firstEventNo > cutoffEventNo) return null
    if (firstEventNo < this.nextEventNo || lastEventNo > cutoffEventNo) {
      this.#skip(offset, length)
      return null
    }
    const isBehindGap = firstEventNo > this.nextEventNo
    if (isBehindGap && this.#provenEventNo < firstEventNo - 1) this.isCutOff = true
    if (this.isCutOff) return null
    if (isBehindGap || this.#skipped !== null) this.#report(firstEventNo - 1, offset)
    this.#skipped = null
    this.nextEventNo = lastEventNo + 1
    return head
  }

  /** To be called after the last item. */
  finish(): void {
    const lastEventNo = Math.min(this.#provenEventNo, this.#segment.cutoffEventNo)
    if (lastEventNo >= this.nextEventNo || this.#isUnreadable) this.#report(lastEventNo, this.#segment.bytes)
    this.nextEventNo = Math.max(this.nextEventNo, lastEventNo + 1)
    // A later segment goes on behind a gap.
    if (this.nextEventNo <= this.#segment.cutoffEventNo && this.#segment.cutoffEventNo !== Infinity)
      this.isCutOff = true
  }

  #skip(offset: number, length: number): void {
    this.#skipped = { from: this.#skipped?.from ?? offset, to: offset + length }
  }

  #report(throughEventNo: number, atByte: number): void {
    const { from: fromByte, to: toByte } = this.#skipped ?? { from: atByte, to: atByte }
    const missing = this.nextEventNo <= throughEventNo ? { from: this.nextEventNo, to: throughEventNo } : null
    const kind = this.#isUnreadable ? 'unreadable' : toByte > fromByte ? 'invalid_bytes' : 'missing'
    this.#onDamage({ kind, file: this.#segment.name, fromByte, toByte, missing })
  }
}

export interface SegmentReadOptions {
  segment: PlannedSegment
  /** Events up to this one are known to have been durable. */
  provenEventNo: number
  onDamage(damage: JournalDamage): void
}

/** Yields the valid batches of a segment. */
export async function* readSegment(
  disk: Disk,
  options: SegmentReadOptions,
): AsyncGenerator<FoundBatch, SegmentEnding> {
  const check = new SegmentCheck(options)
  for await (const item of scanSegment(disk, options.segment)) {
    const head = check.check(item)
    if (head !== null) yield { ...head, frame: item.frame }
    if (check.isCutOff) break
  }
  check.finish()
  return { nextEventNo: check.nextEventNo, isCutOff: check.isCutOff }
}
