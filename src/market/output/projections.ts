// In: a token's columns, words, windows, bars and trades. Out: what readers see of it: its compared values, its row in
// the market list, its DataPoint. Never changes anything.
import { TIMEFRAMES } from '../../schema/bar.ts'
import { bounded } from '../../schema/bounds.ts'
import {
  DATAPOINT_VERSION,
  type DataPoint,
  type Enriched,
  type SnapshotValues,
} from '../../schema/datapoint.ts'
import type { MarketItem } from '../../schema/market-item.ts'
import type { BarCascade } from '../bars/bar-cascade.ts'
import { C, T } from '../bars/bar-ring.ts'
import { dayFrom, type Windows } from '../bars/windows.ts'
import { SPARKLINE_BARS } from '../limits.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { AnalysisCounts } from '../tokens/analysis-counts.ts'
import type { RecentTrades } from '../tokens/recent-trades.ts'
import { FLAG_COMPLETE, FLAG_LIVE, rowOf, type TokenTable } from '../tokens/token-table.ts'
import { VERSION_VALUES } from '../tokens/version-history.ts'
import type { TokenProfile } from '../types.ts'

/** Seconds from its reading during which a DataPoint may be submitted: the five minutes of the contract. */
const DATAPOINT_TTL_SECONDS = 300
const SPARKLINE_TIMEFRAME = TIMEFRAMES.indexOf('5m')

/** NaN is how a column says unknown; a figure beyond the bounds is unknown too. */
const known = (value: number): number | null => {
  const figure = bounded(value)
  return Number.isNaN(figure) ? null : figure
}

/** Where the views look. */
export interface ProjectionSources {
  tokens: TokenTable
  bars: BarCascade
  windows: Windows
  rankings: Rankings
  recentTrades: RecentTrades
  analysisCounts: AnalysisCounts
  /** NaN when unknown. */
  solPriceUsd(): number
}

export class Projections {
  #sources: ProjectionSources
  readonly #compared = new Float64Array(VERSION_VALUES)

  constructor(sources: ProjectionSources) {
    this.#sources = sources
  }

  /** The nine compared values as of `nowMs`, in SNAPSHOT_FIELDS' order, NaN for unknown. The array is reused. */
  compare(slot: number, nowMs: number): Float64Array {
    const { priceUsd, marketCap, liquidity, holderCount, top10HolderPct, bondingProgress } =
      this.#sources.tokens.columns
    const row = rowOf(slot)
    const day = this.#sources.windows.day(slot, nowMs)
    const values = this.#compared
    values[0] = priceUsd[row]
    values[1] = marketCap[row]
    values[2] = day.volume24h
    values[3] = liquidity[row]
    values[4] = holderCount[row]
    values[5] = top10HolderPct[row]
    values[6] = day.buys24h
    values[7] = day.sells24h
    values[8] = bondingProgress[row]
    return values
  }

