// Encodes and decodes the lines of a segment. A line holds the length of its JSON payload and the CRC-32 of it, 8 hexadecimal
// digits each, then the payload, which contains no newline, and a newline.
import { crc32 } from 'node:zlib'
import { assert } from '../../../lib/assert.ts'
import type { Row, TableName } from '../../../schema/tables.ts'
import { RECORD_BYTES_MAX } from '../limits.ts'
import type { EncodedRow } from '../types.ts'

export const FORMAT = 1
/** Length, space, CRC, space. */
export const PREFIX_BYTES = 18
/** Bytes of a line besides its payload. */
export const FRAME_BYTES = PREFIX_BYTES + 1
/** No record is shorter. Bounds how many records a torn tail of a given size can have held. */
export const RECORD_BYTES_MIN = 32
/** Name of a segment file while it is written; it is renamed once its first bytes are durable. */
export const NEXT_NAME = 'next.tmp'
export const DAMAGED_SUFFIX = '.damaged'

const NAME = /^(\d{20})\.log$/
const SPACE = 32
export const NEWLINE = 10
const QUOTE = 34
/** The start of a commit's payload, which is read without parsing the rows. */
const COMMIT = /^\{"lsn":(\d{1,16}),"afterLsn":(\d{1,16}),"knownAt":(\d{1,16}),"rows":\[/
const COMMIT_HEAD_BYTES = 96
const COMMIT_START = '{"lsn":'

/** First line of a segment. Voids the commits after `afterLsn` that earlier segments hold: only those up to it were
 *  acknowledged before this segment. LSNs between `afterLsn` and `firstLsn` are never used. */
export interface SegmentHeader {
  kind: 'header'
  format: number
  log: string
  firstLsn: number
  afterLsn: number
  /** No commit of an earlier segment has a later `knownAt`. Unix ms. */
  knownAt: number
}

export interface CommitHead {
  kind: 'commit'
  lsn: number
  /** Every commit up to this one was durable when the record was written. */
  afterLsn: number
  /** Unix ms. */
  knownAt: number
}

/** Last line of a sealed segment. */
export interface SegmentEnd {
  kind: 'end'
  /** Every commit up to this one was durable when the record was written. */
  afterLsn: number
}

/** A record without the rows of a commit. */
export type RecordHead = SegmentHeader | CommitHead | SegmentEnd

export const segmentName = (firstLsn: number): string => `${String(firstLsn).padStart(20, '0')}.log`

/** The first LSN of the segment with this file name; null where it is not the name of a segment. */
export function parseSegmentName(name: string): number | null {
  const digits = NAME.exec(name)?.[1]
  const lsn = Number(digits)
  return digits !== undefined && Number.isSafeInteger(lsn) ? lsn : null
}

/** Encodes the rows of a commit as they stand in its payload. */
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

/** The most bytes that `commitText` adds to its rows. */
export const COMMIT_FRAME_BYTES_MAX = commitText(2 ** 53, 2 ** 53, 2 ** 53, '').length

export const headerText = ({ log, firstLsn, afterLsn, knownAt }: Omit<SegmentHeader, 'kind' | 'format'>) =>
  JSON.stringify({ format: FORMAT, log, firstLsn, afterLsn, knownAt })

export const endText = (afterLsn: number): string => JSON.stringify({ end: true, afterLsn })

/** Collects the lines of one write in a reusable buffer. */
export class LineBuffer {
  #bytes = Buffer.allocUnsafeSlow(64 * 1024)
  #length = 0

  /** Adds a record. @returns the length of its line in bytes */
  add(payload: string): number {
    this.#reserve(FRAME_BYTES + payload.length)
    const start = this.#length + PREFIX_BYTES
    let written = this.#bytes.write(payload, start)
    // Outside ASCII, a UTF-16 unit takes up to three bytes.
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

  /** The lines added so far. A view, valid until the next `clear`. */
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

/** Decodes 8 lower-case hexadecimal digits; -1 where there are none. */
function parseHex(bytes: Buffer, at: number): number {
  let value = 0
  for (let index = at; index < at + 8; index++) {
    const code = bytes[index]
    if (code >= 48 && code <= 57) value = value * 16 + code - 48
    else if (code >= 97 && code <= 102) value = value * 16 + code - 87
    else return -1
  }
  return value
}

/** The payload length in the prefix of a line; -1 where no line begins at `at`. Needs `PREFIX_BYTES` bytes. */
export function parsePayloadLength(bytes: Buffer, at: number): number {
  if (bytes[at + 8] !== SPACE || bytes[at + 17] !== SPACE) return -1
  const length = parseHex(bytes, at)
  return length >= 2 && length <= RECORD_BYTES_MAX ? length : -1
}

/** Decodes the line that begins at `at` and has this payload; null where the CRC is wrong or the payload is not a known record. */
export function decodeLine(bytes: Buffer, at: number, payload: Buffer): RecordHead | null {
  return crc32(payload) === parseHex(bytes, at + 9) ? parsePayload(payload) : null
}

/** Null where the payload is not a record of this format. */
export function parsePayload(payload: Buffer): RecordHead | null {
  const start = payload.toString('latin1', 0, COMMIT_HEAD_BYTES)
  if (start.startsWith(COMMIT_START)) {
    const found = COMMIT.exec(start)
    if (found === null) return null
    return { kind: 'commit', lsn: Number(found[1]), afterLsn: Number(found[2]), knownAt: Number(found[3]) }
  }
  return payload[1] === QUOTE ? parseHeaderOrEnd(payload) : null
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0

function parseHeaderOrEnd(payload: Buffer): SegmentHeader | SegmentEnd | null {
  const { format, log, firstLsn, afterLsn, knownAt, end } = parseJson(payload)
  if (end === true) return isCount(afterLsn) ? { kind: 'end', afterLsn } : null
  if (!isCount(format)) return null
  // The fields of a newer format are unknown; the reader refuses it by its number.
  if (format > FORMAT) return { kind: 'header', format, log: '', firstLsn: 0, afterLsn: 0, knownAt: 0 }
  if (typeof log !== 'string' || !isCount(firstLsn) || !isCount(afterLsn) || !isCount(knownAt)) return null
  return { kind: 'header', format, log, firstLsn, afterLsn, knownAt }
}

/** An empty object where the payload is not JSON. */
function parseJson(payload: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(payload.toString())
  } catch {
    return {}
  }
}

/** Parses the rows of a commit. They are not validated: the CRC proves that they are what was written. */
export function parseRows(payload: Buffer): [TableName, Row][] {
  return JSON.parse(payload.toString()).rows
}
