// The layouts of vendors whose CSV files have no header: recognised by the kinds of their fields, in order.
import { readNumber, readTime } from './trade-values.ts'

const KINDS = {
  whole: (field: string) => /^\d{1,20}$/.test(field),
  number: (field: string) => !Number.isNaN(readNumber(field)),
  unix: (field: string) => /^[\d.]+$/.test(field) && !Number.isNaN(readTime(field)),
  flag: (field: string) => /^(true|false)$/i.test(field),
} as const

type CsvLayout = readonly (readonly [name: string, kind: keyof typeof KINDS])[]

const AGG_TRADES: CsvLayout = [
  ['agg_trade_id', 'whole'],
  ['price', 'number'],
  ['quantity', 'number'],
  ['first_trade_id', 'whole'],
  ['last_trade_id', 'whole'],
  ['transact_time', 'unix'],
  ['is_buyer_maker', 'flag'],
]
const TRADES: CsvLayout = [
  ['id', 'whole'],
  ['price', 'number'],
  ['qty', 'number'],
  ['quote_qty', 'number'],
  ['time', 'unix'],
  ['is_buyer_maker', 'flag'],
]
const BEST_MATCH = ['is_best_match', 'flag'] as const

/** Binance, futures and spot, and Kraken. */
const LAYOUTS: readonly CsvLayout[] = [
  AGG_TRADES,
  [...AGG_TRADES, BEST_MATCH],
  TRADES,
  [...TRADES, BEST_MATCH],
  [
    ['time', 'unix'],
    ['price', 'number'],
    ['volume', 'number'],
  ],
]

/** The names of the columns of records without a header; null where they are not of a known layout. */
export function recogniseColumns(records: readonly (readonly string[])[]): string[] | null {
  const fits = (layout: CsvLayout): boolean => {
    const fitting = records.filter(
      (fields) => fields.length === layout.length && layout.every(([, kind], at) => KINDS[kind](fields[at])),
    )
    return fitting.length > records.length / 2
  }
  return LAYOUTS.find(fits)?.map(([name]) => name) ?? null
}

/** Names for columns that have none: column0, column1, … */
export const numberColumns = (width: number): string[] =>
  Array.from({ length: width }, (_, at) => `column${`${at}`.padStart(`${width - 1}`.length, '0')}`)
