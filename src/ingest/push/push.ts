// In: a body or frame of records (NDJSON or msgpack), and the time. Out: events in the sink, and what became of each
// record. A bad record never spoils its neighbours. Never waits, never answers HTTP: the HTTP layer does.
import { isUtf8 } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { C1, Unpackr } from 'msgpackr'
import type { Clock } from '../../lib/clock.ts'
import { AMOUNT_MAX, PRICE_MIN } from '../../schema/bounds.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { EventRejection, EventSink, IngestRecord, TradeEvent } from '../../schema/event.ts'
import { MSGPACK_MEDIA_TYPES, NDJSON_MEDIA_TYPES } from '../../schema/media-types.ts'
import {
  INGEST_BODY_BYTES_MAX,
  INGEST_ERRORS_MAX,
  INGEST_FRAME_BYTES_MAX,
  INGEST_LINE_CHARS_MIN,
  INGEST_RECORD_BYTES_MAX,
  INGEST_SLICE_RECORDS,
} from '../limits.ts'
import { isFault, type RecordFault, readRecord, timeFault } from './record.ts'
import { skipRecord } from './skip-record.ts'
import { TradeMapReader } from './trade-map.ts'

export interface IngestError {
  /** Which record, from 0; blank lines are not counted. */
  index: number
  code: string
  message: string
}

export interface IngestResult {
  accepted: number
  rejected: number
  /** The first 100. */
  errors: IngestError[]
}

const REJECTION_MESSAGES = {
  late: 'ts: older than the bars still open to late trades',
  sol_price_unknown: 'priceUsd is missing and no solPrice has come yet',
  price_unknown: `no price from ${PRICE_MIN} to ${AMOUNT_MAX} USD follows from this trade`,
  volume_too_large: `priceUsd times tokenAmount is above ${AMOUNT_MAX} USD`,
} as const satisfies Record<EventRejection, string>

/** Takes records one by one and keeps the account of them. */
class IngestBatch implements IngestResult {
  accepted = 0
  rejected = 0
  readonly errors: IngestError[] = []
  /** Unix ms, of the records that are taken now. */
  receivedAtMs: number
  private readonly sink: EventSink

  constructor(sink: EventSink, receivedAtMs: number) {
    this.sink = sink
    this.receivedAtMs = receivedAtMs
  }

  get count(): number {
    return this.accepted + this.rejected
  }

  get full(): boolean {
    return this.errors.length >= INGEST_ERRORS_MAX
  }

  /** @param ownsText see `readRecord`. */
  take(record: unknown, ownsText = false): void {
    this.deliver(readRecord(record, this.receivedAtMs, ownsText))
  }

  /** Takes a trade that was read from the bytes themselves. */
  takeTrade(trade: TradeEvent): void {
    this.deliver(timeFault(trade.ts, this.receivedAtMs) ?? trade)
  }

  private deliver(event: IngestRecord | RecordFault): void {
    if (isFault(event)) {
      this.refuse(event.code, event.message)
      return
    }
    const rejection = this.sink.apply(event, this.receivedAtMs)
    if (rejection === null) this.accepted++
    else this.refuse(rejection, REJECTION_MESSAGES[rejection])
  }

  refuse(code: string, message: string): void {
    if (!this.full) this.errors.push({ index: this.count, code, message })
    this.rejected++
  }

  refuseAsTooLarge(): void {
    this.refuse('record_too_large', `a record may hold at most ${INGEST_RECORD_BYTES_MAX} bytes`)
  }

  result(): IngestResult {
    return { accepted: this.accepted, rejected: this.rejected, errors: this.errors }
  }
}

/** A body being read: each call takes some more records and says whether any are left. */
type Reader = (recordsMax: number) => boolean

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function takeLine(line: string, batch: IngestBatch): void {
  const isHopeless = batch.full && line.length < INGEST_LINE_CHARS_MIN
  const record = isHopeless ? undefined : parseLine(line)
  if (record === undefined) batch.refuse('invalid_json', 'not valid JSON')
  else batch.take(record, true)
}

const NEWLINE = 0x0a
const BYTE_ORDER_MARK = '\ufeff'

const OPEN_BRACE = 0x7b
const isBlank = (line: string): boolean => line.charCodeAt(0) !== OPEN_BRACE && line.trim() === ''

