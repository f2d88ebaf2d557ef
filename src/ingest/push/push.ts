// Pushed market events: a body or WebSocket frame of records, NDJSON or msgpack, is read and delivered to the sink.

import { isUtf8 } from 'node:buffer'
import type { Clock } from '../../lib/clock.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { nextTurn } from '../../lib/wait.ts'
import { ServiceError } from '../../schema/errors.ts'
import { MSGPACK_MEDIA_TYPES, NDJSON_MEDIA_TYPES } from '../../schema/media-types.ts'
import { INGEST_BODY_BYTES_MAX, INGEST_FRAME_BYTES_MAX, INGEST_RECORD_BYTES_MAX } from '../limits.ts'
import { ALWAYS_ROOM, type Room } from '../types.ts'
import { type BodyReader, IngestBatch, type IngestResult, type RecordSink } from './ingest-batch.ts'
import { MsgpackBody } from './msgpack-body.ts'
import { NdjsonBody } from './ndjson-body.ts'

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

function openBody(body: Uint8Array, contentType: string | null, batch: IngestBatch): BodyReader {
  if (body.byteLength > INGEST_BODY_BYTES_MAX) {
    throw new ServiceError('payload_too_large', `The body may hold at most ${INGEST_BODY_BYTES_MAX} bytes.`)
  }
  const mediaType = (contentType ?? '').split(';', 1)[0].trim().toLowerCase()
  if (NDJSON_MEDIA_TYPES.includes(mediaType)) return new NdjsonBody(toBuffer(body), batch)
  if (MSGPACK_MEDIA_TYPES.includes(mediaType)) return new MsgpackBody(toBuffer(body), batch)
  throw new ServiceError(
    'unsupported_media_type',
    'Send application/x-ndjson (one record per line) or application/msgpack.',
  )
}

function readAll(reader: BodyReader, batch: IngestBatch): IngestResult {
  while (reader.readSlice());
  return batch.result()
}

/**
 * Applies a whole body without a pause.
 * @param receivedAtMs Unix ms, for every record of the body.
 * @throws ServiceError `unsupported_media_type`, `payload_too_large`.
 */
export function ingest(
  body: Uint8Array,
  contentType: string | null,
  sink: RecordSink,
  receivedAtMs: number,
): IngestResult {
  const batch = new IngestBatch(sink, receivedAtMs)
  return readAll(openBody(body, contentType, batch), batch)
}

/**
 * As `ingest`, but lets the event loop run after every slice of `INGEST_SLICE_RECORDS` records or `INGEST_SLICE_BYTES`, so that a body
 * of 16 MiB does not delay readers, and waits for room before each. Each slice is received later than any market time that readers saw
 * before it: what they read for a time stays true for that time.
 */
export async function ingestInSlices(
  body: Uint8Array,
  contentType: string | null,
  sink: RecordSink,
  market: { readonly timeMs: number },
  clock: Pick<Clock, 'now'>,
  room: Room = ALWAYS_ROOM,
): Promise<IngestResult> {
  const batch = new IngestBatch(sink, clock.now())
  const reader = openBody(body, contentType, batch)
  for (let waiting = room(); ; waiting = nextTurn()) {
    // Asked right before each slice: many bodies may have waited for the same room.
    while (waiting !== null) {
      await waiting
      batch.receivedAtMs = Math.max(clock.now(), market.timeMs + 1)
      waiting = room()
    }
    if (!reader.readSlice()) return batch.result()
  }
}

/**
 * Applies one WebSocket frame. A binary frame is msgpack; a text frame is JSON: one record, an array of records, or one record
 * per line. One record or array may stand on several lines.
 * @throws ServiceError `payload_too_large`.
 */
export function ingestFrame(
  frame: Uint8Array,
  isBinary: boolean,
  sink: RecordSink,
  receivedAtMs: number,
): IngestResult {
  if (frame.byteLength > INGEST_FRAME_BYTES_MAX) {
    throw new ServiceError('payload_too_large', `A frame may hold at most ${INGEST_FRAME_BYTES_MAX} bytes.`)
  }
  const batch = new IngestBatch(sink, receivedAtMs)
  const body = toBuffer(frame)
  const records = isBinary ? null : readJsonValue(body)
  if (records !== null) {
    for (const record of records) batch.addRecord(record, true)
    return batch.result()
  }
  const reader = isBinary ? new MsgpackBody(body, batch) : new NdjsonBody(body, batch)
  return readAll(reader, batch)
}

/** The records of an array, or the one on several lines, that a text is; null where it is something else. */
function readJsonValue(body: Buffer): readonly unknown[] | null {
  if (!isUtf8(body)) return null
  // Also without a byte order mark.
  const text = body.toString('utf8').trim()
  const isOnLines = text.startsWith('{') && text.includes('\n') && body.length <= INGEST_RECORD_BYTES_MAX
  if (!isOnLines && !text.startsWith('[')) return null
  // One record a line is no value as a whole.
  const value = parseJson(text)
  if (value === undefined) return null
  return Array.isArray(value) ? value : [value]
}
