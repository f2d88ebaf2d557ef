// Whether a file of trades was read to its end: nothing that broke off passes for a shorter file.
import { open } from 'node:fs/promises'
import { errorMessage } from '../../lib/error-text.ts'
import { StoreError } from '../../store/errors.ts'
import type { TradeBatch } from './trade-batch.ts'
import { invalid } from './trade-columns.ts'
import type { TradeFile } from './trade-source.ts'

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d]

/** The batches of a file. @throws StoreError `invalid`, after the rows that could be read, where these are not all of the file */
export async function* untilWholeEnd(
  { batches, rowsTotal }: Pick<TradeFile, 'batches' | 'rowsTotal'>,
  path: string,
): AsyncGenerator<TradeBatch> {
  let rows = 0
  let endsWithFault = false
  try {
    for await (const batch of batches) {
      rows += batch.rows
      endsWithFault = batch.faults.get(batch.rows - 1)?.reason === 'row_malformed'
      yield batch
    }
    if (endsWithFault && !(await endsWithLine(path))) throw new Error('it ends within a row')
    if (rowsTotal !== null && rows !== rowsTotal) throw new Error(`it has ${rowsTotal} rows by its own count`)
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw invalid(`the file cannot be read beyond row ${rows}: ${firstLines(error)}`)
  }
}

/** Whether the file ends with the end of a line. Of a compressed one nobody knows without reading it again: its end is proven by others. */
async function endsWithLine(path: string): Promise<boolean> {
  if (/\.(gz|zst)$/i.test(path)) return true
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    // In UTF-16 the line feed is one of the last two bytes.
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, Math.max(0, size - 2))
    return buffer.subarray(0, bytesRead).some((byte) => byte === LINE_FEED || byte === CARRIAGE_RETURN)
  } finally {
    await file.close()
  }
}

/** DuckDB's message without its advice, which names settings of DuckDB. */
const firstLines = (error: unknown): string =>
  errorMessage(error)
    .split(/\n\s*(?:\n|Possible |Column |Try )/, 1)[0]
    .replace(/ Try (?:increasing|setting) .*$/s, '')
    .split('\n')
    .map((line) => line.trim())
    .join('; ')
