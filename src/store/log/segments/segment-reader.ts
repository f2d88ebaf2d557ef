// In: what a scan finds in one segment, piece by piece. Out: which of its commits count, and what is damage, what a torn
// tail. Never reads a file itself.

import { addDamage, keep, rangeOf } from '../findings.ts'
import type { PlannedSegment } from '../plan.ts'
import type { DamageKind, ReadReport, SegmentInfo } from '../types.ts'
import type { CommitHead } from './format.ts'
import { RECORD_BYTES_MIN } from './format.ts'
import type { Scanned } from './scan.ts'

/**
 * The rule. Every record tells up to which LSN commits were durable when it was written; the highest that was told is
 * `provenLsn`. Commits up to it are there or lost: damage. Commits behind it were one group whose sync nobody has proven:
 * they count up to the first that is missing, since disks write pages in any order, and the rest is a torn tail.
 */
export class SegmentReader {
  readonly info: SegmentInfo
  /** Where the last record that counts ends. */
  keptBytes = 0
  /** The segment was ended in order: nothing in it is in doubt. */
  isEnded = false
  readonly #segment: PlannedSegment
  readonly #provenLsn: number
  readonly #report: ReadReport
  #expectedLsn: number
  /** Bytes since the last record that counts which hold nothing that does. */
  #skipped: { from: number; to: number; isVoid: boolean } | null = null
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

  /** Takes the next piece; true where it is a commit that counts. */
  take({ head, offset, length, error }: Scanned): boolean {
    const end = offset + length
    if (error !== undefined) this.#isUnreadable = true
    if (head?.kind === 'commit') return this.#takeCommit(head, offset, end)
    if (head?.kind === 'header' && offset === 0) this.keptBytes = end
    else if (head?.kind === 'end') this.isEnded = this.#skipped === null
    else this.#skip(offset, error === undefined ? end : this.#segment.bytes)
    return false
  }

  /** After the last piece. */
  finish(): void {
    const missing = rangeOf(this.#expectedLsn, this.#provenLsn)
    const report = this.#report
    if (missing !== null || this.#isUnreadable || this.#isHeaderMissing) {
      const { bytes } = this.#segment
      const { from, to } = this.#skipped ?? { from: bytes, to: bytes }
      this.#damage(this.#isUnreadable ? 'unreadable' : 'missing', from, to)
      this.isEnded = false
    } else if (this.#skipped?.isVoid === false) {
      keep(report.tornTails, {
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

  #takeCommit({ lsn, afterLsn, knownAt }: CommitHead, offset: number, end: number): boolean {
    const report = this.#report
    report.highestLsn = Math.max(report.highestLsn, lsn)
    report.lastKnownAtMs = Math.max(report.lastKnownAtMs, knownAt)
    if (afterLsn > this.#segment.cutoffLsn) this.#contradiction(offset, end)
    if (lsn < this.#expectedLsn) {
      addDamage(report, { ...this.#bytesOf(offset, end), kind: 'out_of_order', missing: null })
      return false
    }
    // What is missing of the proven commits is damage, and says nothing of those behind.
    const isBehindAHole = this.#isCutOff || lsn > Math.max(this.#expectedLsn, this.#provenLsn + 1)
    const isVoid = lsn > this.#segment.cutoffLsn
    if (isVoid || (lsn > this.#provenLsn && isBehindAHole)) {
      this.#isCutOff = true
      this.#skip(offset, end, isVoid)
      return false
    }
    if (this.#skipped !== null || lsn > this.#expectedLsn) {
      const { from, to } = this.#skipped ?? { from: offset, to: offset }
      this.#damage('missing', from, to, lsn - 1)
    }
    this.#skipped = null
    this.#expectedLsn = lsn + 1
    this.keptBytes = end
    this.isEnded = false
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
    this.isEnded = false
  }

  /** Tells of bytes, and of the commits up to `lastLsn` that should have been there. */
  #damage(kind: DamageKind, from: number, to: number, lastLsn = this.#provenLsn): void {
    const missing = rangeOf(this.#expectedLsn, lastLsn)
    const ofBytes = this.#isHeaderMissing ? 'invalid_header' : to > from ? 'invalid_bytes' : kind
    addDamage(this.#report, {
      ...this.#bytesOf(from, to),
      kind: kind === 'unreadable' ? kind : ofBytes,
      missing,
    })
    this.#isHeaderMissing = false
  }

  #contradiction(offset: number, end: number): void {
    if (!this.#isContradicted)
      addDamage(this.#report, { ...this.#bytesOf(offset, end), kind: 'contradiction', missing: null })
    this.#isContradicted = true
  }

  #bytesOf(fromByte: number, toByte: number) {
    return { file: this.#segment.name, fromByte, toByte }
  }
}
