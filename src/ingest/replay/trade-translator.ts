import { truncateText } from '../../lib/text/truncate-text.ts'
import { AMOUNT_MAX, PRICE_MIN, TIME_MS_MAX, TIME_MS_MIN, WORD_CHARS_MAX } from '../../schema/bounds.ts'
import type { TokenEvent, TradeEvent } from '../../schema/event.ts'
import { isMint, mintOfSymbol } from '../../schema/mint.ts'
import { REPLAY_SYMBOLS_MAX } from '../limits.ts'
import type { RowFault, Side, TradeBatch, TradeFault } from './trade-batch.ts'

/** A trade, and before the first trade of a symbol the token event that names it; or why the row is not a trade. */
export type Translation =
  | { token: TokenEvent | null; trade: TradeEvent; fault: null }
  | { token: null; trade: null; fault: RowFault }

interface SymbolState {
  name: string
  mint: string
  /** Whether the market has its name: a symbol that is a mint has none of its own. */
  isNamed: boolean
  lastPrice: number
  lastSide: Side
}

const truncateWord = (text: string | null | undefined): string | undefined =>
  text == null ? undefined : truncateText(text, WORD_CHARS_MAX)
const invalidRow = (reason: TradeFault, sample: string): Translation => ({
  token: null,
  trade: null,
  fault: { reason, sample },
})

/** Translates the rows of one trade file into market events. */
export class TradeTranslator {
  /** By symbol code. */
  readonly #states: (SymbolState | undefined)[] = []
  #symbolCount = 0

  /** How many distinct symbols have traded so far. */
  get symbolCount(): number {
    return this.#symbolCount
  }

  /** Translates one row; `shiftMs` is added to its time. */
  translate(batch: TradeBatch, row: number, shiftMs: number): Translation {
    const fault = batch.faults.get(row)
    if (fault !== undefined) return { token: null, trade: null, fault }
    const ts = Math.floor(batch.tsMs[row]) + shiftMs
    const price = batch.price[row]
    const size = batch.size[row]
    if (!(ts >= TIME_MS_MIN && ts <= TIME_MS_MAX)) return invalidRow('time_invalid', `the time is ${ts} ms`)
    if (!(price >= PRICE_MIN && price <= AMOUNT_MAX))
      return invalidRow('price_invalid', `the price is ${price}`)
    if (!(size >= 0 && size <= AMOUNT_MAX)) return invalidRow('size_invalid', `the size is ${size}`)
    const symbol = this.#findSymbol(batch, batch.symbolCode[row])
    if (typeof symbol === 'string') return invalidRow(symbol, `at ${new Date(ts).toISOString()}`)
    const side = classifySide(symbol, price, batch.side?.[row] ?? null)
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
      wallet: truncateWord(batch.wallet?.[row]),
      tx: truncateWord(batch.tx?.[row]),
    }
    return { token: nameOnce(symbol, ts), trade, fault: null }
  }

  #findSymbol(batch: TradeBatch, code: number): SymbolState | TradeFault {
    const known = this.#states[code]
    if (known !== undefined) return known
    const name = batch.symbols[code]
    if (!name) return 'symbol_missing'
    if (this.#symbolCount >= REPLAY_SYMBOLS_MAX) return 'too_many_symbols'
    this.#symbolCount++
    const isMintItself = isMint(name)
    const mint = isMintItself ? name : mintOfSymbol(name)
    const state: SymbolState = { name, mint, isNamed: isMintItself, lastPrice: Number.NaN, lastSide: 'buy' }
    this.#states[code] = state
    return state
  }
}

/** The token event that gives a symbol's mint its name; null when that was done, or the symbol is a mint itself. */
function nameOnce(symbol: SymbolState, ts: number): TokenEvent | null {
  if (symbol.isNamed) return null
  symbol.isNamed = true
  const name = truncateText(symbol.name, WORD_CHARS_MAX)
  return { type: 'token', mint: symbol.mint, ts, name, symbol: name }
}

/**
 * The recorded side, or else that of the tick test: a price above the last one is a buy, below it a sell, and the same price has
 * the same side (C. Lee and M. Ready, "Inferring Trade Direction from Intraday Data", 1991).
 */
function classifySide(symbol: SymbolState, price: number, recorded: Side | null): Side {
  const inferred = price > symbol.lastPrice ? 'buy' : price < symbol.lastPrice ? 'sell' : symbol.lastSide
  symbol.lastPrice = price
  symbol.lastSide = recorded ?? inferred
  return symbol.lastSide
}
