// In: rows as the engine made them, and what is to be told of a stream. Out: their bytes in the stream's format: lines
// of NDJSON over HTTP; JSON or msgpack messages over a WebSocket. Never stringifies a row.
import { toMsgpack } from './items.ts'
import { parseRows, wrapRows } from './ndjson-rows.ts'

export type StreamFormat = 'ndjson' | 'json' | 'msgpack'

/** Something told of the stream itself: a line or a message without rows. */
export function controlFrame(format: StreamFormat, fields: object): Buffer {
  // As in JSON, what is undefined is left out: msgpack has no plain word for it.
  if (format === 'msgpack')
    return toMsgpack(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))
  return Buffer.from(format === 'json' ? JSON.stringify(fields) : `${JSON.stringify(fields)}\n`)
}

/** Rows under their head. In NDJSON rows speak for themselves: there the head is left out. */
export function rowsFrame(format: StreamFormat, head: object, ndjson: Buffer): Buffer {
  if (format === 'ndjson') return ndjson
  if (format === 'msgpack') return toMsgpack({ ...head, rows: parseRows(ndjson) })
  return wrapRows(`${JSON.stringify(head).slice(0, -1)},"rows":[`, ndjson, '}')
}
