// Encodes and decodes the lines of a segment. A line holds the length of its JSON payload and the CRC-32 of it, 8 hexadecimal
// digits each, then the payload, which contains no newline, and a newline.
import { crc32 } from 'node:zlib'
import { assert } from '../../../lib/assert.ts'
import { NEXT_NAME, NumberedNames } from '../../../lib/segments/numbered-names.ts'
import type {
  EndHead,
  EntriesHead,
  FrameHead,
  HeaderHead,
  NewerHead,
  SegmentFormat,
} from '../../../lib/segments/types.ts'
import { parseJson } from '../../../lib/text/json-text.ts'
import type { Row, TableName } from '../../../schema/tables.ts'
import { RECORD_BYTES_MAX } from '../limits.ts'
import type { CommitRecord, EncodedRow, Position } from '../types.ts'

export const FORMAT = 1
/** Length, space, CRC, space. */
export const PREFIX_BYTES = 18
/** Bytes of a line besides its payload. */
export const FRAME_BYTES = PREFIX_BYTES + 1
/** No record is shorter. Bounds how many records a torn tail of a given size can have held. */
export const RECORD_BYTES_MIN = 32
export const DAMAGED_SUFFIX = '.damaged'

const SPACE = 32
export const NEWLINE = 10
const QUOTE = 34
/** The start of a commit's payload, which is read without parsing the rows. */
const COMMIT = /^\{"lsn":(\d{1,16}),"afterLsn":(\d{1,16}),"knownAt":(\d{1,16}),"rows":\[/
const COMMIT_HEAD_BYTES = 96
const COMMIT_START = '{"lsn":'

/** The start of a payload with the space before it. Occurs nowhere else in a line: the JSON has no spaces between its tokens and
 *  escapes the quotes in its strings. */
const PAYLOAD_START = Buffer.from(' {"')
/** Where `PAYLOAD_START` is in a line, in bytes. */
const PAYLOAD_START_OFFSET = PREFIX_BYTES - 1

/** First line of a segment. Voids the commits after `durableNo` that earlier segments hold: only those up to it were acknowledged
 *  before this segment. LSNs between `durableNo` and `firstNo` are never used. */
export interface LogHeader extends HeaderHead {
  /** No commit of an earlier segment has a later one. Unix ms. */
  knownAtMs: number
}

/** A commit, whose LSN is both `firstNo` and `lastNo`. */
export interface CommitHead extends EntriesHead {
  /** Unix ms. */
  knownAtMs: number
}

/** A record without the rows of a commit. */
export type RecordHead = FrameHead<LogHeader, CommitHead>

export const segmentNames = new NumberedNames('log')

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

export const headerText = (log: string, firstLsn: number, afterLsn: number, knownAtMs: number): string =>
  JSON.stringify({ format: FORMAT, log, firstLsn, afterLsn, knownAt: knownAtMs })

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

/** Bytes of the line that begins at `at`, with its newline; null where none does. Needs `PREFIX_BYTES` bytes. */
function lineBytes(bytes: Buffer, at: number): number | null {
  if (bytes[at + 8] !== SPACE || bytes[at + 17] !== SPACE) return null
  const length = parseHex(bytes, at)
  return length >= 2 && length <= RECORD_BYTES_MAX ? FRAME_BYTES + length : null
}

/** The payload of a line that `readPayload` accepts. */
export const payloadOf = (line: Buffer): Buffer =>
  line.subarray(PREFIX_BYTES, PREFIX_BYTES + parseHex(line, 0))

/** The payload of a line that is whole, but for its newline perhaps; null where it is not as it was written. */
export function readPayload(line: Buffer): Buffer | null {
  const bytes = line.length < PREFIX_BYTES ? null : lineBytes(line, 0)
  if (bytes === null || line.length < bytes - 1) return null
  const payload = payloadOf(line)
  return crc32(payload) === parseHex(line, 9) ? payload : null
}

/** Null where the line is not a record, whole but for its newline. */
export function decodeLine(line: Buffer): { head: RecordHead; length: number } | null {
  const payload = readPayload(line)
  const head = payload === null ? null : parsePayload(payload)
  if (payload === null || head === null) return null
  const end = PREFIX_BYTES + payload.length
  // A damaged newline affects neither the record before it nor the one after it.
  return { head, length: line[end] === NEWLINE ? end + 1 : end }
}

/** Null where the payload is not a record of this format. */
function parsePayload(payload: Buffer): RecordHead | null {
  const start = payload.toString('latin1', 0, COMMIT_HEAD_BYTES)
  if (start.startsWith(COMMIT_START)) {
    const found = COMMIT.exec(start)
    if (found === null) return null
    const lsn = Number(found[1])
    const [durableNo, knownAtMs] = [Number(found[2]), Number(found[3])]
    return { kind: 'entries', firstNo: lsn, lastNo: lsn, durableNo, knownAtMs }
  }
  return payload[1] === QUOTE ? parseHeaderOrEnd(payload) : null
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0

function parseHeaderOrEnd(payload: Buffer): LogHeader | NewerHead | EndHead | null {
  const { format, log, firstLsn, afterLsn, knownAt, end } = Object(parseJson(payload.toString()))
  if (end === true) return isCount(afterLsn) ? { kind: 'end', durableNo: afterLsn } : null
  if (!isCount(format)) return null
  // The fields of a newer format are unknown; the reader refuses it by its number.
  if (format > FORMAT) return { kind: 'newer', format, durableNo: 0 }
  if (typeof log !== 'string' || !isCount(firstLsn) || !isCount(afterLsn) || !isCount(knownAt)) return null
  return { kind: 'header', owner: log, firstNo: firstLsn, durableNo: afterLsn, knownAtMs: knownAt }
}

/** Parses the rows of a commit. They are not validated: the CRC proves that they are what was written. */
export function parseRows(payload: Buffer): [TableName, Row][] {
  return JSON.parse(payload.toString()).rows
}

/** The commit of a line that is as it was written. */
export function commitRecord(
  { firstNo: lsn, knownAtMs }: CommitHead,
  position: Position,
  line: Buffer,
): CommitRecord {
  const payload = payloadOf(line)
  return { lsn, knownAtMs, position, payload, rows: () => parseRows(payload) }
}

/** Where the next line may begin: after a newline or, should that be damaged, before the start of a payload. */
function findLine(bytes: Buffer, from: number): number {
  const lineStart = bytes.indexOf(NEWLINE, Math.max(0, from - 1)) + 1
  const payloadStart = bytes.indexOf(PAYLOAD_START, from + PAYLOAD_START_OFFSET)
  if (payloadStart === -1) return lineStart === 0 ? -1 : lineStart
  const found = payloadStart - PAYLOAD_START_OFFSET
  return lineStart === 0 ? found : Math.min(lineStart, found)
}

/** How the log's files are read. */
export const logFormat: SegmentFormat<LogHeader, CommitHead> = {
  version: FORMAT,
  names: segmentNames,
  headBytes: PREFIX_BYTES,
  lengthOf: lineBytes,
  decode: decodeLine,
  find: findLine,
  markBytes: PAYLOAD_START_OFFSET + PAYLOAD_START.length,
  // JSON has no zeros: it escapes them.
  changed: {
    beginsAt: (bytes, at) => bytes.indexOf(PAYLOAD_START, at) === at + PAYLOAD_START_OFFSET,
    endByte: NEWLINE,
  },
  hasDurableHeader: true,
  // What was not durable then is void, and its LSNs are not used again.
  countsTo: (firstLsn, durableNo) => Math.min(durableNo, firstLsn - 1),
  unreadable: ['EIO'],
  isPassedOver: (name) => name === NEXT_NAME || name.endsWith(DAMAGED_SUFFIX),
}
