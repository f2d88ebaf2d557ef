import { C1, Unpackr } from 'msgpackr'
import { INGEST_RECORD_BYTES_MAX, INGEST_SLICE_BYTES, INGEST_SLICE_RECORDS } from '../limits.ts'
import type { BodyReader, IngestBatch } from './ingest-batch.ts'
import { skipRecord } from './skip-record.ts'

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' })
/** What msgpackr is given first of a record whose end only it knows: most trades have fewer bytes. */
const LONE_RECORD_BYTES = 512

/**
 * Reads a body of msgpack: an array of records, or records one after another. Both are read record by record, so that one that cannot
 * be read costs itself alone, and one without an end what follows it. To read trades from their bytes by hand, without msgpackr, saves
 * 9 to 13 % of the time from the body to the market (34 alternated pairs of processes): not worth a parser.
 */
export class MsgpackBody implements BodyReader {
  readonly #body: Buffer
  readonly #batch: IngestBatch
  readonly #isArray: boolean
  #position: number
  /** Records that the array's head announces and that were not read yet; infinite where there is no array. */
  #recordsLeft: number
  /** How many records are read together: few behind one that cannot be read, as msgpackr scans all of them before it reads. */
  #together = INGEST_SLICE_RECORDS

  constructor(body: Buffer, batch: IngestBatch) {
    const head = readArrayHead(body)
    this.#body = body
    this.#batch = batch
    this.#isArray = head !== null
    this.#position = head?.bytes ?? 0
    this.#recordsLeft = head?.items ?? Number.POSITIVE_INFINITY
  }

  readSlice(): boolean {
    const sliceEnd = this.#position + INGEST_SLICE_BYTES
    let left = INGEST_SLICE_RECORDS
    while (left > 0 && this.#position < sliceEnd && this.#hasNext()) left -= this.#readSome(left, sliceEnd)
    this.#batch.flush()
    if (this.#hasNext()) return true
    this.#checkEnd()
    return false
  }

  /** Reads the next records. @returns how many were taken. */
  #readSome(recordsMax: number, sliceEnd: number): number {
    const { count, end } = this.#nextRecords(Math.min(recordsMax, this.#together), sliceEnd)
    if (count === 0) {
      this.#batch.rejectTooLarge()
      this.#passOver(end)
      return 1
    }
    const { records, position, isBroken } = end === -1 ? this.#decodeOne() : this.#decode(count, end)
    this.#position = position
    this.#recordsLeft -= records.length
    for (const record of records) this.#batch.addRecord(record)
    this.#together = isBroken ? 1 : Math.min(2 * this.#together, INGEST_SLICE_RECORDS)
    if (!isBroken) return records.length
    this.#rejectUnread(end)
    return records.length + 1
  }

  /** Rejects the next record, which msgpackr cannot read. @param end of the records that were found with it; -1: it has none */
  #rejectUnread(end: number): void {
    const next = skipRecord(this.#body, this.#position)
    if (next === -1 || next > end) {
      this.#batch.reject('invalid_msgpack', 'not valid msgpack; nothing after it was read')
      this.#recordsLeft = 0
      this.#position = this.#body.length
      return
    }
    this.#batch.reject(
      'invalid_msgpack',
      'an extension that is not known, a key that is no text, or nested too deep',
    )
    this.#passOver(next)
  }

  #passOver(end: number): void {
    this.#position = end
    this.#recordsLeft--
  }

  /** Decodes records of which the last ends at `end` at the latest. @returns those before a fault, and where they end. */
  #decode(count: number, end: number): { records: unknown[]; position: number; isBroken: boolean } {
    const base = this.#position
    const records: unknown[] = []
    let position = base
    try {
      unpackr.unpackMultiple(this.#body.subarray(base, end), (record: unknown, _start = 0, next = 0) => {
        if (record === C1) throw new Error('0xc1 is never used in msgpack')
        records.push(record)
        position = base + next
        return records.length < count
      })
    } catch {
      return { records, position, isBroken: true }
    }
    return { records, position, isBroken: false }
  }

  /** Decodes one record whose end only msgpackr knows, from few bytes and, where these do not hold it, from more: up to those of one record. */
  #decodeOne(): { records: unknown[]; position: number; isBroken: boolean } {
    const endMax = Math.min(this.#body.length, this.#position + INGEST_RECORD_BYTES_MAX)
    for (let bytes = LONE_RECORD_BYTES; ; bytes *= 4) {
      const end = Math.min(endMax, this.#position + bytes)
      const decoded = this.#decode(1, end)
      if (!decoded.isBroken || end === endMax) return decoded
    }
  }

  /**
   * The next records of a slice. msgpackr scans all bytes that it is given before it reads, so it gets only these. An `end` of -1: there is one
   * whose end `skipRecord` cannot find. A count of 0 means that the next record is too large; it ends at `end`.
   */
  #nextRecords(recordsMax: number, sliceEnd: number): { count: number; end: number } {
    const countMax = Math.min(recordsMax, this.#recordsLeft)
    let end = this.#position
    let count = 0
    do {
      const next = skipRecord(this.#body, end)
      const isTooLarge = next - end > INGEST_RECORD_BYTES_MAX
      if (count > 0 && (next === -1 || isTooLarge)) break
      if (next === -1) return { count: 1, end: -1 }
      end = next
      if (isTooLarge) break
      count++
    } while (count < countMax && end < sliceEnd && end < this.#body.length)
    return { count, end }
  }

  #hasNext(): boolean {
    return this.#recordsLeft > 0 && this.#position < this.#body.length
  }

  /** An array must end with the body and hold as many records as its head announces. */
  #checkEnd(): void {
    if (this.#position < this.#body.length) {
      this.#batch.reject('invalid_msgpack', 'bytes after the end of the array; they were not read')
    } else if (this.#recordsLeft > 0 && this.#isArray) {
      this.#batch.reject('invalid_msgpack', `the array ends ${this.#recordsLeft} records early`)
    }
  }
}

/** The length of an array's head and how many items it announces; null where the body is not an array. */
function readArrayHead(body: Buffer): { bytes: number; items: number } | null {
  const marker = body[0]
  if (marker >= 0x90 && marker <= 0x9f) return { bytes: 1, items: marker & 0x0f }
  if (marker === 0xdc && body.length >= 3) return { bytes: 3, items: body.readUInt16BE(1) }
  if (marker === 0xdd && body.length >= 5) return { bytes: 5, items: body.readUInt32BE(1) }
  return null
}
