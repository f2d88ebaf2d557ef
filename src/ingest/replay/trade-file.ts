// Reads a Parquet, CSV or JSON file of trades in the order of their times and with bounded memory.
import { stat } from 'node:fs/promises'
import { errorMessage } from '../../lib/error-text.ts'
import { StoreError } from '../../store/errors.ts'
import { TRADE_BATCH_ROWS } from '../limits.ts'
import { openCsv } from './csv-trades.ts'
import { openJson } from './json-trades.ts'
import { openParquet } from './parquet-trades.ts'
import { inTimeOrder } from './time-order.ts'
import { checkBatchRows } from './trade-batch-builder.ts'
import { invalid } from './trade-columns.ts'
import type { SourceOptions, TradeFile } from './trade-source.ts'
import { untilWholeEnd } from './whole-file.ts'

/** `symbol` is that of all rows, of a file without a column for it. */
export type TradeFileOptions = Partial<SourceOptions> & Pick<SourceOptions, 'path'>

type Format = 'Parquet' | 'CSV' | 'JSON'
const FORMATS_BY_NAME: readonly [RegExp, Format][] = [
  [/\.(parquet|pq)$/i, 'Parquet'],
  [/\.(csv|tsv|txt)(\.gz|\.zst)?$/i, 'CSV'],
  [/\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i, 'JSON'],
]
const OPEN: Record<Format, (options: SourceOptions) => Promise<TradeFile>> = {
  Parquet: openParquet,
  CSV: openCsv,
  JSON: openJson,
}

function detectFormat(path: string): Format {
  const found = FORMATS_BY_NAME.find(([pattern]) => pattern.test(path))?.[1]
  if (found !== undefined) return found
  const hint = /\.(zip|7z|tar|tgz|rar|bz2|xz)$/i.test(path) ? 'unpack it' : 'rename it'
  throw invalid(
    `the format of ${path} is not clear from its name: ${hint}, so that it ends with .parquet, .csv, .tsv, .txt, .json, ` +
      '.jsonl or .ndjson, or with one of these and .gz or .zst',
  )
}

/** Opens a file of trades. @throws StoreError `invalid` when the file cannot be read or does not fit the mapping. */
export async function openTradeFile(options: TradeFileOptions): Promise<TradeFile> {
  const { path, mapping = {}, symbol = null } = options
  const batchRows = checkBatchRows(options.batchRows ?? TRADE_BATCH_ROWS)
  const format = detectFormat(path)
  const entry = await stat(path).catch(() => null)
  if (entry?.isFile() !== true) throw invalid(`there is no file ${path}`)
  const describe = (error: unknown, what: string): StoreError =>
    error instanceof StoreError ? error : invalid(`${path} cannot be read ${what}: ${errorMessage(error)}`)
  try {
    const file = await OPEN[format]({ path, mapping, symbol, batchRows })
    const whole = { ...file, batches: untilWholeEnd(file, path) }
    const batches = inTimeOrder(whole, path, (error) => describe(error, 'to its end'))
    return { ...file, batches }
  } catch (error) {
    throw describe(error, `as ${format}`)
  }
}
