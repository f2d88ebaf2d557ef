// Rows of NDJSON as elements of a JSON array. A newline inside a string is escaped in JSON, so each newline byte ends a row.
const NEWLINE = 10
const COMMA = 44
const CLOSE_BRACKET = 93

const MINT_START = '{"mint":"'
const QUOTE = 34

/** The mint of a row of the market list, with which every row begins. */
export const mintOfRow = (line: Buffer): string =>
  line.toString('latin1', MINT_START.length, line.indexOf(QUOTE, MINT_START.length))

/** The rows as values, in order. */
export const parseRows = (ndjson: Buffer): unknown[] =>
  JSON.parse(`[${ndjson.toString().trimEnd().replaceAll('\n', ',')}]`)

/**
 * The rows between two texts, as the elements of an array that `start` has opened.
 * @param start ends with `[`. @param end follows the closing bracket.
 */
export function wrapRows(start: string, ndjson: Buffer, end: string): Buffer {
  const rowsAt = Buffer.byteLength(start)
  // The bracket replaces the newline of the last row.
  const bracketAt = rowsAt + Math.max(0, ndjson.length - 1)
  const body = Buffer.allocUnsafe(bracketAt + 1 + Buffer.byteLength(end))
  body.write(start)
  ndjson.copy(body, rowsAt)
  for (let at = body.indexOf(NEWLINE, rowsAt); at !== -1 && at < bracketAt; ) {
    body[at] = COMMA
    at = body.indexOf(NEWLINE, at + 1)
  }
  body[bracketAt] = CLOSE_BRACKET
  body.write(end, bracketAt + 1)
  return body
}
