// Reads a Parquet, CSV or NDJSON file of trades with DuckDB, in the order of the file and with bounded memory.
import { stat } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { duckdb, NO_EXTENSIONS } from '../../store/duckdb/duckdb.ts'
import { query } from '../../store/duckdb/query.ts'
import { ResultStream } from '../../store/duckdb/result-stream.ts'
import { identifier, literal } from '../../store/duckdb/sql.ts'
import { StoreError } from '../../store/errors.ts'
import {
  TIME_SAMPLE_ROWS,
  TRADE_BATCH_ROWS,
  TRADE_BATCH_ROWS_MAX,
  TRADE_FILE_MEMORY_LIMIT,
  TRADE_FILE_THREADS,
  TRADE_SYMBOLS_MAX,
} from '../limits.ts'
import { findDamage } from './compressed-file.ts'
import type { TradeBatch } from './trade-batch.ts'
import {
  type FileColumn,
  inferUnit,
  invalid,
  isNumericTime,
  numberSql,
  resolveColumns,
  sideSql,
  type TimeUnit,
  type TradeColumns,
  type TradeMapping,
  textSql,
  timeSql,
} from './trade-columns.ts'
import { TradeReader, tooManySymbols } from './trade-reader.ts'

export type { TradeBatch } from './trade-batch.ts'
export type { TimeUnit, TradeMapping } from './trade-columns.ts'

export const TRADE_FORMATS = ['parquet', 'csv', 'ndjson'] as const
export type TradeFormat = (typeof TRADE_FORMATS)[number]

export interface TradeFileOptions {
  path: string
  mapping?: TradeMapping
  /** Inferred from the file's name when left out. */
  format?: TradeFormat
  /** The unit of a numeric time; inferred from a sample when left out. */
  tsUnit?: TimeUnit
  batchRows?: number
}

export interface TradeFile {
  /** Null for formats whose rows cannot be counted without reading them. */
  rowsTotal: number | null
  columns: readonly FileColumn[]
  /** The unit of a numeric time; null for timestamps. */
  tsUnit: TimeUnit | null
  /** May be iterated once. Closes the file at its end, or when the iteration is left early. */
  batches: AsyncGenerator<TradeBatch>
  /** Closes a file that is not read. May be called more than once. */
  close(): Promise<void>
}

const FORMATS_BY_NAME: readonly [RegExp, TradeFormat][] = [
  [/\.(parquet|pq)$/i, 'parquet'],
  [/\.(csv|tsv|txt)(\.gz|\.zst)?$/i, 'csv'],
  [/\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i, 'ndjson'],
]

function detectFormat({ path, format }: TradeFileOptions): TradeFormat {
  const found = format ?? FORMATS_BY_NAME.find(([pattern]) => pattern.test(path))?.[1]
  if (found === undefined)
    throw invalid(
      `the format of ${path} is not clear from its name; declare it as one of ${TRADE_FORMATS.join(', ')}`,
    )
  return found
}

const TABLE_FUNCTIONS: Record<TradeFormat, (path: string) => string> = {
  parquet: (path) => `read_parquet(${literal(path)})`,
  csv: (path) => `read_csv(${literal(path)})`,
  ndjson: (path) => `read_json(${literal(path)}, format = 'newline_delimited')`,
}

async function connect(): Promise<{ connection: DuckDBConnection; close(): void }> {
  const instance = await duckdb.DuckDBInstance.create(':memory:', {
    threads: String(TRADE_FILE_THREADS),
    memory_limit: TRADE_FILE_MEMORY_LIMIT,
    preserve_insertion_order: 'true',
    ...NO_EXTENSIONS,
  })
  const connection = await instance.connect()
  await connection.run("SET TimeZone = 'UTC'")
  const close = (): void => {
    connection.closeSync()
    instance.closeSync()
  }
  return { connection, close }
}

async function readColumns(connection: DuckDBConnection, table: string): Promise<FileColumn[]> {
  const rows = await query<{ column_name: string; column_type: string }>(
    connection,
    `DESCRIBE SELECT * FROM ${table}`,
  )
  return rows.map(({ column_name, column_type }) => ({ name: column_name, type: column_type }))
}

async function sampleUnit(connection: DuckDBConnection, table: string, ts: FileColumn): Promise<TimeUnit> {
  const name = identifier(ts.name)
  const [sample] = await query<{ min: number | null; max: number | null }>(
    connection,
    `SELECT min(ts)::DOUBLE AS min, max(ts)::DOUBLE AS max FROM (SELECT ${name} AS ts FROM ${table} LIMIT ${TIME_SAMPLE_ROWS})`,
  )
  return inferUnit(ts, sample.min, sample.max)
}

