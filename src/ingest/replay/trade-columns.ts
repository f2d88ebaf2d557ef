// Finds the columns of a trade file: those that the mapping names, those of a vendor's layout, or those with a usual name.
import { StoreError } from '../../store/errors.ts'
import type { MappedField } from '../settings.ts'

/**
 * The names of the file's columns, for `ts` also `date+time` where they are two. Those that are left out are looked for under their usual
 * names; '' means none.
 */
export type TradeMapping = Partial<Record<MappedField, string>>

/** The column of each field; null: the file has none. */
export interface TradeColumns {
  ts: string
  /** The day, where `ts` is the time of day. */
  date: string | null
  /** Null where the symbol comes from outside. */
  symbol: string | null
  price: string
  size: string
  side: string | null
  wallet: string | null
  tx: string | null
  /** Prices without a decimal point are in units of 1e-9. */
  isPriceFixed: boolean
}

/** The error for a file or mapping that cannot be used. */
export const invalid = (sentence: string): StoreError => new StoreError('invalid', sentence)

/** Tried in this order; of a column's name only letters and digits count, in any case, up to the first slash. */
const USUAL_NAMES: Record<MappedField, readonly string[]> = {
  ts: [
    'ts',
    'timestamp',
    'time',
    'datetime',
    'transact_time',
    'trade_time',
    'participant_timestamp',
    'sip_timestamp',
    'ts_event',
    'created_time',
    'time_m',
    'date',
  ],
  symbol: ['symbol', 'mint', 'ticker', 'instrument', 'instrument_name', 'inst_id', 'coin', 'sym', 'pair'],
  price: ['price', 'price_usd', 'px', 'trade_price'],
  size: ['size', 'amount', 'quantity', 'qty', 'sz', 'token_amount', 'volume', 'vol', 'trade_size'],
  side: ['side', 'tx_type', 'taker_side', 'aggressor_side', 'is_buyer_maker', 'is_buy', 'is_taker_buy'],
  wallet: ['wallet', 'trader', 'trader_public_key'],
  tx: ['tx', 'signature', 'hash', 'trade_id', 'agg_trade_id', 'tid', 'trd_match_id', 'id'],
}
/** Columns of a time of day, and those with its day. */
const CLOCK_NAMES = ['time', 'time_m', 'trade_time', 'timestamp']
const DATE_NAMES = ['date', 'trade_date', 'day']

/** Vendors whose names mean something else elsewhere, by exact names: `t` is a time for one and an id for another. */
interface Layout {
  /** All must be there. */
  has: readonly string[]
  columns: Partial<Record<MappedField, readonly string[]>>
  isPriceFixed?: true
}
const LAYOUTS: readonly Layout[] = [
  {
    // Databento: the symbol is there where the file was made with it.
    has: ['ts_event', 'publisher_id', 'instrument_id', 'price', 'size'],
    columns: { ts: ['ts_event'], symbol: ['symbol', 'instrument_id'], tx: ['sequence'] },
    isPriceFixed: true,
  },
  {
    has: ['hd.ts_event', 'hd.instrument_id', 'price', 'size'],
    columns: { ts: ['hd.ts_event'], symbol: ['symbol', 'hd.instrument_id'], tx: ['sequence'] },
    isPriceFixed: true,
  },
  {
    // Binance, JSON. Its `t` and `a` are ids.
    has: ['T', 'p', 'q', 'm'],
    columns: { ts: ['T'], symbol: ['s'], price: ['p'], size: ['q'], side: ['m'], tx: ['t', 'a'] },
  },
  {
    // Bybit, JSON.
    has: ['T', 's', 'S', 'v', 'p'],
    columns: { ts: ['T'], symbol: ['s'], price: ['p'], size: ['v'], side: ['S'], tx: ['i'] },
  },
  {
    // Alpaca and Polygon, JSON. Here `s` is the size.
    has: ['t', 'p', 's', 'x'],
    columns: { ts: ['t'], symbol: ['S', 'sym'], price: ['p'], size: ['s'], side: ['tks'], tx: ['i'] },
  },
  {
    has: ['t', 'p', 's', 'S'],
    columns: { ts: ['t'], symbol: ['S'], price: ['p'], size: ['s'], side: ['tks'], tx: ['i'] },
  },
]

/** OKX appends a translation to its names, after a slash. */
const plainName = (name: string): string =>
  name
    .split('/', 1)[0]
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')

class ColumnFinder {
  readonly #mapping: TradeMapping
  readonly #names: readonly string[]
  readonly #layout: Layout | undefined

  constructor(mapping: TradeMapping, names: readonly string[]) {
    this.#mapping = mapping
    this.#names = names
    this.#layout = LAYOUTS.find(({ has }) => has.every((name) => names.includes(name)))
  }

