// What a format of segments has to say of itself, and what reading them tells. README.md has the idea.
import type { NumberedNames } from './numbered-names.ts'

/** Numbers of entries, both included. */
export interface NumberRange {
  from: number
  to: number
}

/** Null where the range is empty. */
export const numberRange = (from: number, to: number): NumberRange | null =>
  from <= to ? { from, to } : null

/** First frame of a segment. */
export interface HeaderHead {
  kind: 'header'
  /** Identity of what the segment belongs to. */
  owner: string
  firstNo: number
  /** Every entry up to this one was durable when the frame was written. */
  durableNo: number
}

/** The header of a newer format: what else it says is unknown. */
export interface NewerHead {
  kind: 'newer'
  format: number
  durableNo: 0
}

/** A frame of consecutive entries, which is whole or not there. */
export interface EntriesHead {
  kind: 'entries'
  firstNo: number
  lastNo: number
  durableNo: number
}

/** Last frame of a sealed segment. */
export interface EndHead {
  kind: 'end'
  durableNo: number
}

/** What a frame says, whatever more its format has in it. */
export type FrameHead<Header extends HeaderHead, Entries extends EntriesHead> =
  | Header
  | NewerHead
  | Entries
  | EndHead

export interface SegmentFormat<
  Header extends HeaderHead = HeaderHead,
  Entries extends EntriesHead = EntriesHead,
> {
  /** The newest version that is read. */
  version: number
  names: NumberedNames
  /** So many bytes at the beginning of a frame tell how long it is. */
  headBytes: number
  /** Bytes of the frame that begins at `at`; null where none does. Needs `headBytes` bytes. */
  lengthOf(bytes: Buffer, at: number): number | null
  /** Decodes a frame, which lacks its end where the file does; null where it is not as it was written. @returns its length, too */
  decode(frame: Buffer): { head: FrameHead<Header, Entries>; length: number } | null
  /** Index from which on a frame may begin, searched for from an index on; -1: it is not in these bytes. */
  find(bytes: Buffer, from: number): number
  /** So many bytes of a frame show `find` its beginning. */
  markBytes: number
  /** Of frames without zeros: how one that was written whole, and has changed since, differs from one of which a power cut left a part. */
  changed?: {
    /** Whether it seems to begin at `at`. Needs `markBytes` bytes. */
    beginsAt(bytes: Buffer, at: number): boolean
    /** The last byte of each. */
    endByte: number
  }
  /** The file has its name only since its header is durable: one that is not whole is damage. */
  hasDurableHeader: boolean
  /**
   * The last entry of earlier segments that counts; those behind it are void.
   * @param durableNo as the header says or, where it is damaged, the first entries; Infinity where neither can be read
   */
  countsTo(firstNo: number, durableNo: number): number
  /** Codes with which the disk refuses to open a file that then counts as damaged. Reading rejects with others. */
  unreadable: readonly string[]
  /** Whether a file is none of the segments, and of no interest. */
  isPassedOver(name: string): boolean
}

export interface PlannedSegment<Header extends HeaderHead = HeaderHead> {
  name: string
  path: string
  bytes: number
  firstNo: number
  /** Null where it is damaged. */
  header: Header | null
  /** Entries of earlier segments beyond this one are void. */
  afterNo: number
  /** Its own entries beyond this one are void: a later segment says so. Infinity for the newest segment. */
  cutoffNo: number
}

export interface SegmentPlan<Header extends HeaderHead> {
  /** Oldest first. */
  segments: PlannedSegment<Header>[]
  /** Names of files that are no segments of this owner. */
  foreign: string[]
  /** Paths of files that were deleted since the folder was listed. */
  removed: string[]
  /** The highest number in a file name. */
  highestNamedNo: number
}

export type DamageKind =
  /** Bytes that are not a frame, before valid frames or in the place of durable ones. */
  | 'invalid_bytes'
  /** The header of a segment is damaged. Its entries are used. */
  | 'invalid_header'
  /** Durable entries that are in no file. */
  | 'missing'
  /** Entries whose numbers do not rise. They are not used. */
  | 'out_of_order'
  /** Entries that were proven durable, but a later segment's header voids them. They are not used. */
  | 'contradiction'
  /** The operating system reported an error while reading. */
  | 'unreadable'
  /** The file is not a segment of this owner. It is not used. */
  | 'foreign_file'

export interface SegmentDamage {
  kind: DamageKind
  /** File name; null where the file itself is missing. */
  file: string | null
  /** Inclusive. */
  fromByte: number
  /** Exclusive. */
  toByte: number
  /** Entries that are lost; null where there are none. Some of the numbers may have been void. */
  missing: NumberRange | null
}

/** Damage that is not a part of a file: a whole one, or entries that are in none. */
export const damageOf = (
  kind: DamageKind,
  file: string | null,
  missing: NumberRange | null,
): SegmentDamage => ({ kind, file, fromByte: 0, toByte: 0, missing })

/** Damage as a sentence. @param subject what is damaged, and what its entries are called */
export function describeDamage(
  { kind, fromByte, toByte, missing }: SegmentDamage,
  { name, entries }: { name: string; entries: string },
): string {
  const where = toByte > fromByte ? ` (bytes ${fromByte} to ${toByte})` : ''
  const lost = missing === null ? '' : `; the ${entries} ${missing.from} to ${missing.to} are lost`
  return `the ${name} is damaged: ${kind.replaceAll('_', ' ')}${where}${lost}`
}

/** `unknown_format`: a newer version wrote it. `segment_removed`: it was deleted during the read, which has to begin again behind it. */
export type SegmentErrorCode = 'unknown_format' | 'segment_removed'

export class SegmentError extends Error {
  readonly code: SegmentErrorCode

  constructor(code: SegmentErrorCode, message: string) {
    super(message)
    this.name = 'SegmentError'
    this.code = code
  }
}

export const removedError = (path: string): SegmentError =>
  new SegmentError('segment_removed', `${path} was removed while it was read`)

export const unknownFormatError = (path: string, format: number, version: number): SegmentError =>
  new SegmentError('unknown_format', `${path} has format ${format}, and this version reads up to ${version}`)
