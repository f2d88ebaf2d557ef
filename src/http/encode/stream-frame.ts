// Encodes what a stream sends: lines of NDJSON over HTTP; JSON or msgpack messages over a WebSocket. Rows arrive as NDJSON and
// are never stringified again.
import { jsonLine } from '../../lib/text/json-text.ts'
import { toMsgpack } from './items.ts'
import { parseRows, wrapRows } from './ndjson-rows.ts'

export type StreamFormat = 'ndjson' | 'json' | 'msgpack'

/** A line or message about the stream itself, without rows. */
export function controlFrame(format: StreamFormat, fields: object): Buffer {
  // JSON leaves out fields that are undefined; msgpack has no value for them, so they are left out here too.
  if (format === 'msgpack')
    return toMsgpack(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))
  return Buffer.from(format === 'json' ? jsonLine(fields) : `${jsonLine(fields)}\n`)
}

/** Rows, together with the fields of `head`. NDJSON has no message around the rows, so there the head is left out. */
export function rowsFrame(format: StreamFormat, head: object, ndjson: Buffer): Buffer {
  if (format === 'ndjson') return ndjson
  if (format === 'msgpack') return toMsgpack({ ...head, rows: parseRows(ndjson) })
  return wrapRows(`${jsonLine(head).slice(0, -1)},"rows":[`, ndjson, '}')
}
