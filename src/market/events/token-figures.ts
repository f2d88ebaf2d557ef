// The figures of a token that follow from one another: price, market cap, bonding curve, flags and the tabs they decide.

import {
  bondingProgress,
  CURVE_SUPPLY,
  obeysCurve,
  progressOf,
  raisedSol,
  SOLD_ON_CURVE,
} from '../../schema/bonding-curve.ts'
import { bounded } from '../../schema/bounds.ts'
import type { TradeEvent } from '../../schema/event.ts'
import { quotePriceUsd } from '../../schema/quote.ts'
import type { RowChanges } from '../output/row-changes.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { MarketTime } from '../time/market-time.ts'
import {
  FLAG_COMPLETE,
  FLAG_LIQUIDITY_PATCHED,
  FLAG_LIVE,
  FLAG_MAYHEM,
  FLAG_MAYHEM_KNOWN,
  rowIndex,
  type TokenTable,
} from '../tokens/token-table.ts'

export interface TokenFiguresParts {
  tokens: TokenTable
  rankings: Rankings
  changes: RowChanges
  time: MarketTime
  newWindowMs: number
  onProfileChanged: (mint: string) => void
}

export class TokenFigures {
  readonly #tokens: TokenTable
  readonly #rankings: Rankings
  readonly #changes: RowChanges
  readonly #time: MarketTime
  readonly #newWindowMs: number
  readonly #onProfileChanged: (mint: string) => void

  constructor(parts: TokenFiguresParts) {
    this.#tokens = parts.tokens
    this.#rankings = parts.rankings
    this.#changes = parts.changes
    this.#time = parts.time
    this.#newWindowMs = parts.newWindowMs
    this.#onProfileChanged = parts.onProfileChanged
  }

  /** Sets the price, and the market cap that follows from it. NaN stands for unknown. */
  setPrice(slot: number, priceUsd: number, priceSol: number): void {
    const { columns } = this.#tokens
    const row = rowIndex(slot)
    columns.priceUsd[row] = priceUsd
    columns.priceSol[row] = priceSol
    let circulating = columns.circulating[row]
    if (Number.isNaN(circulating)) {
      // A market cap that was patched before any price was known implies how many tokens it counted; until one says that, it stays.
      const isImplied = !Number.isNaN(columns.marketCap[row])
      if (isImplied && !(priceUsd > 0)) return
      circulating = isImplied ? bounded(columns.marketCap[row] / priceUsd) : columns.totalSupply[row]
      columns.circulating[row] = circulating
    }
    columns.marketCap[row] = bounded(priceUsd * circulating)
    columns.marketCapSol[row] = bounded(priceSol * circulating)
    this.rankMarketCap(slot)
  }

  rankMarketCap(slot: number): void {
    this.#rankings.setKey(slot, 'market_cap', this.#tokens.columns.marketCap[rowIndex(slot)])
  }

  /** Sets what its trades are paid in. */
  setQuoteMint(slot: number, quoteMint: string): void {
    const metadata = this.#tokens.metadata[slot]
    if (metadata.quoteMint !== quoteMint) metadata.quoteMint = quoteMint
  }

  /** Sets reserves that are not those of a pump.fun curve: what followed from earlier ones that were is not known any more. */
  setPool(slot: number, vSol: number, vTokens: number): void {
    const { columns, flags } = this.#tokens
    const row = rowIndex(slot)
    const wasOnCurve = obeysCurve(columns.virtualSolReserves[row], columns.virtualTokenReserves[row])
    this.#setReserves(slot, vSol, vTokens)
    if (!wasOnCurve) return
    if ((flags[slot] & FLAG_COMPLETE) === 0) columns.bondingProgress[row] = Number.NaN
    if ((flags[slot] & FLAG_LIQUIDITY_PATCHED) === 0) columns.liquidity[row] = Number.NaN
  }