/** Of a body that is not UTF-8 as a whole only the lines that are not are lost. */
function ndjsonReader(body: Buffer, batch: IngestBatch): Reader {
  const isText = isUtf8(body)
  let position = body.toString('utf8', 0, 3) === BYTE_ORDER_MARK ? 3 : 0
  /** Takes the line up to `end` as text. */
  const takeText = (end: number) => {
    if (end - position > INGEST_RECORD_BYTES_MAX) {
      batch.refuseAsTooLarge()
      return
    }
    const line = isText || isUtf8(body.subarray(position, end)) ? body.toString('utf8', position, end) : null
    if (line === null) batch.refuse('invalid_json', 'not valid UTF-8')
    else if (!isBlank(line)) takeLine(line, batch)
  }
  return (recordsMax) => {
    for (let taken = 0; taken < recordsMax && position < body.length; taken++) {
      const newline = body.indexOf(NEWLINE, position)
      const end = newline === -1 ? body.length : newline
      takeText(end)
      position = end + 1
    }
    return position < body.length
  }
}

/** Bytes of an array's head and how many items it announces; null where the body is not an array. */
function arrayHead(body: Buffer): { bytes: number; items: number } | null {
  const marker = body[0]
  if (marker >= 0x90 && marker <= 0x9f) return { bytes: 1, items: marker & 0x0f }
  if (marker === 0xdc && body.length >= 3) return { bytes: 3, items: body.readUInt16BE(1) }
  if (marker === 0xdd && body.length >= 5) return { bytes: 5, items: body.readUInt32BE(1) }
  return null
}

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' })

/**
 * An array is read item by item like records one after another: so a fault in the middle costs only what follows it.
 */
class MsgpackRecords {
  private readonly body: Buffer
  private readonly batch: IngestBatch
  private readonly trades: TradeMapReader
  private readonly isArray: boolean
  private position: number
  private left: number

  constructor(body: Buffer, batch: IngestBatch) {
    const head = arrayHead(body)
    this.body = body
    this.batch = batch
    this.trades = new TradeMapReader(body)
    this.isArray = head !== null
    this.position = head?.bytes ?? 0
    this.left = head?.items ?? Number.POSITIVE_INFINITY
  }

  take(recordsMax: number): boolean {
    let taken = 0
    while (taken < recordsMax && this.hasNext()) {
      const trade = this.trades.read(this.position)
      if (trade === null || this.trades.end - this.position > INGEST_RECORD_BYTES_MAX) {
        taken += this.takeByLibrary(recordsMax - taken)
        continue
      }
      this.position = this.trades.end
      this.left--
      taken++
      this.batch.takeTrade(trade)
    }
    if (this.hasNext()) return true
    this.finish()
    return false
  }

  /** Takes records as the library reads them, up to the next trade that does without. @returns how many. */
  private takeByLibrary(recordsMax: number): number {
    const base = this.position
    const { count, end } = this.run(recordsMax)
    if (count === 0) {
      this.batch.refuseAsTooLarge()
      this.position = end
      this.left--
      return 1
    }
    const records: unknown[] = []
    let isBroken = false
    try {
      unpackr.unpackMultiple(
        this.body.subarray(base, end),
        (record: unknown, _start?: number, next?: number) => {
          if (record === C1) throw new Error('0xc1 is no msgpack')
          records.push(record)
          this.position = base + (next as number)
          return records.length < count
        },
      )
    } catch {
      isBroken = true
    }
    this.left -= records.length
    for (const record of records) this.batch.take(record)
    if (isBroken) {
      this.batch.refuse('invalid_msgpack', 'not valid msgpack; nothing after it was read')
      this.left = 0
      this.position = this.body.length
    }
    return records.length
  }

  /**
   * The next records for the library, which looks through all that it is given before it reads: no more than those. One
   * whose end only the library finds comes alone, and has no more bytes than a record may. A count of 0: the next one is
   * too large, and ends at `end`.
   */
  private run(recordsMax: number): { count: number; end: number } {
    const countMax = Math.min(recordsMax, this.left)
    let end = this.position
    let count = 0
    do {
      const next = skipRecord(this.body, end)
      const isTooLarge = next - end > INGEST_RECORD_BYTES_MAX
      if (count > 0 && (next === -1 || isTooLarge)) break
      if (next === -1) return { count: 1, end: Math.min(this.body.length, end + INGEST_RECORD_BYTES_MAX) }
      end = next
      if (isTooLarge) break
      count++
    } while (count < countMax && end < this.body.length && this.trades.read(end) === null)
    return { count, end }
  }

