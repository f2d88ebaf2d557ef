// Finds the columns of a trade file and makes the SQL that reads them in one form: Unix ms, doubles and text.
import { identifier } from '../../store/duckdb/sql.ts'
import { StoreError } from '../../store/errors.ts'

export const TIME_UNITS = ['s', 'ms', 'us', 'ns'] as const
export type TimeUnit = (typeof TIME_UNITS)[number]

/** The names of the file's columns. Those that are left out are looked for under their usual names. */
export interface TradeMapping {
  ts?: string
  symbol?: string
  price?: string
  size?: string
  side?: string
  wallet?: string
  tx?: string
}

export interface FileColumn {
  name: string
  /** DuckDB's name of its type. */
  type: string
}

type Role = keyof TradeMapping
/** Tried in this order, in any case, where the mapping names no column. */
const USUAL_NAMES: Record<Role, readonly string[]> = {
  ts: ['ts', 'timestamp', 'time', 'datetime', 'date'],
  symbol: ['symbol', 'mint', 'ticker', 'instrument'],
  price: ['price', 'priceUsd', 'price_usd'],
  size: ['size', 'amount', 'quantity', 'qty', 'tokenAmount', 'token_amount', 'volume'],
  side: ['side', 'txType'],
  wallet: ['wallet', 'trader', 'traderPublicKey'],
  tx: ['tx', 'signature', 'trade_id', 'id'],
}

const WHOLE = /^U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$/
const FRACTION = /^(DOUBLE|FLOAT|REAL|DECIMAL)/
const TEXT = /^(VARCHAR|ENUM|UUID)/
const isNumber = (type: string): boolean => WHOLE.test(type) || FRACTION.test(type)

/** The error for a file or mapping that cannot be used. */
export const invalid = (sentence: string): StoreError => new StoreError('invalid', sentence)

/** @throws StoreError `invalid` where the mapping names a column that the file does not have. */
function findColumn(role: Role, mapping: TradeMapping, columns: readonly FileColumn[]): FileColumn | null {
  const named = mapping[role]
  for (const candidate of named === undefined ? USUAL_NAMES[role] : [named]) {
    const exact = columns.find((column) => column.name === candidate)
    const found = exact ?? columns.find((column) => column.name.toLowerCase() === candidate.toLowerCase())
    if (found !== undefined) return found
  }
  if (named === undefined) return null
  throw missingColumn(`no column "${named}" for the ${role}`, columns)
}

function requireColumn(role: Role, mapping: TradeMapping, columns: readonly FileColumn[]): FileColumn {
  const found = findColumn(role, mapping, columns)
  if (found === null) throw missingColumn(`no column looks like the ${role}`, columns)
  return found
}

function missingColumn(sentence: string, columns: readonly FileColumn[]): StoreError {
  return invalid(`${sentence}; the file's columns are: ${columns.map(({ name }) => name).join(', ')}`)
}

export interface TradeColumns {
  ts: FileColumn
  symbol: FileColumn
  price: FileColumn
  size: FileColumn
  side: FileColumn | null
  wallet: FileColumn | null
  tx: FileColumn | null
}

/** Finds the column of each field. @throws StoreError `invalid`, which names the file's columns. */
export function resolveColumns(mapping: TradeMapping, columns: readonly FileColumn[]): TradeColumns {
  return {
    ts: requireColumn('ts', mapping, columns),
    symbol: requireColumn('symbol', mapping, columns),
    price: requireColumn('price', mapping, columns),
    size: requireColumn('size', mapping, columns),
    side: findColumn('side', mapping, columns),
    wallet: findColumn('wallet', mapping, columns),
    tx: findColumn('tx', mapping, columns),
  }
}

/** Whether a time column holds numbers, whose unit must be known, and not timestamps. */
export const isNumericTime = (column: FileColumn): boolean => isNumber(column.type)

/** The years 2000 to 2100 in seconds: a unit fits when the times lie between them. */
const PLAUSIBLE_S = { min: 946_684_800, max: 4_102_444_800 }
const UNITS_PER_S: Record<TimeUnit, number> = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 }

/** The one unit in which the least and greatest time of a sample lie between 2000 and 2100. @throws StoreError `invalid`. */
export function inferUnit(column: FileColumn, min: number | null, max: number | null): TimeUnit {
  if (min === null || max === null) throw invalid(`the column "${column.name}" holds no times`)
  const fits = (unit: TimeUnit): boolean =>
    min >= PLAUSIBLE_S.min * UNITS_PER_S[unit] && max <= PLAUSIBLE_S.max * UNITS_PER_S[unit]
  const unit = TIME_UNITS.find(fits)
  if (unit !== undefined) return unit
  throw invalid(
    `the unit of the times in "${column.name}" (${min} to ${max}) is not clear; declare it as one of ${TIME_UNITS.join(', ')}`,
  )
}

const TO_MS: Record<TimeUnit, (name: string) => string> = {
  // A fraction such as .464 is not exact in a double: it is rounded to microseconds before it is cut to milliseconds.
  s: (name) => `floor(round(${name}::DOUBLE * 1e6) / 1000)`,
  ms: (name) => `floor(${name}::DOUBLE)`,
  us: (name) => `floor(${name}::DOUBLE / 1000)`,
  // Doubles cannot hold nanoseconds since 1970: the division is one of whole numbers.
  ns: (name) => `floor((${name} // 1000000)::DOUBLE)`,
}

/** SQL for whole Unix ms as a double, NULL where the value is not a time. `unit` is that of numeric times. */
export function timeSql(column: FileColumn, unit: TimeUnit): string {
  const name = identifier(column.name)
  if (isNumber(column.type)) return `${TO_MS[unit](name)}::DOUBLE`
  if (/^TIMESTAMP WITH TIME ZONE/.test(column.type)) return `epoch_ms(${name})::DOUBLE`
  if (/^(TIMESTAMP|DATE)/.test(column.type)) return `epoch_ms(${name}::TIMESTAMP)::DOUBLE`
  if (TEXT.test(column.type)) return `epoch_ms(TRY_CAST(${name} AS TIMESTAMPTZ))::DOUBLE`
  throw invalid(`the column "${column.name}" is a ${column.type}, which is not a time`)
}

/** SQL for a double, NULL where the text is not a number. */
export function numberSql(column: FileColumn): string {
  if (isNumber(column.type) || TEXT.test(column.type)) return `TRY_CAST(${identifier(column.name)} AS DOUBLE)`
  throw invalid(`the column "${column.name}" is a ${column.type}, which is not a number`)
}

export const textSql = (column: FileColumn): string => `${identifier(column.name)}::VARCHAR`

export const SIDE_BUY = 1
export const SIDE_SELL = 2

/** SQL for SIDE_BUY, SIDE_SELL or 0 (unknown) as a double, from words or from the sign of a number. */
export function sideSql(column: FileColumn): string {
  const name = identifier(column.name)
  const buy = isNumber(column.type) ? `${name} > 0` : `lower(${name}::VARCHAR) IN ('buy', 'b')`
  const sell = isNumber(column.type) ? `${name} < 0` : `lower(${name}::VARCHAR) IN ('sell', 's')`
  return `(CASE WHEN ${buy} THEN ${SIDE_BUY} WHEN ${sell} THEN ${SIDE_SELL} ELSE 0 END)::DOUBLE`
}
