// The parts of a market, connected to one another.
import { type ClosedBar, TIMEFRAMES } from '../schema/bar.ts'
import type { EngineSettings } from '../schema/event.ts'
import { BarCascade, type BarCascadeOptions } from './bars/bar-cascade.ts'
import { BarTextCache } from './bars/bar-text.ts'
import { ClosedBarSweep, copyClosedBar } from './bars/closed-bar.ts'
import { WalletWindows } from './bars/wallet-windows.ts'
import { DAY_TIMEFRAME, Windows } from './bars/windows.ts'
import { EventWriter } from './events/event-writer.ts'
import { Healing } from './events/healing.ts'
import { Prefetch } from './events/prefetch.ts'
import { rewindMarket } from './events/rewind.ts'
import { TokenFigures } from './events/token-figures.ts'
import { TokenLifecycle } from './events/token-lifecycle.ts'
import { TradeWriter } from './events/trade-writer.ts'
import {
  BARS_PER_TOKEN_MAX_DEFAULT,
  CHANGE_LOG_ENTRIES_MAX,
  EVICTIONS_MAX,
  MINTS_KNOWN_MIN,
  MINTS_KNOWN_PER_TOKEN,
  NEW_WINDOW_MS_DEFAULT,
  SOL_PRICE_MAX_AGE_MS_DEFAULT,
  TOKENS_MAX_DEFAULT,
  VERSION_RETENTION_MS,
  VERSIONS_MAX_DEFAULT,
} from './limits.ts'
import { ChangeLog } from './output/change-log.ts'
import { DataPointCache } from './output/datapoint-cache.ts'
import { MarketTotalsCache } from './output/market-totals.ts'
import { OwnTrades } from './output/own-trades.ts'
import { Pages } from './output/pages.ts'
import { Projections } from './output/projections.ts'
import { RowChanges } from './output/row-changes.ts'
import { RowLines } from './output/row-lines.ts'
import { ListFigures } from './rankings/list-figures.ts'
import { MintOrder } from './rankings/mint-order.ts'
import { Rankings } from './rankings/rankings.ts'
import { Gaps } from './time/gaps.ts'
import { MarketTime } from './time/market-time.ts'
import { AnalysisCounts } from './tokens/analysis-counts.ts'
import { EvictedMints } from './tokens/evicted-mints.ts'
import { RecentTrades } from './tokens/recent-trades.ts'
import { SearchIndex } from './tokens/search-index.ts'
import { SolPrice } from './tokens/sol-price.ts'
import { TokenTable } from './tokens/token-table.ts'
import { VersionHistory } from './tokens/version-history.ts'

export interface MarketOptions {
  tokensMax?: number
  /** How long a token counts as new. */
  newWindowMs?: number
  /** How old a price of SOL may be for a trade to be priced with it, ms; 0: any age. */
  solPriceMaxAgeMs?: number
  barsPerTokenMax?: number
  versionsMax?: number
  changeLogEntriesMax?: number
  evictionsMax?: number
  /** The position before the first change; it must be above every position of an earlier run. */
  firstSeq?: number
  /** Called once with each closed bar of a minute or longer, during a write: it must not read the market. */
  onBarClosed?: (bar: ClosedBar) => void
  /** Called when a token's profile may have changed, during a write: it must not read the market. */
  onProfileChanged?: (mint: string) => void
}

const MINUTE_INDEX = TIMEFRAMES.indexOf('1m')

/** What the engine's answers depend on besides the events, where options leave it open. */
export const settingsOf = (options: MarketOptions): EngineSettings => ({
  tokensMax: options.tokensMax ?? TOKENS_MAX_DEFAULT,
  newWindowMs: options.newWindowMs ?? NEW_WINDOW_MS_DEFAULT,
  solPriceMaxAgeMs: options.solPriceMaxAgeMs ?? SOL_PRICE_MAX_AGE_MS_DEFAULT,
  barsPerTokenMax: options.barsPerTokenMax ?? BARS_PER_TOKEN_MAX_DEFAULT,
  versionsMax: options.versionsMax ?? VERSIONS_MAX_DEFAULT,
})

export type MarketParts = ReturnType<typeof createParts>

