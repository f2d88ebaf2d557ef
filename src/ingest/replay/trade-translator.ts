// In: rows of recorded trades in columns. Out: each row as a trade event, with the token event that must come before it,
// or why it is none. Never decides when.
import { ownText } from '../../lib/own-text.ts'
import { AMOUNT_MAX, PRICE_MIN, TIME_MS_MAX, TIME_MS_MIN, WORD_CHARS_MAX } from '../../schema/bounds.ts'
import type { TokenEvent, TradeEvent } from '../../schema/event.ts'
import { isMint, mintOfSymbol } from '../../schema/mint.ts'
import { REPLAY_SYMBOLS_MAX } from '../limits.ts'

type Side = 'buy' | 'sell'

/** Some rows of a file of trades, by column. What a row lacks is NaN, or the empty symbol. */
export interface TradeBatch {
  rows: number
  /** Unix ms, UTC. */
  tsMs: Float64Array
  /** USD. */
  price: Float64Array
  /** UI tokens (or shares). */
  size: Float64Array
  /** Each row's place in `symbols`, which all batches of a file share and only append to. */
  symbolCode: Uint32Array
  symbols: readonly string[]
  /** Who took; null where the file, or the row, does not say. */
  side: ((row: number) => Side | null) | null
  wallet: readonly (string | null)[] | null
  tx: readonly (string | null)[] | null
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
  name: string
  mint: string
  isTold: boolean
  lastPrice: number
  lastSide: Side
}

const own = (text: string | null | undefined): string | undefined =>
  text == null ? undefined : ownText(text, WORD_CHARS_MAX)
const refused = (fault: TradeFault): Translation => ({ token: null, trade: null, fault })

export class TradeTranslator {
  /** By place in the file's symbols. */
  private readonly states: (SymbolState | undefined)[] = []
  private known = 0

  /** How many symbols have traded. */
  get symbols(): number {
    return this.known
  }

  /** One row as events, its time moved by `shiftMs`. */
  translate(batch: TradeBatch, row: number, shiftMs: number): Translation {
    const ts = Math.floor(batch.tsMs[row]) + shiftMs
    const price = batch.price[row]
    const size = batch.size[row]
    if (!(ts >= TIME_MS_MIN && ts <= TIME_MS_MAX)) return refused('time_invalid')
    if (!(price >= PRICE_MIN && price <= AMOUNT_MAX)) return refused('price_invalid')
    if (!(size >= 0 && size <= AMOUNT_MAX)) return refused('size_invalid')
    const symbol = this.symbolOf(batch, batch.symbolCode[row])
    if (typeof symbol === 'string') return refused(symbol)
    const side = sideOf(symbol, price, batch.side === null ? null : batch.side(row))
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
      wallet: own(batch.wallet?.[row]),
      tx: own(batch.tx?.[row]),
    }
    return { token: tell(symbol, ts), trade, fault: null }
  }

  private symbolOf(batch: TradeBatch, code: number): SymbolState | TradeFault {
    const known = this.states[code]
    if (known !== undefined) return known
    const name = batch.symbols[code]
    if (!name) return 'symbol_missing'
    if (this.known >= REPLAY_SYMBOLS_MAX) return 'too_many_symbols'
    this.known++
    const isItself = isMint(name)
    const mint = isItself ? name : mintOfSymbol(name)
    const state: SymbolState = { name, mint, isTold: isItself, lastPrice: Number.NaN, lastSide: 'buy' }
    this.states[code] = state
    return state
  }
}

/** A symbol that is no mint is told as the name and symbol of its mint, once. */
function tell(symbol: SymbolState, ts: number): TokenEvent | null {
  if (symbol.isTold) return null
  symbol.isTold = true
  const name = ownText(symbol.name, WORD_CHARS_MAX)
  return { type: 'token', mint: symbol.mint, ts, name, symbol: name }
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
