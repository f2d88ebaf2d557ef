// What readers see of a token: its compared values, its row in the market list, its profile and its DataPoint. Writes nothing.
import { TIMEFRAMES } from '../../schema/bar.ts'
import {
  DATAPOINT_VERSION,
  type DataPoint,
  SNAPSHOT_AGE_MS_MAX,
  type SnapshotValues,
  type SourcedEnriched,
} from '../../schema/datapoint.ts'
import type { MarketItem } from '../../schema/market-item.ts'
import type { BarCascade } from '../bars/bar-cascade.ts'
import { C, T } from '../bars/bar-ring.ts'
import { timeframeOf, type Windows } from '../bars/windows.ts'
import type { Rankings } from '../rankings/rankings.ts'
import { type Enrichment, enrichmentOf, summaryOf } from '../tokens/enrichment.ts'
import { numberOrNull } from '../tokens/figure.ts'
import type { RecentTrades } from '../tokens/recent-trades.ts'
import type { SolPrice } from '../tokens/sol-price.ts'
import {
  FLAG_COMPLETE,
  FLAG_LIVE,
  FLAG_MAYHEM,
  FLAG_MAYHEM_KNOWN,
  rowIndex,
  type TokenTable,
} from '../tokens/token-table.ts'
import { VERSION_VALUES } from '../tokens/version-history.ts'
import type { TokenProfile } from '../types.ts'
import { SPARKLINE_BARS } from './limits.ts'
import type { OwnTrades } from './own-trades.ts'

const SPARKLINE_TIMEFRAME = TIMEFRAMES.indexOf('5m')

export interface ProjectionsParts {
  tokens: TokenTable
  bars: BarCascade
  windows: Windows
  rankings: Rankings
  recentTrades: RecentTrades
  solPrice: SolPrice
  ownTrades: OwnTrades
}

export class Projections {
  readonly #parts: ProjectionsParts
  readonly #compared = new Float64Array(VERSION_VALUES)

  constructor(parts: ProjectionsParts) {
    this.#parts = parts
  }

