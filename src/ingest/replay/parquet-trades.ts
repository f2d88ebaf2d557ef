import type { DuckDBConnection } from '@duckdb/node-api'
import { openDatabase } from '../../store/duckdb/duckdb.ts'
import { countParquetRows, query } from '../../store/duckdb/query.ts'
import { ResultStream } from '../../store/duckdb/result-stream.ts'
import { literal } from '../../store/duckdb/sql.ts'
import { TRADE_FILE_MEMORY_LIMIT, TRADE_FILE_THREADS, TRADE_SYMBOLS_MAX } from '../limits.ts'
import { isTimestamp, isWhole, numberSql, type ParquetColumn, textSql, timeSql } from './parquet-columns.ts'
import type { TradeBatch } from './trade-batch.ts'
import { NO_VALUES, type RawTrade, TradeBatchBuilder, tooManySymbols } from './trade-batch-builder.ts'
import { resolveColumns, type TradeColumns } from './trade-columns.ts'
import type { SourceOptions, TradeFile } from './trade-source.ts'
import { type RawValue, readTime } from './trade-values.ts'

/** Opens a Parquet file. @throws StoreError `invalid`, or what DuckDB says of it */
export async function openParquet(options: SourceOptions): Promise<TradeFile> {
  const database = await openDatabase(':memory:', {
    threads: String(TRADE_FILE_THREADS),
    memory_limit: TRADE_FILE_MEMORY_LIMIT,
    preserve_insertion_order: 'true',
  })
  try {
    await database.connection.run("SET TimeZone = 'UTC'")
    return await openTable(database.connection, options, database.close)
  } catch (error) {
    database.close()
    throw error
  }
}

async function openTable(
  connection: DuckDBConnection,
  { path, mapping, symbol, batchRows }: SourceOptions,
  close: () => void,
): Promise<TradeFile> {
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
  const isTimeInMs = isTimestamp(columnOf(columns.ts))
  const add = (raw: RawTrade): void => {
    const tsMs = isTimeInMs ? (typeof raw.ts === 'number' ? raw.ts : Number.NaN) : readTime(raw.ts, raw.date)
    const code =
      dictionary.length > 0 ? Number(raw.symbol ?? 0) : builder.codeOf(symbol ?? String(raw.symbol ?? ''))
    builder.addRead(raw, tsMs, builder.readPrice(raw.price), code)
  }
  const sql = `SELECT ${selected.map(([, expression]) => expression).join(', ')} FROM ${table}`
  async function* readBatches(): AsyncGenerator<TradeBatch> {
    try {
      for await (const chunk of await ResultStream.open(connection, sql)) {
        const vectors = selected.map(([column], index) => [column, chunk.getColumnVector(index)] as const)
        for (let row = 0; row < chunk.rowCount; row++) {
          const raw: RawTrade = { ...NO_VALUES }
          for (const [column, vector] of vectors) raw[column] = toRaw(vector.getItem(row))
          add(raw)
          if (builder.isFull) yield builder.finish()
        }
      }
      if (!builder.isEmpty) yield builder.finish()
    } finally {
      close()
    }
  }
  return { rowsTotal: await countParquetRows(connection, path), batches: readBatches() }
}

const toRaw = (value: unknown): RawValue =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? value : null

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

/** The columns that the file has, and the SQL of each. */
function selectColumns(
  columns: TradeColumns,
  columnOf: (name: string) => ParquetColumn,
  isNumbered: boolean,
): [column: keyof RawTrade, sql: string][] {
  const text = (name: string): string => textSql(columnOf(name))
  const { ts, date, price, size, symbol, side, wallet, tx, isPriceFixed } = columns
  const code = (name: string): string => `(enum_code(nullif(${text(name)}, '')::symbols) + 1)::DOUBLE`
  const selected: [keyof RawTrade, string][] = [
    ['ts', date === null ? timeSql(columnOf(ts)) : text(ts)],
    // As the other formats have it: one of the whole numbers is no price, which a double would not tell.
    ['price', isPriceFixed && isWhole(columnOf(price)) ? text(price) : numberSql(columnOf(price))],
    ['size', numberSql(columnOf(size))],
  ]
  if (date !== null) selected.push(['date', text(date)])
  if (symbol !== null) selected.push(['symbol', isNumbered ? code(symbol) : text(symbol)])
  if (side !== null) selected.push(['side', text(side)])
  if (wallet !== null) selected.push(['wallet', text(wallet)])
  if (tx !== null) selected.push(['tx', text(tx)])
  return selected
}
