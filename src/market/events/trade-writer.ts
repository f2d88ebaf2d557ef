import { AMOUNT_MAX, PRICE_MIN } from '../../schema/bounds.ts'
import type { EventRejection, TradeEvent } from '../../schema/event.ts'
import { MARKET_QUOTES, quotePriceUsd } from '../../schema/quote.ts'
import type { BarCascade } from '../bars/bar-cascade.ts'
import { watermarkMs } from '../bars/watermark.ts'
import type { Windows } from '../bars/windows.ts'
import { LATE_GRACE_MS } from '../limits.ts'
import type { MarketTime } from '../market-time.ts'
import { addToHotScore } from '../rankings/hot-score.ts'
import type { Rankings } from '../rankings/rankings.ts'
import { obeysCurve } from '../tokens/bonding-curve.ts'
import type { RecentTrades } from '../tokens/recent-trades.ts'
import type { SolPrice } from '../tokens/sol-price.ts'
import type { TokenFigures } from '../tokens/token-figures.ts'
import type { TokenLifecycle } from '../tokens/token-lifecycle.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { WalletWindows } from '../wallets/wallet-windows.ts'
import { quotedWorth, soldWorth, type TradeWorth } from './trade-price.ts'

export interface TradeWriterParts {
  tokens: TokenTable
  time: MarketTime
  bars: BarCascade
  windows: Windows
  wallets: WalletWindows
  rankings: Rankings
  recentTrades: RecentTrades
  solPrice: SolPrice
  figures: TokenFigures
  lifecycle: TokenLifecycle
}

const worthOf = (trade: TradeEvent, solPriceUsd: number): TradeWorth => {
  const { tokenAmount, solAmount, vSol, vTokens, priceUsd, quoteMint, quoteAmount, vQuote } = trade
  return quoteMint == null
    ? soldWorth(tokenAmount, solAmount, vSol, vTokens, priceUsd, solPriceUsd)
    : quotedWorth(tokenAmount, { quoteMint, quoteAmount, vQuote }, vTokens, priceUsd, solPriceUsd)
}

/** Prices trades, and puts them into bars, windows, rankings and the token's figures. */
export class TradeWriter {
  tradeCount = 0
  lateCount = 0
  readonly #tokens: TokenTable
  readonly #time: MarketTime
  readonly #bars: BarCascade
  readonly #windows: Windows
  readonly #wallets: WalletWindows
  readonly #rankings: Rankings
  readonly #recentTrades: RecentTrades
  readonly #solPrice: SolPrice
  readonly #figures: TokenFigures
  readonly #lifecycle: TokenLifecycle

  constructor(parts: TradeWriterParts) {
    this.#tokens = parts.tokens
    this.#time = parts.time
    this.#bars = parts.bars
    this.#windows = parts.windows
    this.#wallets = parts.wallets
    this.#rankings = parts.rankings
    this.#recentTrades = parts.recentTrades
    this.#solPrice = parts.solPrice
    this.#figures = parts.figures
    this.#lifecycle = parts.lifecycle
  }

  /** @returns why the trade was not taken; then nothing has changed. */
  apply(trade: TradeEvent): EventRejection | null {
    const { ts } = trade
    const quoteMint = trade.quoteMint ?? MARKET_QUOTES.sol
    const solPriceUsd = this.#solPrice.usdAt(ts)
    if (trade.priceUsd == null && quoteMint === MARKET_QUOTES.sol && Number.isNaN(solPriceUsd))
      return Number.isNaN(this.#solPrice.usd) ? 'sol_price_unknown' : 'sol_price_stale'
    const worth = worthOf(trade, solPriceUsd)
    // A quote whose price nobody knows: the trade counts, and makes neither a price nor a bar.
    const isPriced = trade.priceUsd != null || !Number.isNaN(quotePriceUsd(quoteMint, solPriceUsd))
    if (isPriced && !(worth.priceUsd >= PRICE_MIN && worth.priceUsd <= AMOUNT_MAX)) return 'price_unknown'
    if (isPriced && !(worth.volumeUsd <= AMOUNT_MAX)) return 'volume_too_large'

    const { columns } = this.#tokens
    const { nowMs } = this.#time
    let slot = this.#tokens.slotOf(trade.mint)
    if (slot !== -1 && ts < watermarkMs(columns, slot, nowMs)) {
      this.lateCount++
      return 'late'
    }
    if (slot === -1) slot = this.#lifecycle.create(trade.mint)
    else this.#lifecycle.recordVersion(slot)
    this.tradeCount++
    columns.tradeCount[rowIndex(slot)]++
    this.#wallets.add(slot, trade.wallet ?? null, ts, nowMs)
    if (isPriced) this.#addToBars(slot, ts, worth, trade.side === 'buy')
    else this.#windows.missVolume(slot, ts + 1)
    // A trade that comes late is counted, but the price stays that of the newest one.
    if (!(ts < columns.lastTradeAtMs[rowIndex(slot)])) {
      columns.lastTradeAtMs[rowIndex(slot)] = ts
      this.#setFigures(slot, trade, solPriceUsd)
      if (isPriced) this.#figures.setPrice(slot, worth.priceUsd, worth.priceSol)
    }
    this.#recentTrades.add(slot, trade)
    this.#lifecycle.endChange(slot)
    return null
  }

  /** What the newest trade says of its curve or pool. */
  #setFigures(slot: number, trade: TradeEvent, solPriceUsd: number): void {
    const { vSol, vTokens, quoteMint } = trade
    if (quoteMint != null) this.#figures.setQuoted(slot, quoteMint, trade, solPriceUsd)
    else if (vSol != null && vTokens != null) {
      if (obeysCurve(vSol, vTokens)) this.#figures.setCurve(slot, vSol, vTokens, solPriceUsd)
      else this.#figures.setReserves(slot, vSol, vTokens)
    }
  }

  #addToBars(slot: number, tsMs: number, { priceUsd, volumeUsd }: TradeWorth, isBuy: boolean): void {
    const { columns } = this.#tokens
    const { nowMs } = this.#time
    const row = rowIndex(slot)
    const watermark = Math.max(watermarkMs(columns, slot, nowMs), tsMs - LATE_GRACE_MS)
    this.#bars.add(slot, tsMs, priceUsd, volumeUsd, isBuy, watermark)
    columns.watermark[row] = watermark
    columns.tradedAtMs[row] = nowMs
    this.#windows.add(slot, tsMs, volumeUsd, isBuy, nowMs)
    const hotScore = this.#rankings.key(slot, 'hot')
    this.#rankings.setKey(slot, 'hot', addToHotScore(hotScore, volumeUsd, tsMs))
  }
}
