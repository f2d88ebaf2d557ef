// Encodes what a stream sends: lines of NDJSON over HTTP; JSON or msgpack messages over a WebSocket. Rows arrive as NDJSON and
// are never stringified again.
import { toMsgpack } from './items.ts'

export type StreamFormat = 'ndjson' | 'json' | 'msgpack'

const NEWLINE = 10
const COMMA = 44
const CLOSE_BRACKET = 93
const CLOSE_BRACE = 125

/** A line or message about the stream itself, without rows. */
export function controlFrame(format: StreamFormat, fields: object): Buffer {
  // JSON leaves out fields that are undefined; msgpack has no value for them, so they are left out here too.
  if (format === 'msgpack')
    return toMsgpack(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))
  return Buffer.from(format === 'json' ? JSON.stringify(fields) : `${JSON.stringify(fields)}\n`)
}

/** Rows, together with the fields of `head`. NDJSON has no message around the rows, so there the head is left out. */
export function rowsFrame(format: StreamFormat, head: object, ndjson: Buffer): Buffer {
  if (format === 'ndjson') return ndjson
  if (format === 'msgpack') return toMsgpack({ ...head, rows: parseRows(ndjson) })
  const start = `${JSON.stringify(head).slice(0, -1)},"rows":[`
  const startBytes = Buffer.byteLength(start)
  // The closing bracket takes the place of the last row's newline.
  const rowsBytes = Math.max(1, ndjson.length)
  const frame = Buffer.allocUnsafeSlow(startBytes + rowsBytes + 1)
  frame.write(start, 0)
  frame.set(ndjson, startBytes)
  replaceNewlines(frame, startBytes, startBytes + ndjson.length)
  frame[startBytes + rowsBytes - 1] = CLOSE_BRACKET
  frame[startBytes + rowsBytes] = CLOSE_BRACE
  return frame
}

/** Puts commas between the rows. JSON escapes a newline inside a string, so every newline byte ends a row. */
function replaceNewlines(bytes: Buffer, from: number, to: number): void {
  for (let at = bytes.indexOf(NEWLINE, from); at !== -1 && at < to; at = bytes.indexOf(NEWLINE, at + 1))
    bytes[at] = COMMA
}

const parseRows = (ndjson: Buffer): unknown[] =>
  JSON.parse(`[${ndjson.toString().trimEnd().replaceAll('\n', ',')}]`)
