import { isAscii, isUtf8 } from 'node:buffer'
import { parseJson } from '../../lib/text/json-text.ts'
import {
  INGEST_LINE_CHARS_MIN,
  INGEST_RECORD_BYTES_MAX,
  INGEST_SLICE_BYTES,
  INGEST_SLICE_RECORDS,
} from '../limits.ts'
import type { BodyReader, IngestBatch } from './ingest-batch.ts'

const NEWLINE = 0x0a
const OPEN_BRACE = 0x7b
const BYTE_ORDER_MARK = '\ufeff'
const BYTE_ORDER_MARK_BYTES = 3

/**
 * Reads a body of NDJSON, line by line. One that is not UTF-8 is rejected alone. To read the lines of trades from their bytes by hand
 * saves 6 % of the processor time from the body to the market (median of 13 alternated pairs of processes), to parse sixteen lines at once 3 %:
 * not worth it.
 */
export class NdjsonBody implements BodyReader {
  readonly #body: Buffer
  readonly #batch: IngestBatch
  /** Whether the body as a whole is UTF-8, so that no line needs a check of its own. */
  readonly #isUtf8: boolean
  /** ASCII is made a text faster as latin1. */
  readonly #encoding: 'latin1' | 'utf8'
  #position: number

  constructor(body: Buffer, batch: IngestBatch) {
    this.#body = body
    this.#batch = batch
    this.#isUtf8 = isUtf8(body)
    this.#encoding = isAscii(body) ? 'latin1' : 'utf8'
    const hasMark = body.toString('utf8', 0, BYTE_ORDER_MARK_BYTES) === BYTE_ORDER_MARK
    this.#position = hasMark ? BYTE_ORDER_MARK_BYTES : 0
  }

  readSlice(): boolean {
    const body = this.#body
    const batch = this.#batch
    let position = this.#position
    const sliceEnd = Math.min(body.length, position + INGEST_SLICE_BYTES)
    for (let taken = 0; taken < INGEST_SLICE_RECORDS && position < sliceEnd; taken++) {
      const newline = body.indexOf(NEWLINE, position)
      const end = newline === -1 ? body.length : newline
      this.#addLine(position, end)
      position = end + 1
    }
    batch.flush()
    this.#position = position
    return position < body.length
  }

  #addLine(from: number, end: number): void {
    const body = this.#body
    const batch = this.#batch
    if (end - from > INGEST_RECORD_BYTES_MAX) {
      batch.rejectTooLarge()
      return
    }
    if (!this.#isUtf8 && !isUtf8(body.subarray(from, end))) {
      batch.reject('invalid_json', 'not valid UTF-8')
      return
    }
    const line = body.toString(this.#encoding, from, end)
    if (isBlank(line)) return
    // Once the error list is full, a line too short to be valid need not be parsed to be counted.
    const isTooShort = batch.isErrorListFull && line.length < INGEST_LINE_CHARS_MIN
    const record = isTooShort ? undefined : parseJson(line)
    if (record === undefined) batch.reject('invalid_json', 'not valid JSON')
    else batch.addRecord(record, true)
  }
}

const isBlank = (line: string): boolean => line.charCodeAt(0) !== OPEN_BRACE && line.trim() === ''