  private hasNext(): boolean {
    return this.left > 0 && this.position < this.body.length
  }

  /** An array must end where its head said. */
  private finish(): void {
    if (this.position < this.body.length) {
      this.batch.refuse('invalid_msgpack', 'bytes after the end of the array; they were not read')
    } else if (this.left > 0 && this.isArray) {
      this.batch.refuse('invalid_msgpack', `the array ends ${this.left} records early`)
    }
  }
}

function msgpackReader(body: Buffer, batch: IngestBatch): Reader {
  const records = new MsgpackRecords(body, batch)
  return (recordsMax) => records.take(recordsMax)
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

function bodyReader(body: Uint8Array, contentType: string | null, batch: IngestBatch): Reader {
  if (body.byteLength > INGEST_BODY_BYTES_MAX) {
    throw new ServiceError('payload_too_large', `The body may hold at most ${INGEST_BODY_BYTES_MAX} bytes.`)
  }
  const mediaType = (contentType ?? '').split(';', 1)[0].trim().toLowerCase()
  if (NDJSON_MEDIA_TYPES.includes(mediaType)) return ndjsonReader(bufferOf(body), batch)
  if (MSGPACK_MEDIA_TYPES.includes(mediaType)) return msgpackReader(bufferOf(body), batch)
  throw new ServiceError(
    'unsupported_media_type',
    'Send application/x-ndjson (a record a line) or application/msgpack.',
  )
}

/**
 * Applies a whole body at once.
 * @param receivedAtMs Unix ms; the same for every record of the body.
 * @throws ServiceError `unsupported_media_type`, `payload_too_large`.
 */
export function ingest(
  body: Uint8Array,
  contentType: string | null,
  sink: EventSink,
  receivedAtMs: number,
): IngestResult {
  const batch = new IngestBatch(sink, receivedAtMs)
  bodyReader(body, contentType, batch)(Number.POSITIVE_INFINITY)
  return batch.result()
}

/** A market that tells its time. */
export interface TimedSink extends EventSink {
  /** Market time, Unix ms. */
  readonly timeMs: number
}

/**
 * As `ingest`, but lets the event loop turn between slices: a body of 16 MiB does not hold up the readers. Each slice has
 * a time of receipt of its own, later than any that a reader was told between the slices: what was read at a time
 * stays what was in effect at that time.
 */
export async function ingestInSlices(
  body: Uint8Array,
  contentType: string | null,
  market: TimedSink,
  clock: Pick<Clock, 'now'>,
): Promise<IngestResult> {
  const batch = new IngestBatch(market, clock.now())
  const read = bodyReader(body, contentType, batch)
  while (read(INGEST_SLICE_RECORDS)) {
    await nextTurn()
    batch.receivedAtMs = Math.max(clock.now(), market.timeMs + 1)
  }
  return batch.result()
}

/** A JSON array of records, or null where the text is none (one record, or a record a line). */
function jsonArray(text: string): unknown[] | null {
  if (!text.trimStart().startsWith('[')) return null
  try {
    return JSON.parse(text) as unknown[]
  } catch {
    return null
  }
}

/**
 * Applies one frame of a held connection: binary is msgpack, text is JSON (one record, an array of them, or a record a
 * line).
 * @throws ServiceError `payload_too_large`.
 */
export function ingestFrame(
  frame: Uint8Array,
  isBinary: boolean,
  sink: EventSink,
  receivedAtMs: number,
): IngestResult {
  if (frame.byteLength > INGEST_FRAME_BYTES_MAX) {
    throw new ServiceError('payload_too_large', `A frame may hold at most ${INGEST_FRAME_BYTES_MAX} bytes.`)
  }
  const batch = new IngestBatch(sink, receivedAtMs)
  const bytes = bufferOf(frame)
  const records = isBinary || !isUtf8(bytes) ? null : jsonArray(bytes.toString('utf8'))
  if (records !== null) for (const record of records) batch.take(record, true)
  else (isBinary ? msgpackReader : ndjsonReader)(bytes, batch)(Number.POSITIVE_INFINITY)
  return batch.result()
}