  #setReserves(slot: number, vSol: number, vTokens: number): void {
    const { columns } = this.#tokens
    columns.virtualSolReserves[rowIndex(slot)] = vSol
    columns.virtualTokenReserves[rowIndex(slot)] = vTokens
  }

  /**
   * Sets the reserves of a pump.fun curve, and what follows from them: progress, supply and liquidity.
   * @param solPriceUsd NaN: unknown, and then the liquidity is, too.
   */
  setCurve(slot: number, vSol: number, vTokens: number, solPriceUsd: number): void {
    const { columns, flags, metadata } = this.#tokens
    const row = rowIndex(slot)
    this.#setReserves(slot, vSol, vTokens)
    if ((flags[slot] & FLAG_COMPLETE) === 0) columns.bondingProgress[row] = bondingProgress(vTokens)
    if (Number.isNaN(columns.totalSupply[row])) {
      columns.totalSupply[row] = CURVE_SUPPLY
      this.#onProfileChanged(metadata[slot].mint)
    }
    if ((flags[slot] & FLAG_LIQUIDITY_PATCHED) === 0)
      columns.liquidity[row] = bounded(2 * raisedSol(vSol) * solPriceUsd)
  }

  /** Sets what a trade with a quote says: its reserves, and from them progress and liquidity. Nothing is assumed of its curve. */
  setQuoted(
    slot: number,
    quoteMint: string,
    { vSol, vTokens, quoteReserve, curveTokens }: TradeEvent,
    solPriceUsd: number,
  ): void {
    const { columns, flags } = this.#tokens
    const row = rowIndex(slot)
    this.setQuoteMint(slot, quoteMint)
    if (vTokens != null) this.#setReserves(slot, vSol ?? Number.NaN, vTokens)
    if (curveTokens != null && (flags[slot] & FLAG_COMPLETE) === 0) {
      const atFirst = columns.curveTokens[row]
      columns.bondingProgress[row] = progressOf(curveTokens, Number.isNaN(atFirst) ? SOLD_ON_CURVE : atFirst)
    }
    if (quoteReserve != null && (flags[slot] & FLAG_LIQUIDITY_PATCHED) === 0)
      columns.liquidity[row] = bounded(2 * quoteReserve * quotePriceUsd(quoteMint, solPriceUsd))
  }

  /** The supply that the token's creator reported; the market cap counts all of it. */
  setTotalSupply(slot: number, totalSupply: number): void {
    const { columns } = this.#tokens
    const row = rowIndex(slot)
    if (totalSupply === columns.totalSupply[row]) return
    columns.totalSupply[row] = totalSupply
    columns.circulating[row] = totalSupply
    if (!Number.isNaN(columns.priceUsd[row]))
      this.setPrice(slot, columns.priceUsd[row], columns.priceSol[row])
  }

  setLive(slot: number, isLive: boolean): void {
    this.#setFlag(slot, FLAG_LIVE, isLive)
    this.#changes.setTab(slot, 'live', isLive)
  }

  /** @param isMayhem null: not known */
  setMayhem(slot: number, isMayhem: boolean | null): void {
    this.#setFlag(slot, FLAG_MAYHEM, isMayhem === true)
    this.#setFlag(slot, FLAG_MAYHEM_KNOWN, isMayhem !== null)
  }

  setGraduated(slot: number, isGraduated: boolean): void {
    this.#setFlag(slot, FLAG_COMPLETE, isGraduated)
    this.#changes.setTab(slot, 'graduated', isGraduated)
  }

  /** @param createdAtMs Unix ms; NaN for unknown. */
  setCreatedAt(slot: number, createdAtMs: number): void {
    this.#tokens.columns.createdAtMs[rowIndex(slot)] = createdAtMs
    this.#rankings.setKey(slot, 'created_timestamp', createdAtMs)
    this.#changes.setTab(slot, 'new', this.#isNew(slot))
  }

  /** Puts every token into the tab `new`, or takes it out, by its age: how long a token counts as new has changed. */
  reviewAges(): void {
    for (let slot = 0; slot < this.#tokens.slotsUsed; slot++)
      this.#changes.setTab(slot, 'new', this.#isNew(slot))
  }

  /** Takes the tokens that are too old by now out of the tab `new`. */
  removeAged(): void {
    const newest = this.#rankings.of('new', 'created_timestamp')
    for (let slot = newest.last(); slot !== -1 && !this.#isNew(slot); slot = newest.last()) {
      this.#changes.setTab(slot, 'new', false)
      this.#changes.record(slot)
    }
  }

  #isNew(slot: number): boolean {
    return this.#time.nowMs - this.#tokens.columns.createdAtMs[rowIndex(slot)] < this.#newWindowMs
  }

  #setFlag(slot: number, flag: number, isSet: boolean): void {
    const { flags } = this.#tokens
    if (isSet) flags[slot] |= flag
    else flags[slot] &= ~flag
  }
}
