import type { DuckDBConnection } from '@duckdb/node-api'
import { duckdb, NO_EXTENSIONS } from '../../store/duckdb/duckdb.ts'
import { query } from '../../store/duckdb/query.ts'
import { ResultStream } from '../../store/duckdb/result-stream.ts'
import { literal } from '../../store/duckdb/sql.ts'
import { TRADE_FILE_MEMORY_LIMIT, TRADE_FILE_THREADS, TRADE_SYMBOLS_MAX } from '../limits.ts'
import { isTimestamp, isWhole, numberSql, type ParquetColumn, textSql, timeSql } from './parquet-columns.ts'
import { TradeBatchBuilder, tooManySymbols } from './trade-batch-builder.ts'
import { resolveColumns, type TradeColumns } from './trade-columns.ts'
import { type QueryColumn, TradeReader } from './trade-reader.ts'
import type { SourceOptions, TradeFile } from './trade-source.ts'

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

/** Opens a Parquet file. @throws StoreError `invalid`, or what DuckDB says of it */
export async function openParquet(options: SourceOptions): Promise<TradeFile> {
  const database = await connect()
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    database.close()
  }
  try {
    return { ...(await openTable(database.connection, options, close)), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openTable(
  connection: DuckDBConnection,
  { path, mapping, symbol, batchRows }: SourceOptions,
  close: () => Promise<void>,
): Promise<Omit<TradeFile, 'close'>> {
  const table = `read_parquet(${literal(path)}, binary_as_string = true)`
  const available = await readColumns(connection, path, table)
  const names = available.map(({ name }) => name)
  const columnOf = (name: string): ParquetColumn => available[names.indexOf(name)]
  const found = resolveColumns(mapping, names, symbol)
  // Timestamps have their day.
  const columns = isTimestamp(columnOf(found.ts)) ? { ...found, date: null } : found
  const dictionary =
    columns.symbol === null ? [] : await numberSymbols(connection, table, columnOf(columns.symbol))
  const builder = new TradeBatchBuilder(columns, batchRows, dictionary)
  const selected = selectColumns(columns, columnOf, dictionary.length > 0)
  const reader = new TradeReader(builder, {
    columns: selected.map(([column]) => column),
    isTimeInMs: isTimestamp(columnOf(columns.ts)),
    isSymbolCode: dictionary.length > 0,
    symbol,
    priceUnit: columns.isPriceFixed && isWhole(columnOf(columns.price)) ? 1e9 : 1,
  })
  const sql = `SELECT ${selected.map(([, expression]) => expression).join(', ')} FROM ${table}`
  const batches = reader.read(() => ResultStream.open(connection, sql), close)
  return { rowsTotal: await countRows(connection, path), columns: names, batches }
}

/** The columns of the file with their own names: DuckDB renames those that differ from another by case only. */
async function readColumns(
  connection: DuckDBConnection,
  path: string,
  table: string,
): Promise<ParquetColumn[]> {
  const described = await query<{ column_name: string; column_type: string }>(
    connection,
    `DESCRIBE SELECT * FROM ${table}`,
  )
  // The schema is a tree in the order of its nodes, each with the number of its children.
  const nodes = await query<{ name: string; children: number }>(
    connection,
    `SELECT name, coalesce(num_children, 0)::DOUBLE AS children FROM parquet_schema(${literal(path)})`,
  )
  const names: string[] = []
  for (let at = 1; at < nodes.length; at = skipNode(nodes, at)) names.push(nodes[at].name)
  return described.map(({ column_name: sqlName, column_type: type }, index) => ({
    name: names.length === described.length ? names[index] : sqlName,
    sqlName,
    type,
  }))
}

/** The place behind a node and all below it. */
function skipNode(nodes: readonly { children: number }[], at: number): number {
  let next = at + 1
  for (let child = 0; child < nodes[at].children; child++) next = skipNode(nodes, next)
  return next
}

/**
 * Numbers the symbols of the file in DuckDB, as an ENUM type, so that the query gives a number per row and no text.
 * @returns the symbols in the order of their codes.
 */
async function numberSymbols(
  connection: DuckDBConnection,
  table: string,
  symbol: ParquetColumn,
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

async function countRows(connection: DuckDBConnection, path: string): Promise<number> {
  const sql = `SELECT sum(num_rows)::DOUBLE AS rows FROM parquet_file_metadata(${literal(path)})`
  return (await query<{ rows: number }>(connection, sql))[0].rows
}

/** The columns that the file has, and the SQL of each. */
function selectColumns(
  columns: TradeColumns,
  columnOf: (name: string) => ParquetColumn,
  isNumbered: boolean,
): [column: QueryColumn, sql: string][] {
  const text = (name: string): string => textSql(columnOf(name))
  const { ts, date, price, size, symbol, side, wallet, tx } = columns
  const code = (name: string): string => `(enum_code(nullif(${text(name)}, '')::symbols) + 1)::DOUBLE`
  const selected: [QueryColumn, string][] = [
    ['ts', date === null ? timeSql(columnOf(ts)) : text(ts)],
    ['price', numberSql(columnOf(price))],
    ['size', numberSql(columnOf(size))],
  ]
  if (date !== null) selected.push(['date', text(date)])
  if (symbol !== null) selected.push(['symbol', isNumbered ? code(symbol) : text(symbol)])
  if (side !== null) selected.push(['side', text(side)])
  if (wallet !== null) selected.push(['wallet', text(wallet)])
  if (tx !== null) selected.push(['tx', text(tx)])
  return selected
}
