// In: a body or frame of records (NDJSON or msgpack), the time of its receipt. Out: events in the sink, and what became
// of each record. A bad record never spoils its neighbours. Never waits, never answers HTTP: the hall does.
import { isUtf8 } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { C1, Unpackr } from 'msgpackr'
import { ServiceError } from '../schema/errors.ts'
import type { EventRejection, EventSink } from '../schema/event.ts'
import {
  INGEST_BODY_BYTES_MAX,
  INGEST_ERRORS_MAX,
  INGEST_FRAME_BYTES_MAX,
  INGEST_LINE_CHARS_MIN,
  INGEST_SLICE_RECORDS,
} from './limits.ts'
import { isFault, readRecord } from './record.ts'

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

const NDJSON_TYPES: ReadonlySet<string> = new Set([
  'application/x-ndjson',
  'application/ndjson',
  'application/jsonl',
])
const MSGPACK_TYPES: ReadonlySet<string> = new Set([
  'application/msgpack',
  'application/x-msgpack',
  'application/vnd.msgpack',
])
const REJECTION_MESSAGES = {
  late: 'ts: older than the bars still open to late trades',
  sol_price_unknown: 'priceUsd is missing and no solPrice has come yet',
  price_unknown: 'no finite price above zero follows from this trade',
} as const satisfies Record<EventRejection, string>

/** Takes records one by one and keeps the account of them. */
class Intake implements IngestResult {
  accepted = 0
  rejected = 0
  readonly errors: IngestError[] = []
  private readonly sink: EventSink
  private readonly receivedAtMs: number

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

  take(record: unknown): void {
    const event = readRecord(record, this.receivedAtMs)
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

function takeLine(line: string, intake: Intake): void {
  const isHopeless = intake.full && line.length < INGEST_LINE_CHARS_MIN
  const record = isHopeless ? undefined : parseLine(line)
  if (record === undefined) intake.refuse('invalid_json', 'not valid JSON')
  else intake.take(record)
}

const OPEN_BRACE = 0x7b
const isBlank = (line: string): boolean => line.charCodeAt(0) !== OPEN_BRACE && line.trim() === ''

function textReader(text: string, intake: Intake): Reader {
  let position = text.charCodeAt(0) === 0xfeff ? 1 : 0
  return (recordsMax) => {
    for (let taken = 0; taken < recordsMax && position < text.length; taken++) {
      const newline = text.indexOf('\n', position)
      const end = newline === -1 ? text.length : newline
      const line = text.slice(position, end)
      position = end + 1
      if (!isBlank(line)) takeLine(line, intake)
    }
    return position < text.length
  }
}

/** For a body that is not UTF-8 as a whole: only the lines that are not are lost. */
function bytesReader(body: Buffer, intake: Intake): Reader {
  let position = 0
  return (recordsMax) => {
    for (let taken = 0; taken < recordsMax && position < body.length; taken++) {
      const newline = body.indexOf(0x0a, position)
      const end = newline === -1 ? body.length : newline
      const line = body.subarray(position, end)
      position = end + 1
      if (!isUtf8(line)) intake.refuse('invalid_json', 'not valid UTF-8')
      else if (!isBlank(line.toString('utf8'))) takeLine(line.toString('utf8'), intake)
    }
    return position < body.length
  }
}

function ndjsonReader(body: Buffer, intake: Intake): Reader {
  return isUtf8(body) ? textReader(body.toString('utf8'), intake) : bytesReader(body, intake)
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
 * The callback's own errors are bugs, not bad input, and are thrown as they are.
 */
function msgpackReader(body: Buffer, intake: Intake): Reader {
  const head = arrayHead(body)
  let position = head?.bytes ?? 0
  let left = head?.items ?? Number.POSITIVE_INFINITY
  return (recordsMax) => {
    let taken = 0
    let bug: { error: unknown } | null = null
    const base = position
    try {
      if (left > 0 && position < body.length) {
        unpackr.unpackMultiple(body.subarray(base), (record: unknown, _start?: number, end?: number) => {
          if (record === C1) throw new Error('0xc1 is no msgpack')
          try {
            intake.take(record)
          } catch (error) {
            bug = { error }
          }
          position = base + (end as number)
          left--
          return bug === null && ++taken < recordsMax && left > 0
        })
      }
    } catch {
      if (bug === null) intake.refuse('invalid_msgpack', 'not valid msgpack; nothing after it was read')
      left = 0
      position = body.length
    }
    if (bug !== null) throw (bug as { error: unknown }).error
    return msgpackLeft()
  }

  function msgpackLeft(): boolean {
    if (position < body.length) {
      if (left > 0) return true
      intake.refuse('invalid_msgpack', 'bytes after the end of the array; they were not read')
    } else if (left > 0 && head !== null) {
      intake.refuse('invalid_msgpack', `the array ends ${left} records early`)
    }
    return false
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

function bodyReader(body: Uint8Array, contentType: string | null, intake: Intake): Reader {
  if (body.byteLength > INGEST_BODY_BYTES_MAX) {
    throw new ServiceError('payload_too_large', `The body may hold at most ${INGEST_BODY_BYTES_MAX} bytes.`)
  }
  const mediaType = (contentType ?? '').split(';', 1)[0].trim().toLowerCase()
  if (NDJSON_TYPES.has(mediaType)) return ndjsonReader(bufferOf(body), intake)
  if (MSGPACK_TYPES.has(mediaType)) return msgpackReader(bufferOf(body), intake)
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
  const intake = new Intake(sink, receivedAtMs)
  bodyReader(body, contentType, intake)(Number.POSITIVE_INFINITY)
  return intake.result()
}

/** As `ingest`, but lets the event loop turn between slices: a body of 16 MiB does not hold up the readers. */
export async function ingestInSlices(
  body: Uint8Array,
  contentType: string | null,
  sink: EventSink,
  receivedAtMs: number,
): Promise<IngestResult> {
  const intake = new Intake(sink, receivedAtMs)
  const read = bodyReader(body, contentType, intake)
  while (read(INGEST_SLICE_RECORDS)) await nextTurn()
  return intake.result()
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
  const intake = new Intake(sink, receivedAtMs)
  const bytes = bufferOf(frame)
  const records = isBinary || !isUtf8(bytes) ? null : jsonArray(bytes.toString('utf8'))
  if (records !== null) for (const record of records) intake.take(record)
  else (isBinary ? msgpackReader : ndjsonReader)(bytes, intake)(Number.POSITIVE_INFINITY)
  return intake.result()
}