  /** A version's values with the 24-hour window moved from where it stood to where it was at `atMs`. */
  asOfWindow(
    slot: number,
    values: Float64Array,
    at: number,
    windowFromMs: number,
    atMs: number,
  ): SnapshotValues {
    const snapshot = toSnapshot(values, at)
    const fromMs = dayFrom(atMs)
    if (Number.isNaN(windowFromMs) || fromMs === windowFromMs) return snapshot
    const { volume, buys, sells } = this.#sources.windows.between(
      slot,
      Math.min(fromMs, windowFromMs),
      Math.max(fromMs, windowFromMs),
    )
    const sign = fromMs < windowFromMs ? 1 : -1
    if (snapshot.volume24h !== null) snapshot.volume24h += sign * volume
    if (snapshot.buys24h !== null) snapshot.buys24h += sign * buys
    if (snapshot.sells24h !== null) snapshot.sells24h += sign * sells
    return snapshot
  }

  /** Its row in the market list. */
  item(slot: number, nowMs: number): MarketItem {
    const columns = this.#sources.tokens.columns
    const row = rowOf(slot)
    const metadata = this.#sources.tokens.texts[slot]!
    const flags = this.#sources.tokens.flags[slot]
    return {
      mint: metadata.mint,
      name: metadata.name,
      symbol: metadata.symbol,
      description: metadata.description,
      image_uri: metadata.imageUri,
      usd_market_cap: known(columns.marketCap[row]),
      market_cap: known(columns.marketCapSol[row]),
      created_timestamp: known(columns.createdAt[row]),
      is_currently_live: (flags & FLAG_LIVE) !== 0,
      complete: (flags & FLAG_COMPLETE) !== 0,
      priceUsd: known(columns.priceUsd[row]),
      creator: metadata.creator,
      virtual_sol_reserves: known(columns.virtualSolReserves[row]),
      virtual_token_reserves: known(columns.virtualTokenReserves[row]),
      bonding_progress: known(columns.bondingProgress[row]),
      volume_24h_usd: known(this.#sources.windows.day(slot, nowMs).volume24h),
      liquidity_usd: known(columns.liquidity[row]),
      holder_count: known(columns.holderCount[row]),
      last_trade_timestamp: known(columns.lastTradeAt[row]),
      website: metadata.website,
      twitter: metadata.twitter,
      telegram: metadata.telegram,
      analysis_count: this.#sources.analysisCounts.get(metadata.mint),
      hot_score: this.#sources.rankings.key(slot, 'hot'),
    }
  }

  /** What it says of itself. */
  profile(slot: number): TokenProfile {
    const { columns, flags, texts } = this.#sources.tokens
    const row = rowOf(slot)
    const { mint: _, ...metadata } = texts[slot]!
    return {
      ...metadata,
      totalSupply: known(columns.totalSupply[row]),
      createdAtMs: known(columns.createdAt[row]),
      graduated: (flags[slot] & FLAG_COMPLETE) !== 0,
    }
  }

  /** What the server resolves and no client sends. */
  enriched(slot: number): Enriched {
    const sparse = this.#sources.tokens.sparse[slot]!
    return {
      has_freeze_authority: sparse.has_freeze_authority,
      has_mint_authority: sparse.has_mint_authority,
      transfer_fee_enabled: sparse.transfer_fee_enabled,
      is_mutable_metadata: sparse.is_mutable_metadata,
      top10_holder_pct_onchain: sparse.top10_holder_pct_onchain,
      unique_wallet_24h: sparse.unique_wallet_24h,
      unique_wallet_1h: sparse.unique_wallet_1h,
      buy_volume_24h_usd: sparse.buy_volume_24h_usd,
      sell_volume_24h_usd: sparse.sell_volume_24h_usd,
    }
  }

  /** Its DataPoint as of `nowMs`. */
  datapoint(slot: number, nowMs: number): DataPoint {
    const columns = this.#sources.tokens.columns
    const row = rowOf(slot)
    const metadata = this.#sources.tokens.texts[slot]!
    const flags = this.#sources.tokens.flags[slot]
    const sparse = this.#sources.tokens.sparse[slot]!
    const price = columns.priceUsd[row]
    const top10 = known(columns.top10HolderPct[row])
    const isLive = (flags & FLAG_LIVE) !== 0
    return {
      mint: metadata.mint,
      name: metadata.name,
      symbol: metadata.symbol,
      description: metadata.description,
      imageUrl: metadata.imageUri,
      imageUri: metadata.imageUri,
      creator: metadata.creator,
      priceUsd: known(price),
      priceSol: known(columns.priceSol[row]),
      solPriceUsd: known(this.#sources.solPriceUsd()),
      marketCap: known(columns.marketCap[row]),
      totalSupply: known(columns.totalSupply[row]),
      ...this.#sources.windows.figures(slot, price, nowMs),
      liquidity: known(columns.liquidity[row]),
      tradeCount: columns.tradeCount[row],
      holderCount: known(columns.holderCount[row]),
      bondingComplete: (flags & FLAG_COMPLETE) !== 0,
      bondingProgress: known(columns.bondingProgress[row]),
      isLive,
      isCurrentlyLive: isLive,
      website: metadata.website,
      twitter: metadata.twitter,
      telegram: metadata.telegram,
      top10Holding: top10,
      top10HolderPct: top10,
      ...sparse,
      fdv: sparse.fdv ?? known(price * columns.totalSupply[row]),
      recentTrades: this.#sources.recentTrades.of(slot),
      snapshotAt: nowMs,
      ttl: DATAPOINT_TTL_SECONDS,
      version: DATAPOINT_VERSION,
      createdAt: known(columns.createdAt[row]),
      virtualSolReserves: known(columns.virtualSolReserves[row]),
      virtualTokenReserves: known(columns.virtualTokenReserves[row]),
      sparkline: this.#sparkline(slot),
      skills: [
        { id: 'submit_analysis', method: 'POST', path: '/api/v1/analysis/submit' },
        { id: 'read_datapoint', method: 'GET', path: `/api/v1/datapoint?mint=${metadata.mint}` },
        { id: 'read_bars', method: 'GET', path: `/api/v1/ohlc?mint=${metadata.mint}&tf=1m` },
      ],
    }
  }

  #sparkline(slot: number): number[] {
    const closes: number[] = []
    this.#sources.bars.backwards(slot, SPARKLINE_TIMEFRAME, (values, at) => {
      if (values[at + T] > 0) closes.push(values[at + C])
      return closes.length < SPARKLINE_BARS
    })
    return closes.reverse()
  }
}

/** Compared values, in SNAPSHOT_FIELDS' order from `at` on, under their names. */
export function toSnapshot(values: ArrayLike<number>, at: number): SnapshotValues {
  return {
    priceUsd: known(values[at]),
    marketCap: known(values[at + 1]),
    volume24h: known(values[at + 2]),
    liquidity: known(values[at + 3]),
    holderCount: known(values[at + 4]),
    top10HolderPct: known(values[at + 5]),
    buys24h: known(values[at + 6]),
    sells24h: known(values[at + 7]),
    bondingProgress: known(values[at + 8]),
  }
}
