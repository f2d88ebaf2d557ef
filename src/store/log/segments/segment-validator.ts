// Decides which commits of a segment are valid, and what is damage or a torn tail.
import type { PlannedSegment } from '../read-plan.ts'
import { addDamage, addEntry, lsnRange } from '../read-report.ts'
import type { DamageKind, ReadReport, SegmentInfo } from '../types.ts'
import { type CommitHead, RECORD_BYTES_MIN } from './format.ts'
import type { ScanItem } from './scan.ts'

/**
 * Every record says up to which LSN commits were durable when it was written; `provenLsn` is the highest of these. Commits up to it
 * are in the file, or damaged. Commits after it belong to one group whose sync is not proven: they are valid up to the first one
 * that is missing, and the rest is a torn tail, because a disk writes pages in any order.
 */
export class SegmentValidator {
  readonly info: SegmentInfo
  /** Where the last valid record ends. */
  validBytes = 0
  /** The segment ends with an end record: nothing in it is in doubt. */
  isSealed = false
  readonly #segment: PlannedSegment
  readonly #provenLsn: number
  readonly #report: ReadReport
  #expectedLsn: number
  /** The bytes after the last valid record. `isVoid`: they hold void commits only. */
  #skipped: { from: number; to: number; isVoid: boolean } | null = null
  /** A commit was void, or one of the unproven group was missing: unproven commits from there on do not count. */
  #isCutOff = false
  #isUnreadable = false
  #isHeaderMissing: boolean
  #isContradicted = false

  constructor(segment: PlannedSegment, provenLsn: number, report: ReadReport) {
    const { firstLsn, bytes } = segment
    this.#segment = segment
    this.#provenLsn = provenLsn
    this.#report = report
    this.#expectedLsn = firstLsn
    this.#isHeaderMissing = !segment.hasHeader
    this.info = { firstLsn, lastLsn: firstLsn - 1, commits: 0, bytes }
  }

  /** To be called for each item of the segment's scan, in order. @returns the commit if it is valid, else null */
  check({ head, offset, length, error }: ScanItem): CommitHead | null {
    const end = offset + length
    if (error !== undefined) this.#isUnreadable = true
    if (head?.kind === 'commit') return this.#checkCommit(head, offset, end) ? head : null
    if (head?.kind === 'header' && offset === 0) this.validBytes = end
    else if (head?.kind === 'end') this.isSealed = this.#skipped === null
    else this.#skip(offset, error === undefined ? end : this.#segment.bytes)
    return null
  }

  /** To be called after the last item. */
  finish(): void {
    const missing = lsnRange(this.#expectedLsn, this.#provenLsn)
    const report = this.#report
    if (missing !== null && this.isSealed) {
      // It is whole: what is missing was in files behind it, which are gone.
      addDamage(report, { kind: 'missing', file: null, fromByte: 0, toByte: 0, missing })
    } else if (missing !== null || this.#isUnreadable || this.#isHeaderMissing) {
      const { bytes } = this.#segment
      const { from, to } = this.#skipped ?? { from: bytes, to: bytes }
      this.#reportDamage(this.#isUnreadable ? 'unreadable' : 'missing', from, to)
      this.isSealed = false
    } else if (this.#skipped?.isVoid === false) {
      addEntry(report.tornTails, {
        file: this.#segment.name,
        fromByte: this.#skipped.from,
        toByte: this.#skipped.to,
      })
    }
    const skippedBytes = this.#skipped === null ? 0 : this.#skipped.to - this.#skipped.from
    const possibleLsn =
      Math.max(this.#expectedLsn - 1, missing?.to ?? 0) + Math.ceil(skippedBytes / RECORD_BYTES_MIN)
    report.highestLsn = Math.max(report.highestLsn, possibleLsn)
  }

  #checkCommit({ lsn, afterLsn, knownAt }: CommitHead, offset: number, end: number): boolean {
    const report = this.#report
    report.highestLsn = Math.max(report.highestLsn, lsn)
    report.lastKnownAtMs = Math.max(report.lastKnownAtMs, knownAt)
    if (afterLsn > this.#segment.cutoffLsn) this.#reportContradiction(offset, end)
    if (lsn < this.#expectedLsn) {
      addDamage(report, { ...this.#byteRange(offset, end), kind: 'out_of_order', missing: null })
      return false
    }
    // Only a gap in the unproven group ends it: proven commits that are missing are damage.
    const isAfterGap = this.#isCutOff || lsn > Math.max(this.#expectedLsn, this.#provenLsn + 1)
    const isVoid = lsn > this.#segment.cutoffLsn
    if (isVoid || (lsn > this.#provenLsn && isAfterGap)) {
      this.#isCutOff = true
      this.#skip(offset, end, isVoid)
      return false
    }
    if (this.#skipped !== null || lsn > this.#expectedLsn) {
      const { from, to } = this.#skipped ?? { from: offset, to: offset }
      this.#reportDamage('missing', from, to, lsn - 1)
    }
    this.#skipped = null
    this.#expectedLsn = lsn + 1
    this.validBytes = end
    this.isSealed = false
    this.info.lastLsn = lsn
    this.info.commits++
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

  /** Reports bytes as damage, and the commits up to `lastLsn` as missing. */
  #reportDamage(kind: DamageKind, from: number, to: number, lastLsn = this.#provenLsn): void {
    const missing = lsnRange(this.#expectedLsn, lastLsn)
    const kindOfBytes = this.#isHeaderMissing ? 'invalid_header' : to > from ? 'invalid_bytes' : kind
    addDamage(this.#report, {
      ...this.#byteRange(from, to),
      kind: kind === 'unreadable' ? kind : kindOfBytes,
      missing,
    })
    this.#isHeaderMissing = false
  }

  #reportContradiction(offset: number, end: number): void {
    if (!this.#isContradicted)
      addDamage(this.#report, { ...this.#byteRange(offset, end), kind: 'contradiction', missing: null })
    this.#isContradicted = true
  }

  #byteRange(fromByte: number, toByte: number) {
    return { file: this.#segment.name, fromByte, toByte }
  }
}