  get isPriceFixed(): boolean {
    return this.#layout?.isPriceFixed === true
  }

  find(role: MappedField): string | null {
    const mapped = this.#mapping[role]
    if (mapped === '') return null
    const own = this.#layout?.columns[role]?.find((name) => this.#names.includes(name))
    const found =
      mapped === undefined ? (own ?? this.usual(role, USUAL_NAMES[role])) : this.named(role, mapped)
    if (found !== null && this.#names.indexOf(found) !== this.#names.lastIndexOf(found))
      throw invalid(`two columns are called "${found}", which is the ${role}`)
    return found
  }

  require(role: MappedField): string {
    const found = this.find(role)
    if (found !== null) return found
    throw this.missing(`no column looks like the ${role}: name it with --replay-map ${role}=COLUMN`)
  }

  /** The column of this name, in another case where none has it exactly. */
  named(role: MappedField, name: string): string {
    if (this.#names.includes(name)) return name
    const found = this.#names.filter((column) => column.toLowerCase() === name.toLowerCase())
    if (found.length === 1) return found[0]
    if (found.length > 1) throw this.ambiguous(role, found)
    throw this.missing(`no column "${name}" for the ${role}`)
  }

  has(name: string): boolean {
    return this.#names.includes(name)
  }

  usual(role: MappedField, usual: readonly string[]): string | null {
    for (const candidate of usual) {
      if (this.#names.includes(candidate)) return candidate
      const found = this.#names.filter((name) => plainName(name) === plainName(candidate))
      if (found.length > 1) throw this.ambiguous(role, found)
      if (found.length === 1) return found[0]
    }
    return null
  }

  ambiguous(role: MappedField, found: readonly string[]): StoreError {
    const names = found.map((name) => `"${name}"`).join(' and ')
    return invalid(`${names} could both be the ${role}: name one with --replay-map ${role}=COLUMN`)
  }

  missing(sentence: string): StoreError {
    return invalid(`${sentence}; the file's columns are: ${this.#names.join(', ')}`)
  }
}

/** @throws StoreError `invalid`, which names the file's columns. */
function findTime(mapping: TradeMapping, finder: ColumnFinder): { ts: string; date: string | null } {
  const mapped = mapping.ts ?? ''
  if (mapped !== '' && !finder.has(mapped) && mapped.includes('+')) {
    const [date, time] = mapped.split('+', 2)
    return { ts: finder.named('ts', time.trim()), date: finder.named('ts', date.trim()) }
  }
  const ts = finder.require('ts')
  const isClock = mapped === '' && CLOCK_NAMES.some((name) => plainName(name) === plainName(ts))
  return { ts, date: isClock ? finder.usual('ts', DATE_NAMES) : null }
}

/**
 * Finds the column of each field.
 * @param outsideSymbol the symbol of all rows, of a file without a column for it; null: it must have one.
 * @throws StoreError `invalid`, which names the file's columns.
 */
export function resolveColumns(
  mapping: TradeMapping,
  names: readonly string[],
  outsideSymbol: string | null,
): TradeColumns {
  const finder = new ColumnFinder(mapping, names)
  const time = findTime(mapping, finder)
  const symbol = finder.find('symbol')
  if (outsideSymbol !== null && symbol !== null)
    throw invalid(
      `--replay symbol= is for files without symbols, and this one has them in "${symbol}": leave it out, ` +
        'or the column with --replay-map symbol=',
    )
  if (outsideSymbol === null && symbol === null)
    throw finder.missing(
      'no column looks like the symbol: name it with --replay-map symbol=COLUMN, or give the symbol of ' +
        'all rows with --replay symbol=SYMBOL',
    )
  return {
    ...time,
    symbol,
    price: finder.require('price'),
    size: finder.require('size'),
    side: finder.find('side'),
    wallet: finder.find('wallet'),
    tx: finder.find('tx'),
    isPriceFixed: finder.isPriceFixed,
  }
}

/**
 * The columns, with those that every trade may lack where a later record of the file is the first to have them. The others stay as
 * they are, whatever else a record has.
 * @param names all so far
 * @throws StoreError `invalid` where two names could be the same field
 */
export function addLateColumns(
  columns: TradeColumns,
  mapping: TradeMapping,
  names: readonly string[],
): TradeColumns {
  const finder = new ColumnFinder(mapping, names)
  const { side, wallet, tx } = columns
  return {
    ...columns,
    side: side ?? finder.find('side'),
    wallet: wallet ?? finder.find('wallet'),
    tx: tx ?? finder.find('tx'),
  }
}
