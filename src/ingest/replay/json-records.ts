// Finds the records of trades in JSON: a value a line, or one value that is the whole file, with the envelopes of vendors.
import { isRecord } from '../../lib/record.ts'
import { TRADE_LINE_CHARS_MAX } from '../limits.ts'
import { invalid } from './trade-columns.ts'

export type JsonRecord = Record<string, unknown>
/** A record, or the text of a line that is no JSON. */
export type JsonItem = JsonRecord | string

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown
/** Whole numbers of this many digits may not fit into a double: they stay text. */
const LONG_NUMBER = /\d{16}/
const keepLongNumbers: Reviver = (_key, value, { source }) =>
  typeof value === 'number' && source !== undefined && LONG_NUMBER.test(source) ? source : value

/** The value; undefined where the text is no JSON. */
function parse(text: string): unknown {
  try {
    return LONG_NUMBER.test(text) ? JSON.parse(text, keepLongNumbers as never) : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Members in which vendors send trades: Alpaca, Polygon, Kraken, and OKX, Binance and Hyperliquid. */
const ENVELOPES = ['trades', 'results', 'result', 'data']
/** What has a price is a record, whatever else it has. */
const PRICES = ['price', 'px', 'p']

/**
 * Calls `take` with each record of a value: with its items where it is a list, with what is inside where it is an envelope.
 * @param symbol that of the records, where their envelope says it.
 * @returns whether it holds records or could hold some; otherwise nothing was taken.
 */
function collect(value: unknown, symbol: string | null, take: (record: JsonRecord) => void): boolean {
  if (Array.isArray(value)) {
    for (const item of value) {
      if (Array.isArray(item)) take(withSymbol(namePlaces(item), symbol))
      else if (!collect(item, symbol, take)) take({})
    }
    return true
  }
  if (!isRecord(value)) return false
  for (const name of PRICES.some((price) => price in value) ? [] : ENVELOPES) {
    const inside = value[name]
    if (typeof inside !== 'object' || inside === null) continue
    const own = typeof value.symbol === 'string' ? value.symbol : symbol
    if (isRecord(inside) && Object.values(inside).some(Array.isArray)) {
      // Lists by symbol, and whatever stands beside them.
      for (const [key, list] of Object.entries(inside)) if (Array.isArray(list)) collect(list, key, take)
    } else collect(inside, own, take)
    return true
  }
  take(withSymbol(value, symbol))
  return true
}

const withSymbol = (record: JsonRecord, symbol: string | null): JsonRecord =>
  symbol === null ? record : { symbol, ...record }

/** Kraken's records are lists. */
const KRAKEN = ['price', 'volume', 'time', 'side', 'order_type', 'misc', 'trade_id']
const namePlaces = (values: readonly unknown[]): JsonRecord =>
  Object.fromEntries(
    values.map((value, at) => [values.length === KRAKEN.length ? KRAKEN[at] : `column${at}`, value]),
  )

/** Whether the value that begins with this line goes on in the next ones. */
const isOpen = (line: string): boolean => /[[{,:]$/.test(line.trimEnd())

/** The records of a file, some at a time. @throws StoreError `invalid` */
export async function* readJsonItems(
  path: string,
  blocks: AsyncGenerator<string[]>,
): AsyncGenerator<JsonItem[]> {
  let isFirst = true
  try {
    for (;;) {
      const next = await blocks.next()
      if (next.done === true) return
      const lines = next.value.filter((line) => line.trim() !== '')
      if (lines.length === 0) continue
      if (isFirst && isOpen(lines[0])) {
        yield readWhole(path, await joinAll(path, lines, blocks))
        return
      }
      isFirst = false
      yield lines.flatMap(readLine)
    }
  } finally {
    await blocks.return(undefined)
  }
}

function readLine(line: string): JsonItem[] {
  const items: JsonItem[] = []
  const hasRecords = collect(parse(line), null, (record) => items.push(record))
  return hasRecords ? items : [line]
}

async function joinAll(path: string, lines: string[], blocks: AsyncGenerator<string[]>): Promise<string> {
  const parts = [...lines]
  let chars = lines.reduce((sum, line) => sum + line.length, 0)
  for await (const more of blocks) {
    for (const line of more) parts.push(line)
    chars += more.reduce((sum, line) => sum + line.length, 0)
    if (chars > TRADE_LINE_CHARS_MAX)
      throw invalid(
        `${path} is one JSON value of more than ${TRADE_LINE_CHARS_MAX} characters: write a record a line (NDJSON)`,
      )
  }
  return parts.join('\n')
}

function readWhole(path: string, text: string): JsonItem[] {
  const items: JsonItem[] = []
  const value = parse(text)
  if (value === undefined) throw invalid(`${path} is neither a JSON value nor a record a line`)
  collect(value, null, (record) => items.push(record))
  return items
}
