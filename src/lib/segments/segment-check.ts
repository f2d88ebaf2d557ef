// Decides which entries of a segment are valid, and what is damage or a torn tail.
import type { ScanItem } from './scan.ts'
import {
  type DamageKind,
  damageOf,
  type EntriesHead,
  type HeaderHead,
  numberRange,
  type PlannedSegment,
  type SegmentDamage,
} from './types.ts'

/** Invalid bytes at the end of a segment, from a write that was never durable for certain. Not damage. */
export interface TornTail {
  file: string
  fromByte: number
  toByte: number
}

export interface SegmentCheckOptions {
  segment: PlannedSegment
  /** Entries up to this one are known to have been durable. */
  provenNo: number
  /** As the format says. */
  hasDurableHeader: boolean
  onDamage(damage: SegmentDamage): void
  onTornTail?(tail: TornTail): void
}

/**
 * Every frame says up to which number entries were durable when it was written; `provenNo` is the highest of these. Entries up to it are
 * in the file, or damaged. Those after it are not proven: they are valid up to the first one that is missing, and the rest is a torn
 * tail, because a disk writes pages in any order. But a frame that was written whole and has changed since is damage: no power cut does that.
 */
export class SegmentCheck {
  /** The number that should come next: that behind the last entry, lost ones included. */
  nextNo: number
  /** The last entry that this segment should have: proven to have been durable, or changed since it was written. */
  provenNo: number
  /** Where the last valid frame ends. */
  validBytes = 0
  /** The segment ends with an end frame: nothing in it is in doubt. */
  isSealed = false
  /** An entry that is not proven was missing: those that are not proven either do not count from there on. */
  isCutOff = false
  readonly #segment: PlannedSegment
  readonly #onDamage: (damage: SegmentDamage) => void
  readonly #onTornTail: (tail: TornTail) => void
  /** The bytes after the last valid frame. `isVoid`: they hold void entries only. */
  #skipped: { from: number; to: number; isVoid: boolean } | null = null
  #isUnreadable = false
  #isHeaderMissing: boolean

  constructor({ segment, provenNo, hasDurableHeader, onDamage, onTornTail }: SegmentCheckOptions) {
    this.nextNo = segment.firstNo
    this.#segment = segment
    this.provenNo = Math.min(provenNo, segment.cutoffNo)
    this.#onDamage = onDamage
    this.#onTornTail = onTornTail ?? (() => undefined)
    this.#isHeaderMissing = hasDurableHeader && segment.header === null
  }

  /** How many bytes at the end of the segment are not valid. */
  get skippedBytes(): number {
    return this.#skipped === null ? 0 : this.#skipped.to - this.#skipped.from
  }

  /** To be called for each item of the segment's scan, in order. @returns the entries if they are valid, else null */
  check<Entries extends EntriesHead>({
    head,
    offset,
    length,
    isChanged = false,
    error,
  }: ScanItem<HeaderHead, Entries>): Entries | null {
    const end = offset + length
    if (error !== undefined) this.#isUnreadable = true
    if (head?.kind === 'entries') return this.#checkEntries(head, offset, end) ? head : null
    if (head?.kind === 'header' && offset === 0) this.validBytes = end
    else if (head?.kind === 'end') this.isSealed = this.#skipped === null
    else {
      // How many entries the bytes behind the first such frame were, nobody can tell.
      if (isChanged && this.#skipped === null && this.nextNo <= this.#segment.cutoffNo)
        this.provenNo = Math.max(this.provenNo, this.nextNo)
      this.#skip(offset, error === undefined ? end : this.#segment.bytes)
    }
    return null
  }

  /** To be called after the last item. */
  finish(): void {
    const missing = numberRange(this.nextNo, this.provenNo)
    const { name, bytes } = this.#segment
    const { from, to } = this.#skipped ?? { from: bytes, to: bytes }
    if (missing !== null && this.isSealed) {
      // It is whole: what is missing was in files behind it, which are gone.
      this.#onDamage(damageOf('missing', null, missing))
    } else if (missing !== null || this.#isUnreadable || this.#isHeaderMissing) {
      this.#reportDamage(this.#isUnreadable ? 'unreadable' : 'missing', from, to, this.provenNo)
      this.isSealed = false
    } else if (this.#skipped?.isVoid === false) {
      this.#onTornTail({ file: name, fromByte: from, toByte: to })
    }
    this.nextNo = Math.max(this.nextNo, this.provenNo + 1)
  }

  #checkEntries({ firstNo, lastNo }: EntriesHead, offset: number, end: number): boolean {
    const { name, cutoffNo } = this.#segment
    const isVoid = firstNo > cutoffNo
    if (firstNo < this.nextNo || (lastNo > cutoffNo && !isVoid)) {
      this.#onDamage({ kind: 'out_of_order', file: name, fromByte: offset, toByte: end, missing: null })
      return false
    }
    // Only a gap behind what is proven ends it: proven entries that are missing are damage.
    if (!isVoid && firstNo > Math.max(this.nextNo, this.provenNo + 1)) this.isCutOff = true
    if (isVoid || (this.isCutOff && firstNo > this.provenNo)) {
      this.#skip(offset, end, isVoid)
      return false
    }
    if (this.#skipped !== null || firstNo > this.nextNo) {
      const { from, to } = this.#skipped ?? { from: offset, to: offset }
      this.#reportDamage('missing', from, to, firstNo - 1)
    }
    this.#skipped = null
    this.nextNo = lastNo + 1
    this.validBytes = end
    this.isSealed = false
    return true
  }

  #skip(from: number, to: number, isVoid = false): void {
    this.#skipped = {
      from: this.#skipped?.from ?? from,
      to,
      isVoid: isVoid && (this.#skipped?.isVoid ?? true),
    }
    this.isSealed = false
  }

  /** Reports bytes as damage, and the entries up to `lastNo` as missing. */
  #reportDamage(kind: DamageKind, fromByte: number, toByte: number, lastNo: number): void {
    const kindOfBytes = this.#isHeaderMissing ? 'invalid_header' : toByte > fromByte ? 'invalid_bytes' : kind
    this.#onDamage({
      kind: kind === 'unreadable' ? kind : kindOfBytes,
      file: this.#segment.name,
      fromByte,
      toByte,
      missing: numberRange(this.nextNo, lastNo),
    })
    this.#isHeaderMissing = false
  }
}
