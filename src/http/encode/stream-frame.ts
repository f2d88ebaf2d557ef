// In: rows as the engine made them, and what is to be told of a stream. Out: their bytes in the stream's format: lines
// of NDJSON over HTTP; JSON or msgpack messages over a WebSocket. Never stringifies a row.
import { toMsgpack } from './items.ts'

export type StreamFormat = 'ndjson' | 'json' | 'msgpack'

const NEWLINE = 10
const COMMA = 44
const CLOSE_BRACKET = 93
const CLOSE_BRACE = 125

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
  if (format === 'msgpack') return toMsgpack({ ...head, rows: rowsOf(ndjson) })
  const start = `${JSON.stringify(head).slice(0, -1)},"rows":[`
  const startBytes = Buffer.byteLength(start)
  // The newline of the last row makes room for the bracket.
  const rowsBytes = Math.max(1, ndjson.length)
  const frame = Buffer.allocUnsafeSlow(startBytes + rowsBytes + 1)
  frame.write(start, 0)
  frame.set(ndjson, startBytes)
  commasBetween(frame, startBytes, startBytes + ndjson.length)
  frame[startBytes + rowsBytes - 1] = CLOSE_BRACKET
  frame[startBytes + rowsBytes] = CLOSE_BRACE
  return frame
}

/** A newline inside a string is escaped in JSON, so every newline byte stands between rows. */
function commasBetween(bytes: Buffer, from: number, to: number): void {
  for (let at = bytes.indexOf(NEWLINE, from); at !== -1 && at < to; at = bytes.indexOf(NEWLINE, at + 1))
    bytes[at] = COMMA
}

const rowsOf = (ndjson: Buffer): unknown[] =>
  JSON.parse(`[${ndjson.toString().trimEnd().replaceAll('\n', ',')}]`)