/** The parts of an empty market. */
export function createParts(options: MarketOptions) {
  const { onProfileChanged = () => {} } = options
  const settings = settingsOf(options)
  const { tokensMax, newWindowMs } = settings
  const mintsKnownMax = Math.max(MINTS_KNOWN_MIN, MINTS_KNOWN_PER_TOKEN * tokensMax)
  const sources = createSources(settings, options)
  const { tokens, rankings, time } = sources
  const ownTrades = new OwnTrades(sources)
  const projections = new Projections({ ...sources, ownTrades })
  const rowLines = new RowLines({ ...sources, projections })
  const log = new ChangeLog({
    entriesMax: options.changeLogEntriesMax ?? CHANGE_LOG_ENTRIES_MAX,
    evictionsMax: options.evictionsMax ?? EVICTIONS_MAX,
    firstSeq: options.firstSeq ?? 0,
  })
  const changes = new RowChanges(tokens, rankings, rowLines, log)
  const parts = {
    ...sources,
    settings,
    ownTrades,
    projections,
    rowLines,
    pages: new Pages(rankings, rowLines, changes),
    changes,
    datapoints: new DataPointCache(projections),
    searchIndex: new SearchIndex(tokens),
    totals: new MarketTotalsCache(tokens, rankings, time),
    analysisCounts: new AnalysisCounts(mintsKnownMax),
    evictedMints: new EvictedMints(mintsKnownMax),
    versions: new VersionHistory({
      tokensMax,
      retentionMs: VERSION_RETENTION_MS,
      versionsMax: settings.versionsMax,
      evictedMax: mintsKnownMax,
    }),
  }
  const figures = new TokenFigures({ ...parts, newWindowMs, onProfileChanged })
  const lifecycle = new TokenLifecycle(parts)
  sources.bars.onReclaim(DAY_TIMEFRAME, (slot) => {
    lifecycle.settleWindow(slot)
    sources.windows.loseOldest(slot)
  })
  const healing = new Healing(parts)
  const trades = new TradeWriter({ ...parts, figures, lifecycle, healing })
  const sweep = new ClosedBarSweep(tokens, parts.bars, time)
  const rewindTo = (timeMs: number) => rewindMarket({ ...parts, figures, sweep, healing }, timeMs)
  return {
    ...parts,
    barTexts: new BarTextCache(parts.bars),
    prefetch: new Prefetch(parts),
    sweep,
    figures,
    lifecycle,
    trades,
    healing,
    events: new EventWriter({ ...parts, figures, lifecycle, trades, healing, onProfileChanged, rewindTo }),
  }
}

/** What holds the figures of tokens, and what they are made of. */
function createSources(
  { tokensMax, barsPerTokenMax, solPriceMaxAgeMs }: EngineSettings,
  { onBarClosed }: MarketOptions,
) {
  const time = new MarketTime()
  const gaps = new Gaps(time)
  const tokens = new TokenTable(tokensMax)
  const mintOrder = new MintOrder(tokens)
  const barsEmitted = TIMEFRAMES.map(() => 0)
  const bars = new BarCascade({
    tokensMax,
    barsPerTokenMax,
    onClosed: onBarClosed && emitterOf(onBarClosed, { tokens, time, gaps, barsEmitted }),
    closedFrom: MINUTE_INDEX,
  })
  const windows = new Windows(bars, tokens.columns)
  const listFigures = new ListFigures(tokens, windows)
  return {
    time,
    gaps,
    tokens,
    mintOrder,
    bars,
    /** How many closed bars were given to `onBarClosed`, by timeframe. */
    barsEmitted,
    windows,
    wallets: new WalletWindows(tokensMax),
    listFigures,
    rankings: new Rankings({ tokensMax, mintOrder, figures: listFigures, time }),
    recentTrades: new RecentTrades(),
    solPrice: new SolPrice(solPriceMaxAgeMs),
  }
}

interface EmitterParts {
  tokens: TokenTable
  time: MarketTime
  gaps: Gaps
  barsEmitted: number[]
}

/** What the cascade calls with each closed bar, which it holds as numbers at an address. */
function emitterOf(
  onBarClosed: (bar: ClosedBar) => void,
  { tokens, time, gaps, barsEmitted }: EmitterParts,
): NonNullable<BarCascadeOptions['onClosed']> {
  return (slot, timeframe, values, address) => {
    const { mint } = tokens.metadata[slot]
    barsEmitted[timeframe]++
    const watchedSinceMs = Math.max(time.sinceMs, tokens.barsWholeFromMs(slot))
    onBarClosed(copyClosedBar(values, address, mint, timeframe, time.nowMs, watchedSinceMs, gaps))
  }
}
