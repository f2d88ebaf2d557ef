// Reads the batches of one segment in order and decides what is missing: what a later segment, a later batch or the end frame shows
// to have been there is damage; the rest at the end of the newest segment was being written when its process ended.
import type { Disk } from '../../lib/disk.ts'
import { systemCode } from '../../lib/error-text.ts'
import { type BatchHead, decodeBatchHead } from '../batch/batch-decoder.ts'
import type { JournalDamage } from '../types.ts'
import { readEnd } from './format.ts'
import { type ScannedFrame, scanFrames } from './frame-scan.ts'
import { type PlannedSegment, segmentRemovedError } from './plan.ts'

export interface FoundBatch extends BatchHead {
  /** A view, valid until the next batch is asked for. */
  frame: Buffer
}

export interface SegmentEnding {
  /** The number that follows the last event of this segment, lost ones included. */
  nextEventNo: number
  /** It has an end frame, and everything before it is whole. */
  isSealed: boolean
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

/** The last event that a frame of the segment shows to have been durable. */
async function findProven(disk: Disk, segment: PlannedSegment): Promise<number> {
  let provenEventNo = segment.firstEventNo - 1
  for await (const { kind, frame } of scanSegment(disk, segment)) {
    const shown = kind === 'batch' ? decodeBatchHead(frame)?.syncedEventNo : null
    const ending = kind === 'end' ? readEnd(frame)?.lastEventNo : null
    provenEventNo = Math.max(provenEventNo, shown ?? 0, ending ?? 0)
  }
  return provenEventNo
}

/** Follows the frames of a segment: which batches are valid, and what is missing between them. */
class SegmentCheck {
  /** The number that the next batch should begin with. */
  nextEventNo: number
  isSealed = false
  /** Behind a gap in what may never have been durable, nothing counts: a disk writes pages in any order. */
  isCutOff = false
  readonly #segment: PlannedSegment
  readonly #provenEventNo: number
  readonly #onDamage: (damage: JournalDamage) => void
  /** Bytes since the last valid batch that hold none. */
  #skipped: { from: number; to: number } | null = null
  #isUnreadable = false

  constructor(segment: PlannedSegment, provenEventNo: number, onDamage: (damage: JournalDamage) => void) {
    this.nextEventNo = segment.firstEventNo
    this.#segment = segment
    this.#provenEventNo = provenEventNo
    this.#onDamage = onDamage
  }

  /** Takes the next item of the scan. @returns the valid batch in it, if there is one */
  check({ kind, offset, length, frame, error }: ScannedFrame): BatchHead | null {
    const head = kind === 'batch' ? decodeBatchHead(frame) : null
    if (head !== null) return this.#checkBatch(head, offset, length)
    this.#isUnreadable = error !== undefined
    if (kind === 'end') this.isSealed = this.#skipped === null && readEnd(frame) !== null
    else if (kind !== 'header' || offset > 0) this.#skip(offset, length)
    return null
  }

  #checkBatch(head: BatchHead, offset: number, length: number): BatchHead | null {
    const { firstEventNo, lastEventNo } = head
    // Void: a later segment has these events.
    if (firstEventNo > this.#segment.cutoffEventNo) return null
    if (firstEventNo < this.nextEventNo || lastEventNo > this.#segment.cutoffEventNo) {
      this.#skip(offset, length)
      return null
    }
    const isBehindGap = firstEventNo > this.nextEventNo
    if (isBehindGap && this.#provenEventNo < this.nextEventNo) this.isCutOff = true
    if (this.isCutOff) return null
    if (isBehindGap || this.#skipped !== null) this.#report(firstEventNo - 1, offset)
    this.#skipped = null
    this.isSealed = false
    this.nextEventNo = lastEventNo + 1
    return head
  }

  /** To be called after the last item. */
  finish(): void {
    const isLost = this.#provenEventNo >= this.nextEventNo
    if (!isLost && !this.#isUnreadable) return
    this.#report(this.#provenEventNo, this.#segment.bytes)
    this.nextEventNo = Math.max(this.nextEventNo, this.#provenEventNo + 1)
    this.isSealed = false
  }

  #skip(offset: number, length: number): void {
    this.#skipped = { from: this.#skipped?.from ?? offset, to: offset + length }
    this.isSealed = false
  }

  #report(throughEventNo: number, atByte: number): void {
    const { from: fromByte, to: toByte } = this.#skipped ?? { from: atByte, to: atByte }
    const missing = this.nextEventNo <= throughEventNo ? { from: this.nextEventNo, to: throughEventNo } : null
    const kind = this.#isUnreadable ? 'unreadable' : toByte > fromByte ? 'invalid_bytes' : 'missing'
    this.#onDamage({ kind, file: this.#segment.name, fromByte, toByte, missing })
  }
}

export interface SegmentReadOptions {
  disk: Disk
  segment: PlannedSegment
  /** Events up to this one are known to have been durable. */
  provenEventNo: number
  onDamage(damage: JournalDamage): void
}

/** Yields the valid batches of a segment. */
export async function* readSegment({
  disk,
  segment,
  provenEventNo,
  onDamage,
}: SegmentReadOptions): AsyncGenerator<FoundBatch, SegmentEnding> {
  const { cutoffEventNo } = segment
  const isNewest = cutoffEventNo === Infinity
  const proven = isNewest ? Math.max(provenEventNo, await findProven(disk, segment)) : cutoffEventNo
  const check = new SegmentCheck(segment, proven, onDamage)
  for await (const item of scanSegment(disk, segment)) {
    const head = check.check(item)
    if (head !== null) yield { ...head, frame: item.frame }
    if (check.isCutOff) break
  }
  check.finish()
  return { nextEventNo: check.nextEventNo, isSealed: check.isSealed }
}
