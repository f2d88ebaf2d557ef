import { obeysCurve } from '../../schema/bonding-curve.ts'
import { AMOUNT_MAX, COUNT_MAX, PRICE_MIN } from '../../schema/bounds.ts'
import type { EventRejection, TradeEvent } from '../../schema/event.ts'
import { MARKET_QUOTES, quotePriceUsd } from '../../schema/quote.ts'
import type { BarCascade } from '../bars/bar-cascade.ts'
import type { WalletWindows } from '../bars/wallet-windows.ts'
import { watermarkMs } from '../bars/watermark.ts'
import type { Windows } from '../bars/windows.ts'
import { addToHotScore } from '../rankings/hot-score.ts'
import type { Rankings } from '../rankings/rankings.ts'
import { LATE_GRACE_MS } from '../time/limits.ts'
import type { MarketTime } from '../time/market-time.ts'
import type { RecentTrades } from '../tokens/recent-trades.ts'
import type { SolPrice } from '../tokens/sol-price.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { Healing } from './healing.ts'
import type { TokenFigures } from './token-figures.ts'
import type { TokenLifecycle } from './token-lifecycle.ts'
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
  healing: Healing
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
  /** Trades within gaps that feeds heal that were worth what SOL was before the gap. */
  earlierPricedCount = 0
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
  readonly #healing: Healing

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
    this.#healing = parts.healing
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
    const { heldFromMs } = this.#time
    let slot = this.#tokens.slotOf(trade.mint)
    if (slot !== -1 && ts < watermarkMs(columns, slot, this.#time)) {
      this.lateCount++
      return 'late'
    }
    if (slot === -1) slot = this.#lifecycle.create(trade.mint)
    else this.#lifecycle.recordVersion(slot)
    this.tradeCount++
    // A feed may have set it to the most that there can be.
    columns.tradeCount[rowIndex(slot)] = Math.min(columns.tradeCount[rowIndex(slot)] + 1, COUNT_MAX)
    const isBuy = trade.side === 'buy'
    if (isPriced) this.#addToBars(slot, ts, worth, isBuy)
    else this.#windows.addUnpriced(slot, ts, isBuy, this.#time.nowMs)
    if (ts >= heldFromMs) this.#noteHealed(trade)
    // A trade that comes late is counted, but the price stays that of the newest one.
    const isNewest = !(ts < columns.lastTradeAtMs[rowIndex(slot)])
    if (isNewest) {
      columns.lastTradeAtMs[rowIndex(slot)] = ts
      this.#setFigures(slot, trade, solPriceUsd)
      if (isPriced) this.#figures.setPrice(slot, worth.priceUsd, worth.priceSol)
    }
    if (isNewest) this.#recentTrades.add(slot, trade)
    else this.#recentTrades.insert(slot, trade)
    const walletBytes = isNewest ? this.#recentTrades.newestWallet(slot) : null
    this.#wallets.add(slot, trade.wallet ?? null, ts, this.#time.nowMs, walletBytes)
    this.#lifecycle.endChange(slot)
    this.#healing.makeRoom()
    return null
  }

  /** Counts a trade within what a feed heals that is worth what SOL was before: no price of then is known. */
  #noteHealed({ ts, priceUsd, quoteMint }: TradeEvent): void {
    const isInSol = priceUsd == null && (quoteMint ?? MARKET_QUOTES.sol) === MARKET_QUOTES.sol
    if (isInSol && this.#solPrice.reportedAtMsOf(ts) < this.#time.heldFromMs) this.earlierPricedCount++
  }

  /** What the newest trade says of its curve or pool. */
  #setFigures(slot: number, trade: TradeEvent, solPriceUsd: number): void {
    const { solAmount, vSol, vTokens, quoteMint } = trade
    if (quoteMint != null) {
      this.#figures.setQuoted(slot, quoteMint, trade, solPriceUsd)
      return
    }
    if (solAmount != null) this.#figures.setQuoteMint(slot, MARKET_QUOTES.sol)
    if (vSol == null || vTokens == null) return
    if (obeysCurve(vSol, vTokens)) this.#figures.setCurve(slot, vSol, vTokens, solPriceUsd)
    else this.#figures.setPool(slot, vSol, vTokens)
  }

  #addToBars(slot: number, tsMs: number, { priceUsd, volumeUsd }: TradeWorth, isBuy: boolean): void {
    const { columns } = this.#tokens
    const { eventMs, heldFromMs } = this.#time
    const row = rowIndex(slot)
    const watermark = Math.max(
      watermarkMs(columns, slot, this.#time),
      Math.min(tsMs, heldFromMs) - LATE_GRACE_MS,
    )
    this.#bars.add(slot, tsMs, priceUsd, volumeUsd, isBuy, watermark)
    columns.watermark[row] = watermark
    columns.tradedAtMs[row] = eventMs
    this.#windows.add(slot, tsMs, volumeUsd, isBuy, eventMs)
    const hotScore = this.#rankings.key(slot, 'hot')
    this.#rankings.setKey(slot, 'hot', addToHotScore(hotScore, volumeUsd, tsMs))
  }
}
