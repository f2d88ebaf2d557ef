// In: rows of recorded trades in columns. Out: each row as a trade event, with the token event that must come before it,
// or why it is none. Never decides when.
import type { TokenEvent, TradeEvent } from '../schema/event.ts'
import { isMint, mintOfSymbol } from '../schema/mint.ts'
import { REPLAY_SYMBOLS_MAX } from './limits.ts'

type Side = 'buy' | 'sell'

/** Some rows of a file of trades, by column. */
export interface TradeBatch {
  rows: number
  /** Unix ms, UTC. */
  tsMs: Float64Array
  /** USD. */
  price: Float64Array
  /** UI tokens (or shares). */
  size: Float64Array
  symbol: readonly string[] | ((row: number) => string)
  /** Who took; absent or null where the file does not say. */
  side?: readonly (Side | null)[] | ((row: number) => Side | null) | null
}

export type Translation =
  | { token: TokenEvent | null; trade: TradeEvent; fault: null }
  | { token: null; trade: null; fault: TradeFault }
export type TradeFault =
  | 'time_invalid'
  | 'price_invalid'
  | 'size_invalid'
  | 'symbol_missing'
  | 'too_many_symbols'

interface SymbolState {
  mint: string
  isTold: boolean
  lastPrice: number
  lastSide: Side
}

const TS_MS_MIN = 1_000
const TS_MS_MAX = 8.64e15
const at = <Value>(column: readonly Value[] | ((row: number) => Value), row: number): Value =>
  typeof column === 'function' ? column(row) : column[row]
const refused = (fault: TradeFault): Translation => ({ token: null, trade: null, fault })

export class TradeTranslator {
  private readonly known = new Map<string, SymbolState>()

  get symbols(): number {
    return this.known.size
  }

  /** One row as events, its time moved by `shiftMs`. */
  translate(batch: TradeBatch, row: number, shiftMs: number): Translation {
    const ts = Math.floor(batch.tsMs[row]) + shiftMs
    const price = batch.price[row]
    const size = batch.size[row]
    if (!(ts >= TS_MS_MIN && ts <= TS_MS_MAX)) return refused('time_invalid')
    if (!(price > 0 && price < Number.POSITIVE_INFINITY)) return refused('price_invalid')
    if (!(size >= 0 && size < Number.POSITIVE_INFINITY)) return refused('size_invalid')
    const name = at(batch.symbol, row)
    if (!name) return refused('symbol_missing')
    const symbol = this.symbolOf(name)
    if (symbol === null) return refused('too_many_symbols')
    const side = sideOf(symbol, price, batch.side ? at<Side | null>(batch.side, row) : null)
    const trade: TradeEvent = {
      type: 'trade',
      mint: symbol.mint,
      ts,
      side,
      tokenAmount: size,
      priceUsd: price,
      solAmount: undefined,
      vSol: undefined,
      vTokens: undefined,
      wallet: undefined,
      tx: undefined,
    }
    return { token: tell(symbol, name, ts), trade, fault: null }
  }

  private symbolOf(name: string): SymbolState | null {
    const known = this.known.get(name)
    if (known !== undefined) return known
    if (this.known.size >= REPLAY_SYMBOLS_MAX) return null
    const isItself = isMint(name)
    const symbol: SymbolState = {
      mint: isItself ? name : mintOfSymbol(name),
      isTold: isItself,
      lastPrice: Number.NaN,
      lastSide: 'buy',
    }
    this.known.set(name, symbol)
    return symbol
  }
}

/** A symbol that is no mint is told as the name and symbol of its mint, once. */
function tell(symbol: SymbolState, name: string, ts: number): TokenEvent | null {
  if (symbol.isTold) return null
  symbol.isTold = true
  return { type: 'token', mint: symbol.mint, ts, name: name.slice(0, 128), symbol: name.slice(0, 128) }
}

/**
 * Where the file does not say who took, the tick test does: a price above the last one is a buy, below it a sell, the
 * same price the same side (C. Lee and M. Ready, "Inferring Trade Direction from Intraday Data", 1991).
 */
function sideOf(symbol: SymbolState, price: number, said: Side | null): Side {
  const inferred = price > symbol.lastPrice ? 'buy' : price < symbol.lastPrice ? 'sell' : symbol.lastSide
  symbol.lastPrice = price
  symbol.lastSide = said ?? inferred
  return symbol.lastSide
}