/**
 * Numbers the symbols of a Parquet file in DuckDB, as an ENUM type, so that the query gives a number per row and no text. The
 * other formats would have to be parsed twice for that; `TradeReader` numbers their symbols.
 * @returns the symbols in the order of their codes.
 */
async function numberSymbols(
  connection: DuckDBConnection,
  table: string,
  symbol: FileColumn,
): Promise<string[]> {
  const text = textSql(symbol)
  const distinct = await query<{ symbol: string }>(
    connection,
    `SELECT DISTINCT ${text} AS symbol FROM ${table} WHERE ${text} <> '' LIMIT ${TRADE_SYMBOLS_MAX + 1}`,
  )
  if (distinct.length > TRADE_SYMBOLS_MAX) throw tooManySymbols()
  if (distinct.length === 0) return []
  await connection.run(
    `CREATE TYPE symbols AS ENUM (SELECT DISTINCT ${text} FROM ${table} WHERE ${text} <> '')`,
  )
  const rows = await query<{ symbol: string }>(
    connection,
    'SELECT unnest(enum_range(NULL::symbols))::VARCHAR AS symbol',
  )
  return rows.map((row) => row.symbol)
}

/** Opens a file of trades. @throws StoreError `invalid` when the file cannot be read or does not fit the mapping. */
export async function openTradeFile(options: TradeFileOptions): Promise<TradeFile> {
  const batchRows = options.batchRows ?? TRADE_BATCH_ROWS
  if (!(Number.isInteger(batchRows) && batchRows > 0 && batchRows <= TRADE_BATCH_ROWS_MAX)) {
    throw invalid(`batchRows must be a whole number from 1 to ${TRADE_BATCH_ROWS_MAX}`)
  }
  const format = detectFormat(options)
  const file = await stat(options.path).catch(() => null)
  if (file?.isFile() !== true) throw invalid(`there is no file ${options.path}`)
  const database = await connect()
  try {
    return await openTable(database, options, format, batchRows)
  } catch (error) {
    database.close()
    if (error instanceof StoreError) throw error
    throw invalid(`${options.path} cannot be read as ${format}: ${errorMessage(error)}`)
  }
}

async function openTable(
  database: { connection: DuckDBConnection; close(): void },
  options: TradeFileOptions,
  format: TradeFormat,
  batchRows: number,
): Promise<TradeFile> {
  const { connection } = database
  const table = TABLE_FUNCTIONS[format](options.path)
  const available = await readColumns(connection, table)
  const columns = resolveColumns(options.mapping ?? {}, available)
  const isNumeric = isNumericTime(columns.ts)
  const tsUnit = isNumeric ? (options.tsUnit ?? (await sampleUnit(connection, table, columns.ts))) : null
  const dictionary = format === 'parquet' ? await numberSymbols(connection, table, columns.symbol) : null
  const isNumbered = dictionary !== null && dictionary.length > 0
  const sql = selectTrades(table, columns, tsUnit ?? 'ms', isNumbered)
  const rowsTotal = format === 'parquet' ? await parquetRows(connection, options.path) : null
  const reader = new TradeReader(columns, isNumbered ? dictionary : null, batchRows)
  const closing = new AbortController()
  const close = async (): Promise<void> => {
    if (closing.signal.aborted) return
    closing.abort()
    database.close()
  }
  let damage: Promise<string | null> | null = null
  const batches = reader.read({
    open: () => {
      // While the rows are read, so that it is known when they end.
      damage = findDamage(options.path, closing.signal)
      return ResultStream.open(connection, sql)
    },
    rowsTotal,
    findDamage: () => damage ?? Promise.resolve(null),
    close,
  })
  return { rowsTotal, columns: available, tsUnit, batches, close }
}

async function parquetRows(connection: DuckDBConnection, path: string): Promise<number> {
  const sql = `SELECT sum(num_rows)::DOUBLE AS rows FROM parquet_file_metadata(${literal(path)})`
  return (await query<{ rows: number }>(connection, sql))[0].rows
}

function selectTrades(table: string, columns: TradeColumns, unit: TimeUnit, isNumbered: boolean): string {
  const text = textSql(columns.symbol)
  const symbol = isNumbered ? `enum_code(nullif(${text}, '')::symbols)::DOUBLE` : text
  const list = [timeSql(columns.ts, unit), numberSql(columns.price), numberSql(columns.size), symbol]
  if (columns.side !== null) list.push(sideSql(columns.side))
  if (columns.wallet !== null) list.push(textSql(columns.wallet))
  if (columns.tx !== null) list.push(textSql(columns.tx))
  return `SELECT ${list.join(', ')} FROM ${table}`
}
