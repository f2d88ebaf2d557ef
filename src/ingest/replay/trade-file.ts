// Reads a Parquet, CSV or JSON file of trades in the order of their times and with bounded memory.
import { open, stat } from 'node:fs/promises'
import { errorMessage } from '../../lib/error-text.ts'
import { StoreError } from '../../store/errors.ts'
import { TRADE_BATCH_ROWS } from '../limits.ts'
import { openCsv } from './csv-trades.ts'
import { openJson } from './json-trades.ts'
import { openParquet } from './parquet-trades.ts'
import { inTimeOrder } from './time-order.ts'
import type { TradeBatch } from './trade-batch.ts'
import { invalid } from './trade-columns.ts'
import type { SourceOptions, TradeFile } from './trade-source.ts'

/** With which a file of UTF-16 begins, in either order of its bytes. */
const BYTE_ORDER_MARKS_16: ReadonlySet<string> = new Set(['fffe', 'feff'])
/** Line feed, carriage return, and the character with which DOS ends a text. */
const ENDS_OF_LINES = [0x0a, 0x0d, 0x1a]

/**
 * The batches of a file: nothing that broke off passes for a shorter one.
 * @throws StoreError `invalid`, after the rows that could be read, where these are not all of the file
 */
async function* untilWholeEnd(
  { batches, rowsTotal, isLastWhole = () => true }: TradeFile,
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
    if (endsWithFault && !isLastWhole() && !(await endsWithLine(path)))
      throw new Error('it ends within a row')
    if (rowsTotal !== null && rows !== rowsTotal) throw new Error(`it has ${rowsTotal} rows by its own count`)
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw invalid(`the file cannot be read beyond row ${rows}: ${firstLines(error)}`)
  }
}

/** Whether the file ends with the end of a line, or of the text. Of a compressed one nobody knows without reading it again: its end is proven by others. */
async function endsWithLine(path: string): Promise<boolean> {
  if (/\.(gz|zst)$/i.test(path)) return true
  const file = await open(path, 'r')
  try {
    const read = async (bytes: number, position: number): Promise<Buffer> => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, position)
      return buffer.subarray(0, bytesRead)
    }
    const { size } = await file.stat()
    const isUtf16 = BYTE_ORDER_MARKS_16.has((await read(2, 0)).toString('hex'))
    const last = await read(isUtf16 ? 2 : 1, Math.max(0, size - (isUtf16 ? 2 : 1)))
    return last.some((byte) => ENDS_OF_LINES.includes(byte))
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

/** `symbol` is that of all rows, of a file without a column for it. */
export type TradeFileOptions = Partial<SourceOptions> & Pick<SourceOptions, 'path'>

const FORMATS = [
  { format: 'Parquet', paths: /\.(parquet|pq)$/i, open: openParquet },
  { format: 'CSV', paths: /\.(csv|tsv|txt)(\.gz|\.zst)?$/i, open: openCsv },
  { format: 'JSON', paths: /\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i, open: openJson },
]

function detectFormat(path: string): (typeof FORMATS)[number] {
  const found = FORMATS.find(({ paths }) => paths.test(path))
  if (found !== undefined) return found
  const hint = /\.(zip|7z|tar|tgz|rar|bz2|xz)$/i.test(path) ? 'unpack it' : 'rename it'
  throw invalid(
    `the format of ${path} is not clear from its name: ${hint}, so that it ends with .parquet, .csv, .tsv, .txt, .json, ` +
      '.jsonl or .ndjson, or with one of these and .gz or .zst',
  )
}

/** Opens a file of trades. @throws StoreError `invalid` when the file cannot be read or does not fit the mapping. */
export async function openTradeFile(options: TradeFileOptions): Promise<TradeFile> {
  const { path, mapping = {}, symbol = null, batchRows = TRADE_BATCH_ROWS } = options
  const { format, open: openFile } = detectFormat(path)
  const entry = await stat(path).catch(() => null)
  if (entry?.isFile() !== true) throw invalid(`there is no file ${path}`)
  const describe = (error: unknown, what: string): StoreError =>
    error instanceof StoreError ? error : invalid(`${path} cannot be read ${what}: ${errorMessage(error)}`)
  try {
    const file = await openFile({ path, mapping, symbol, batchRows })
    const batches = inTimeOrder(untilWholeEnd(file, path), path, (error) => describe(error, 'to its end'))
    return { ...file, batches }
  } catch (error) {
    throw describe(error, `as ${format}`)
  }
}
