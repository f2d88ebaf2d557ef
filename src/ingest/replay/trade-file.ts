// In: a Parquet, CSV or NDJSON file of trades and a mapping of its columns. Out: its rows in batches of columns, in the
// order of the file, with bounded memory: DuckDB reads ahead a megabyte, and waits. Never sorts, never drops a row.

import { stat } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { CLOSED_TO_EXTENSIONS, duckdb } from '../../store/duckdb/duckdb.ts'
import { query } from '../../store/duckdb/query.ts'
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
import {
  type FileColumn,
  inferUnit,
  isCountedTime,
  numberSql,
  refuse,
  resolveColumns,
  sideSql,
  type TimeUnit,
  type TradeColumns,
  type TradeMapping,
  textSql,
  timeSql,
} from './trade-columns.ts'
import { type TradeFileBatch, TradeReader, tooManySymbols } from './trade-reader.ts'

export type { TimeUnit, TradeMapping } from './trade-columns.ts'
export type { TradeFileBatch } from './trade-reader.ts'

export const TRADE_FORMATS = ['parquet', 'csv', 'ndjson'] as const
export type TradeFormat = (typeof TRADE_FORMATS)[number]

export interface TradeFileOptions {
  path: string
  mapping?: TradeMapping
  /** By the file's name, unless told. */
  format?: TradeFormat
  /** Of a time that is a number; told from a sample, unless declared. */
  tsUnit?: TimeUnit
  batchRows?: number
}

export interface TradeFile {
  /** Null where counting would mean reading. */
  rowsTotal: number | null
  columns: readonly FileColumn[]
  /** The unit of a time that is a number; null where it is a timestamp. */
  tsUnit: TimeUnit | null
  /** To be read once; closes the file at its end, or when it is left early. */
  batches: AsyncGenerator<TradeFileBatch>
  /** For a file that is not read after all. */
  close(): Promise<void>
}

const NAME_FORMATS: readonly [RegExp, TradeFormat][] = [
  [/\.(parquet|pq)$/i, 'parquet'],
  [/\.(csv|tsv|txt)(\.gz|\.zst)?$/i, 'csv'],
  [/\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i, 'ndjson'],
]

function formatOf({ path, format }: TradeFileOptions): TradeFormat {
  const found = format ?? NAME_FORMATS.find(([pattern]) => pattern.test(path))?.[1]
  if (found === undefined)
    throw refuse(`the format of ${path} cannot be told; say one of ${TRADE_FORMATS.join(', ')}`)
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
    ...CLOSED_TO_EXTENSIONS,
  })
  const connection = await instance.connect()
  await connection.run("SET TimeZone = 'UTC'")
  const close = (): void => {
    connection.closeSync()
    instance.closeSync()
  }
  return { connection, close }
}

async function describe(connection: DuckDBConnection, table: string): Promise<FileColumn[]> {
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
 * A Parquet file tells its symbols quickly, so they are numbered once by DuckDB and each row costs a number. Other
 * formats would have to be parsed twice: their symbols are numbered as they come.
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
  return rows.map(({ symbol: each }) => each)
}

/** Opens a file of trades. Rejects with `invalid` when it cannot be read or the mapping does not fit it. */
export async function openTradeFile(options: TradeFileOptions): Promise<TradeFile> {
  const batchRows = options.batchRows ?? TRADE_BATCH_ROWS
  if (!(Number.isInteger(batchRows) && batchRows > 0 && batchRows <= TRADE_BATCH_ROWS_MAX)) {
    throw refuse(`batchRows must be a whole number from 1 to ${TRADE_BATCH_ROWS_MAX}`)
  }
  const format = formatOf(options)
  const file = await stat(options.path).catch(() => null)
  if (file?.isFile() !== true) throw refuse(`there is no file ${options.path}`)
  const database = await connect()
  try {
    return await prepare(database, options, format, batchRows)
  } catch (error) {
    database.close()
    if (error instanceof StoreError) throw error
    throw refuse(`${options.path} cannot be read as ${format}: ${(error as Error).message}`)
  }
}

async function prepare(
  database: { connection: DuckDBConnection; close(): void },
  options: TradeFileOptions,
  format: TradeFormat,
  batchRows: number,
): Promise<TradeFile> {
  const { connection } = database
  const table = TABLE_FUNCTIONS[format](options.path)
  const available = await describe(connection, table)
  const columns = resolveColumns(options.mapping ?? {}, available)
  const counted = isCountedTime(columns.ts)
  const tsUnit = counted ? (options.tsUnit ?? (await sampleUnit(connection, table, columns.ts))) : null
  const dictionary = format === 'parquet' ? await numberSymbols(connection, table, columns.symbol) : null
  const isNumbered = dictionary !== null && dictionary.length > 0
  const sql = selectTrades(table, columns, tsUnit ?? 'ms', isNumbered)
  const rowsTotal = format === 'parquet' ? await parquetRows(connection, options.path) : null
  const reader = new TradeReader(columns, isNumbered ? dictionary : null, batchRows)
  let closed = false
  const close = async (): Promise<void> => {
    if (closed) return
    closed = true
    database.close()
  }
  const batches = reader.read(() => connection.stream(sql), close)
  return { rowsTotal, columns: available, tsUnit, batches, close }
}

/** The trades of a file, from its first row to its last. See openTradeFile. */
export async function* readTrades(options: TradeFileOptions): AsyncGenerator<TradeFileBatch> {
  yield* (await openTradeFile(options)).batches
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