  /** The nine values that submissions are compared by, as of `nowMs`, which is no earlier than the token's last change, in the order
   *  of SNAPSHOT_FIELDS; NaN for unknown. The array is reused. */
  compare(slot: number, nowMs: number): Float64Array {
    const { priceUsd, marketCap, liquidity, holderCount, top10HolderPct, bondingProgress } =
      this.#parts.tokens.columns
    const row = rowIndex(slot)
    const day = this.#parts.windows.day(slot, nowMs)
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

  item(slot: number, nowMs: number): MarketItem {
    const columns = this.#parts.tokens.columns
    const row = rowIndex(slot)
    const metadata = this.#parts.tokens.metadata[slot]
    const flags = this.#parts.tokens.flags[slot]
    return {
      mint: metadata.mint,
      name: metadata.name,
      symbol: metadata.symbol,
      description: metadata.description,
      image_uri: metadata.imageUri,
      usd_market_cap: numberOrNull(columns.marketCap[row]),
      market_cap: numberOrNull(columns.marketCapSol[row]),
      created_timestamp: numberOrNull(columns.createdAtMs[row]),
      is_currently_live: (flags & FLAG_LIVE) !== 0,
      complete: (flags & FLAG_COMPLETE) !== 0,
      priceUsd: numberOrNull(columns.priceUsd[row]),
      creator: metadata.creator,
      virtual_sol_reserves: numberOrNull(columns.virtualSolReserves[row]),
      virtual_token_reserves: numberOrNull(columns.virtualTokenReserves[row]),
      bonding_progress: numberOrNull(columns.bondingProgress[row]),
      volume_24h_usd: numberOrNull(this.#parts.windows.day(slot, nowMs).volume24h),
      liquidity_usd: numberOrNull(columns.liquidity[row]),
      holder_count: numberOrNull(columns.holderCount[row]),
      last_trade_timestamp: numberOrNull(columns.lastTradeAtMs[row]),
      website: metadata.website,
      twitter: metadata.twitter,
      telegram: metadata.telegram,
      analysis_count: this.#parts.tokens.analysisCounts[slot],
      hot_score: this.#parts.rankings.key(slot, 'hot'),
      quoteMint: metadata.quoteMint,
      isMayhem: mayhemOf(flags),
    }
  }

  profile(slot: number): TokenProfile {
    const { columns, flags, metadata } = this.#parts.tokens
    const row = rowIndex(slot)
    const { mint: _, quoteMint: __, ...texts } = metadata[slot]
    return {
      ...texts,
      totalSupply: numberOrNull(columns.totalSupply[row]),
      createdAtMs: numberOrNull(columns.createdAtMs[row]),
      graduated: (flags[slot] & FLAG_COMPLETE) !== 0,
    }
  }

  /** The fields that the server adds to a submission, and whose they are. */
  enriched(slot: number, nowMs: number): SourcedEnriched {
    const { values, from } = this.#enrichment(slot, nowMs)
    return { ...values, ...summaryOf(from) }
  }

  #enrichment(slot: number, nowMs: number): Enrichment {
    const { tokens, ownTrades } = this.#parts
    const { reports } = tokens.sparse.get(slot)
    return enrichmentOf(reports, () => ownTrades.figures(slot, nowMs), nowMs)
  }

  datapoint(slot: number, nowMs: number): DataPoint {
    const columns = this.#parts.tokens.columns
    const row = rowIndex(slot)
    const metadata = this.#parts.tokens.metadata[slot]
    const flags = this.#parts.tokens.flags[slot]
    const { reports: _, ...sparse } = this.#parts.tokens.sparse.get(slot)
    const { values: enriched, from: enrichedFrom } = this.#enrichment(slot, nowMs)
    const price = columns.priceUsd[row]
    const top10 = numberOrNull(columns.top10HolderPct[row])
    const isLive = (flags & FLAG_LIVE) !== 0
    return {
      mint: metadata.mint,
      name: metadata.name,
      symbol: metadata.symbol,
      description: metadata.description,
      imageUrl: metadata.imageUri,
      imageUri: metadata.imageUri,
      creator: metadata.creator,
      priceUsd: numberOrNull(price),
      priceSol: numberOrNull(columns.priceSol[row]),
      solPriceUsd: numberOrNull(this.#parts.solPrice.usd),
      marketCap: numberOrNull(columns.marketCap[row]),
      totalSupply: numberOrNull(columns.totalSupply[row]),
      ...this.#parts.windows.figures(slot, price, nowMs),
      liquidity: numberOrNull(columns.liquidity[row]),
      tradeCount: numberOrNull(columns.tradeCount[row]),
      holderCount: numberOrNull(columns.holderCount[row]),
      bondingComplete: (flags & FLAG_COMPLETE) !== 0,
      bondingProgress: numberOrNull(columns.bondingProgress[row]),
      isLive,
      isCurrentlyLive: isLive,
      website: metadata.website,
      twitter: metadata.twitter,
      telegram: metadata.telegram,
      top10Holding: top10,
      top10HolderPct: top10,
      ...sparse,
      fdv: sparse.fdv ?? numberOrNull(price * columns.totalSupply[row]),
      recentTrades: this.#parts.recentTrades.read(slot),
      snapshotAt: nowMs,
      ttl: SNAPSHOT_AGE_MS_MAX / 1_000,
      version: DATAPOINT_VERSION,
      ...enriched,
      ...summaryOf(enrichedFrom),
      enrichedFrom,
      createdAt: numberOrNull(columns.createdAtMs[row]),
      virtualSolReserves: numberOrNull(columns.virtualSolReserves[row]),
      virtualTokenReserves: numberOrNull(columns.virtualTokenReserves[row]),
      quoteMint: metadata.quoteMint,
      isMayhem: mayhemOf(flags),
      sparkline: this.#sparkline(slot),
      skills: [
        { id: 'submit_analysis', method: 'POST', path: '/api/v1/analysis/submit' },
        { id: 'read_datapoint', method: 'GET', path: `/api/v1/datapoint?mint=${metadata.mint}` },
        { id: 'read_bars', method: 'GET', path: `/api/v1/ohlc?mint=${metadata.mint}&tf=1m` },
      ],
    }
  }

  /** Changes when the token loses bars of which its DataPoint is made, and its row is not: those of the minute and the sparkline. */
  lostBarsMs(slot: number): number {
    const { bars } = this.#parts
    return bars.ring(timeframeOf('1m')).lostMs(slot) + bars.ring(SPARKLINE_TIMEFRAME).lostMs(slot)
  }

  #sparkline(slot: number): number[] {
    const closes: number[] = []
    this.#parts.bars.backwards(slot, SPARKLINE_TIMEFRAME, (values, at) => {
      if (values[at + T] > 0) closes.push(values[at + C])
      return closes.length < SPARKLINE_BARS
    })
    return closes.reverse()
  }
}

const mayhemOf = (flags: number): boolean | null =>
  (flags & FLAG_MAYHEM_KNOWN) === 0 ? null : (flags & FLAG_MAYHEM) !== 0

/** Names the compared values that lie from `at` on in the order of SNAPSHOT_FIELDS. */
export function toSnapshot(values: ArrayLike<number>, at: number): SnapshotValues {
  return {
    priceUsd: numberOrNull(values[at]),
    marketCap: numberOrNull(values[at + 1]),
    volume24h: numberOrNull(values[at + 2]),
    liquidity: numberOrNull(values[at + 3]),
    holderCount: numberOrNull(values[at + 4]),
    top10HolderPct: numberOrNull(values[at + 5]),
    buys24h: numberOrNull(values[at + 6]),
    sells24h: numberOrNull(values[at + 7]),
    bondingProgress: numberOrNull(values[at + 8]),
  }
}
