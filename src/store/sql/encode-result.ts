// Encodes the first rows of a result as JSON or CSV, as many as are wanted and fit into the bytes that an answer may have.

import { csvLine } from '../../lib/text/csv.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import { StoreError } from '../errors.ts'
import type { QueryResult } from '../query/lake-reader.ts'
import type { Plain } from '../query/plain-value.ts'
import type { QueryAnswer, QueryFormat } from '../types.ts'

export type EncodedResult = Pick<QueryAnswer, 'columns' | 'rows' | 'isTruncated' | 'text'>

/** How the rows of a format are put together. */
const FORMATS: Readonly<
  Record<QueryFormat, { row: (row: Plain[]) => string; between: string; start: string; end: string }>
> = {
  json: { row: jsonLine, between: ',', start: '[', end: ']' },
  csv: { row: csvLine, between: '', start: '', end: '' },
}

/** @throws StoreError `query_too_costly` where the names of the columns or the first row are too large. */
export async function encodeResult(
  { columns, batches }: QueryResult,
  format: QueryFormat,
  { rowsMax, bytesMax }: { rowsMax: number; bytesMax: number },
): Promise<EncodedResult> {
  const { row: encode, between, start, end } = FORMATS[format]
  const head = format === 'csv' ? csvLine(columns.map(({ name }) => name)) : ''
  const parts = [head + start]
  let [rows, bytes, isTruncated] = [0, Buffer.byteLength(jsonLine(columns) + head), false]
  if (bytes > bytesMax) throw tooLarge('The list of columns', bytesMax)
  take: for await (const batch of batches) {
    for (const row of batch) {
      const text = (rows === 0 ? '' : between) + encode(row)
      bytes += Buffer.byteLength(text)
      isTruncated = rows === rowsMax || bytes > bytesMax
      if (isTruncated) break take
      parts.push(text)
      rows++
    }
  }
  if (rows === 0 && isTruncated) throw tooLarge('A row of the result', bytesMax)
  parts.push(end)
  return { columns, rows, isTruncated, text: Buffer.from(parts.join('')) }
}

const tooLarge = (what: string, bytesMax: number): StoreError =>
  new StoreError('query_too_costly', `${what} is larger than ${bytesMax} bytes: ask for less of it`)
