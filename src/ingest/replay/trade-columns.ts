// In: the columns of a file of trades and a mapping of names. Out: SQL that reads them in one shape: ms, doubles, text.
// Never reads a row, but for the sample that tells the unit of an integer time.

import { identifier } from '../../store/duckdb/sql.ts'
import { StoreError } from '../../store/errors.ts'

export const TIME_UNITS = ['s', 'ms', 'us', 'ns'] as const
export type TimeUnit = (typeof TIME_UNITS)[number]

/** The file's own name of each thing that a trade has. What is left out is looked for under its usual names. */
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
  /** DuckDB's word for its type. */
  type: string
}

type Role = keyof TradeMapping
const REQUIRED: readonly Role[] = ['ts', 'symbol', 'price', 'size']
/** Looked for, in this order and any case, where the mapping names nothing. */
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

/** The caller's file or mapping is wrong. */
export const refuse = (sentence: string): StoreError => new StoreError('invalid', sentence)

/** The column that plays `role`, or null; throws where a named one is not there. */
function find(role: Role, named: string | undefined, columns: readonly FileColumn[]): FileColumn | null {
  const candidates = named === undefined ? USUAL_NAMES[role] : [named]
  for (const candidate of candidates) {
    const exact = columns.find((column) => column.name === candidate)
    const close = columns.find((column) => column.name.toLowerCase() === candidate.toLowerCase())
    const found = exact ?? close
    if (found !== undefined) return found
  }
  if (named === undefined && !REQUIRED.includes(role)) return null
  const available = columns.map((column) => column.name).join(', ')
  const sought =
    named === undefined ? `no column looks like the ${role}` : `no column "${named}" for the ${role}`
  throw refuse(`${sought}; the file's columns are: ${available}`)
}

export type TradeColumns = Record<(typeof REQUIRED)[number] & Role, FileColumn> & {
  side: FileColumn | null
  wallet: FileColumn | null
  tx: FileColumn | null
}

/** Finds each column of `mapping`. Throws `invalid`, naming the columns that there are. */
export function resolveColumns(mapping: TradeMapping, columns: readonly FileColumn[]): TradeColumns {
  const of = (role: Role): FileColumn | null => find(role, mapping[role], columns)
  return {
    ts: of('ts')!,
    symbol: of('symbol')!,
    price: of('price')!,
    size: of('size')!,
    side: of('side'),
    wallet: of('wallet'),
    tx: of('tx'),
  } as TradeColumns
}

export const isCountedTime = (column: FileColumn): boolean => isNumber(column.type)

/** Moments between these are taken for trades when a unit is guessed: the years 2000 to 2100, in seconds. */
const PLAUSIBLE_S = { min: 946_684_800, max: 4_102_444_800 }
const UNITS_PER_S: Record<TimeUnit, number> = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 }

/** The unit in which both ends of a sample lie between 2000 and 2100; no two units can. Throws where none does. */
export function inferUnit(column: FileColumn, min: number | null, max: number | null): TimeUnit {
  if (min === null || max === null) throw refuse(`the column "${column.name}" holds no times`)
  const fits = (unit: TimeUnit): boolean =>
    min >= PLAUSIBLE_S.min * UNITS_PER_S[unit] && max <= PLAUSIBLE_S.max * UNITS_PER_S[unit]
  const unit = TIME_UNITS.find(fits)
  if (unit !== undefined) return unit
  throw refuse(
    `the unit of the times in "${column.name}" (${min} to ${max}) cannot be told; declare it as one of ${TIME_UNITS.join(', ')}`,
  )
}

const TO_MS: Record<TimeUnit, (name: string) => string> = {
  // A fraction such as .464 has no exact double: it is rounded to microseconds before it is cut to milliseconds.
  s: (name) => `floor(round(${name}::DOUBLE * 1e6) / 1000)`,
  ms: (name) => `floor(${name}::DOUBLE)`,
  us: (name) => `floor(${name}::DOUBLE / 1000)`,
  // Doubles cannot hold nanoseconds since 1970: whole numbers are divided as such first.
  ns: (name) => `floor((${name} // 1000000)::DOUBLE)`,
}

/** Whole Unix ms as a double; NULL where it is no time. `unit` counts for numbers only. */
export function timeSql(column: FileColumn, unit: TimeUnit): string {
  const name = identifier(column.name)
  if (isNumber(column.type)) return `${TO_MS[unit](name)}::DOUBLE`
  if (/^TIMESTAMP WITH TIME ZONE/.test(column.type)) return `epoch_ms(${name})::DOUBLE`
  if (/^(TIMESTAMP|DATE)/.test(column.type)) return `epoch_ms(${name}::TIMESTAMP)::DOUBLE`
  if (TEXT.test(column.type)) return `epoch_ms(TRY_CAST(${name} AS TIMESTAMPTZ))::DOUBLE`
  throw refuse(`the column "${column.name}" is a ${column.type}, which is no time`)
}

/** A double; NULL where the text is no number. */
export function numberSql(column: FileColumn): string {
  if (isNumber(column.type) || TEXT.test(column.type)) return `TRY_CAST(${identifier(column.name)} AS DOUBLE)`
  throw refuse(`the column "${column.name}" is a ${column.type}, which is no number`)
}

export const textSql = (column: FileColumn): string => `${identifier(column.name)}::VARCHAR`

export const SIDE_BUY = 1
export const SIDE_SELL = 2

/** 1 buy, 2 sell, 0 unknown, as a double: words, or the sign of a number. */
export function sideSql(column: FileColumn): string {
  const name = identifier(column.name)
  const buy = isNumber(column.type) ? `${name} > 0` : `lower(${name}::VARCHAR) IN ('buy', 'b')`
  const sell = isNumber(column.type) ? `${name} < 0` : `lower(${name}::VARCHAR) IN ('sell', 's')`
  return `(CASE WHEN ${buy} THEN ${SIDE_BUY} WHEN ${sell} THEN ${SIDE_SELL} ELSE 0 END)::DOUBLE`
}
