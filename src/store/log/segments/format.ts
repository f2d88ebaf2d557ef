// In: records. Out: the lines of a segment, and records from lines. A line is the length of its JSON and the CRC-32 of it,
// 8 hexadecimal digits each, then the JSON and a newline, which JSON never holds. Never touches a disk.
import { crc32 } from 'node:zlib'
import { assert } from '../../../lib/assert.ts'
import type { Row, TableName } from '../../../schema/tables.ts'
import { RECORD_BYTES_MAX } from '../limits.ts'
import type { EncodedRow } from '../types.ts'

export const FORMAT = 1
/** Length, space, CRC, space. */
export const PREFIX_BYTES = 18
/** What a line has besides its payload. */
export const FRAME_BYTES = PREFIX_BYTES + 1
/** No record is shorter: what a torn tail may have held is told from its bytes. */
export const RECORD_BYTES_MIN = 32
/** A file that is being written and is no segment yet. */
export const NEXT_NAME = 'next.tmp'
export const DAMAGED_SUFFIX = '.damaged'

const NAME = /^(\d{20})\.log$/
const SPACE = 32
export const NEWLINE = 10
const QUOTE = 34
/** The part of a commit that is read without parsing it all. */
const COMMIT = /^\{"lsn":(\d{1,16}),"afterLsn":(\d{1,16}),"knownAt":(\d{1,16}),"rows":\[/
const COMMIT_HEAD_BYTES = 96
const COMMIT_MARK = '{"lsn":'

/** First line of a segment. Commits of earlier segments beyond `afterLsn` are void: only those up to it were
 *  acknowledged before this segment, and LSNs between it and `firstLsn` will never count. */
export interface SegmentHeader {
  kind: 'header'
  format: number
  log: string
  firstLsn: number
  afterLsn: number
  /** Every commit of earlier segments was known by then. */
  knownAt: number
}

export interface CommitHead {
  kind: 'commit'
  lsn: number
  /** Every commit up to it was durable when this one was written. */
  afterLsn: number
  knownAt: number
}

/** Last line of a segment that was ended in order. */
export interface SegmentEnd {
  kind: 'end'
  /** Every commit up to it was durable when this was written. */
  afterLsn: number
}

export type RecordHead = SegmentHeader | CommitHead | SegmentEnd

export const segmentName = (firstLsn: number): string => `${String(firstLsn).padStart(20, '0')}.log`

/** The first LSN that a file's name tells; null where it is no name of a segment. */
export function firstLsnOf(name: string): number | null {
  const digits = NAME.exec(name)?.[1]
  const lsn = Number(digits)
  return digits !== undefined && Number.isSafeInteger(lsn) ? lsn : null
}

/** The rows of a commit as they stand in its record. */
export function rowsText(rows: readonly EncodedRow[]): string {
  let text = ''
  for (const { table, json } of rows) {
    assert(!json.includes('\n'), 'a row is one line')
    text += `${text === '' ? '' : ','}["${table}",${json}]`
  }
  return text
}

export const commitText = (lsn: number, afterLsn: number, knownAtMs: number, rows: string): string =>
  `{"lsn":${lsn},"afterLsn":${afterLsn},"knownAt":${knownAtMs},"rows":[${rows}]}`

/** Bytes that `commitText` adds to its rows, at most. */
export const COMMIT_FRAME_BYTES_MAX = commitText(2 ** 53, 2 ** 53, 2 ** 53, '').length

export const headerText = ({ log, firstLsn, afterLsn, knownAt }: Omit<SegmentHeader, 'kind' | 'format'>) =>
  JSON.stringify({ format: FORMAT, log, firstLsn, afterLsn, knownAt })

export const endText = (afterLsn: number): string => JSON.stringify({ end: true, afterLsn })

/** Lines for one write, in a buffer that is used again. */
export class LineBuffer {
  #bytes = Buffer.allocUnsafeSlow(64 * 1024)
  #length = 0

  /** Adds a record; answers the length of its line. */
  add(payload: string): number {
    this.#reserve(FRAME_BYTES + payload.length)
    const start = this.#length + PREFIX_BYTES
    let written = this.#bytes.write(payload, start)
    // Text outside ASCII takes up to three bytes for each of its units.
    if (this.#bytes.length - start <= written + 3) {
      this.#reserve(FRAME_BYTES + payload.length * 3)
      written = this.#bytes.write(payload, start)
    }
    const end = start + written
    const checksum = crc32(this.#bytes.subarray(start, end))
    this.#bytes.write(`${hex(written)} ${hex(checksum)} `, this.#length, 'latin1')
    this.#bytes[end] = NEWLINE
    const length = end + 1 - this.#length
    this.#length = end + 1
    return length
  }

  get length(): number {
    return this.#length
  }

  /** What was added so far: good until the next `clear`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

const hex = (value: number): string => value.toString(16).padStart(8, '0')

/** The number of 8 hexadecimal digits, lower case; -1: they are none. */
function hexAt(bytes: Buffer, at: number): number {
  let value = 0
  for (let index = at; index < at + 8; index++) {
    const code = bytes[index]
    if (code >= 48 && code <= 57) value = value * 16 + code - 48
    else if (code >= 97 && code <= 102) value = value * 16 + code - 87
    else return -1
  }
  return value
}

/** The payload's length that a line says; -1: no line begins here. Needs `PREFIX_BYTES` bytes. */
export function payloadLengthAt(bytes: Buffer, at: number): number {
  if (bytes[at + 8] !== SPACE || bytes[at + 17] !== SPACE) return -1
  const length = hexAt(bytes, at)
  return length >= 2 && length <= RECORD_BYTES_MAX ? length : -1
}

/** What the payload of that length says, of a line that begins here; null: the bytes are no record. */
export function recordAt(bytes: Buffer, at: number, payloadLength: number): RecordHead | null {
  const payload = bytes.subarray(at + PREFIX_BYTES, at + PREFIX_BYTES + payloadLength)
  return crc32(payload) === hexAt(bytes, at + 9) ? headOf(payload) : null
}

/** What a payload is; null: nothing that this format knows. */
export function headOf(payload: Buffer): RecordHead | null {
  const start = payload.toString('latin1', 0, COMMIT_HEAD_BYTES)
  if (start.startsWith(COMMIT_MARK)) {
    const found = COMMIT.exec(start)
    if (found === null) return null
    return { kind: 'commit', lsn: Number(found[1]), afterLsn: Number(found[2]), knownAt: Number(found[3]) }
  }
  return payload[1] === QUOTE ? otherHead(payload) : null
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

function otherHead(payload: Buffer): SegmentHeader | SegmentEnd | null {
  const fields = parsed(payload)
  const { format, log, firstLsn, afterLsn, knownAt, end } = fields
  if (end === true) return isCount(afterLsn) ? { kind: 'end', afterLsn } : null
  if (!isCount(format)) return null
  // The fields of a newer format are not for this program to judge.
  if (format > FORMAT) return { kind: 'header', format, log: '', firstLsn: 0, afterLsn: 0, knownAt: 0 }
  if (typeof log !== 'string' || !isCount(firstLsn) || !isCount(afterLsn) || !isCount(knownAt)) return null
  return { kind: 'header', format, log, firstLsn, afterLsn, knownAt }
}

function parsed(payload: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(payload.toString())
  } catch {
    return {}
  }
}

/** The rows of a commit. The CRC has shown that they are what was written. */
export function rowsOf(payload: Buffer): [TableName, Row][] {
  return JSON.parse(payload.toString()).rows
}
