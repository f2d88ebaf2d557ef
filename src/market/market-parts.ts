// The parts of a market, each given those that it uses: who knows whom is told here.
import { type ClosedBar, TIMEFRAMES } from '../schema/bar.ts'
import type { EngineSettings, RewoundSpan } from '../schema/event.ts'
import { BarCascade } from './bars/bar-cascade.ts'
import { BarTextCache } from './bars/bar-text.ts'
import { ClosedBarSweep, emitterOf } from './bars/closed-bar.ts'
import { WalletWindows } from './bars/wallet-windows.ts'
import { timeframeOf, Windows } from './bars/windows.ts'
import { EventWriter } from './events/event-writer.ts'
import { Healing } from './events/healing.ts'
import { Prefetch } from './events/prefetch.ts'
import { rewindMarket } from './events/rewind.ts'
import { TokenFigures } from './events/token-figures.ts'
import { TokenLifecycle } from './events/token-lifecycle.ts'
import { TradeWriter } from './events/trade-writer.ts'
import {
  BARS_PER_TOKEN_MAX_DEFAULT,
  NEW_WINDOW_MS_DEFAULT,
  SOL_PRICE_MAX_AGE_MS_DEFAULT,
  TOKENS_MAX_DEFAULT,
  VERSIONS_MAX_DEFAULT,
} from './limits.ts'
import { ChangeLog } from './output/change-log.ts'
import { DataPointCache } from './output/datapoint-cache.ts'
import { CHANGE_LOG_ENTRIES_MAX, EVICTIONS_MAX } from './output/limits.ts'
import { MarketTotalsCache } from './output/market-totals.ts'
import { OwnTrades } from './output/own-trades.ts'
import { Pages } from './output/pages.ts'
import { Projections } from './output/projections.ts'
import { RowChanges } from './output/row-changes.ts'
import { RowLines } from './output/row-lines.ts'
import { ListFigures, ROW_WINDOWS } from './rankings/list-figures.ts'
import { MintOrder } from './rankings/mint-order.ts'
import { Rankings } from './rankings/rankings.ts'
import { Gaps } from './time/gaps.ts'
import { MarketTime } from './time/market-time.ts'
import { AnalysisCounts } from './tokens/analysis-counts.ts'
import { EvictedMints } from './tokens/evicted-mints.ts'
import { MINTS_KNOWN_MIN, MINTS_KNOWN_PER_TOKEN, VERSION_RETENTION_MS } from './tokens/limits.ts'
import { RecentTrades } from './tokens/recent-trades.ts'
import { SearchIndex } from './tokens/search-index.ts'
import { SolPrice } from './tokens/sol-price.ts'
import { TokenTable } from './tokens/token-table.ts'
import { VersionHistory } from './tokens/version-history.ts'

export interface MarketOptions extends Partial<EngineSettings> {
  changeLogEntriesMax?: number | undefined
  poolBarsMin?: number | undefined
  evictionsMax?: number
  /** The position before the first change; it must be above every position of an earlier run. */
  firstSeq?: number
  /** Called once with each closed bar of a minute or longer, during a write: it must not read the market. */
  onBarClosed?: (bar: ClosedBar) => void
  /** Called when a token's profile may have changed, during a write: it must not read the market. */
  onProfileChanged?: (mint: string) => void
  /** Called where market time goes back, before it does: bars that have closed in this span will close again. */
  onRewound?: (span: RewoundSpan) => void
}

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
  const settings = settingsOf(options)
  const state = createState(settings, options)
  const views = createViews(state, settings.tokensMax)
  return { settings, ...state, ...views, ...createWriters({ ...state, ...views }, settings, options) }
}

type State = ReturnType<typeof createState>

/** What is known: of time, of tokens, and counted from their trades. */
function createState(
  { tokensMax, barsPerTokenMax, solPriceMaxAgeMs, versionsMax }: EngineSettings,
  { onBarClosed, poolBarsMin, changeLogEntriesMax, evictionsMax, firstSeq }: MarketOptions,
) {
  const mintsKnownMax = Math.max(MINTS_KNOWN_MIN, MINTS_KNOWN_PER_TOKEN * tokensMax)
  const time = new MarketTime()
  const log = new ChangeLog({
    entriesMax: changeLogEntriesMax ?? CHANGE_LOG_ENTRIES_MAX,
    evictionsMax: evictionsMax ?? EVICTIONS_MAX,
    firstSeq: firstSeq ?? 0,
  })
  const gaps = new Gaps(time, log)
  const tokens = new TokenTable(tokensMax)
  const mintOrder = new MintOrder(tokens)
  /** How many closed bars were given to `onBarClosed`, by timeframe. */
  const barsEmitted = TIMEFRAMES.map(() => 0)
  const bars = new BarCascade({
    tokensMax,
    barsPerTokenMax,
    poolBarsMin,
    onClosed: onBarClosed && emitterOf(onBarClosed, { tokens, time, gaps, barsEmitted }),
  })
  const windows = new Windows(bars, tokens.columns)
  const listFigures = new ListFigures(tokens, windows)
  return {
    time,
    log,
    gaps,
    tokens,
    mintOrder,
    searchIndex: new SearchIndex(tokens),
    recentTrades: new RecentTrades(tokensMax),
    analysisCounts: new AnalysisCounts(mintsKnownMax),
    evictedMints: new EvictedMints(mintsKnownMax),
    versions: new VersionHistory({
      tokensMax,
      retentionMs: VERSION_RETENTION_MS,
      versionsMax,
      evictedMax: mintsKnownMax,
    }),
    solPrice: new SolPrice(solPriceMaxAgeMs),
    bars,
    barsEmitted,
    windows,
    wallets: new WalletWindows(tokensMax, bars.blocks),
    sweep: new ClosedBarSweep(tokens, bars, time),
    listFigures,
    rankings: new Rankings({ tokensMax, mintOrder, figures: listFigures, time }),
  }
}

/** What readers see of it. */
function createViews(state: State, tokensMax: number) {
  const { time, log, tokens, bars, rankings, listFigures } = state
  const ownTrades = new OwnTrades(state)
  const projections = new Projections({ ...state, ownTrades })
  const rowLines = new RowLines({ tokensMax, time, listFigures, projections })
  const changes = new RowChanges(tokens, rankings, rowLines, log)
  return {
    ownTrades,
    projections,
    rowLines,
    changes,
    pages: new Pages(rankings, rowLines, changes),
    datapoints: new DataPointCache(projections, tokensMax),
    totals: new MarketTotalsCache(tokens, rankings, time),
    barTexts: new BarTextCache(bars),
  }
}

/** What applies events. */
function createWriters(
  parts: State & ReturnType<typeof createViews>,
  { newWindowMs }: EngineSettings,
  { onProfileChanged = () => {}, onRewound = () => {} }: MarketOptions,
) {
  const figures = new TokenFigures({ ...parts, newWindowMs, onProfileChanged })
  const lifecycle = new TokenLifecycle(parts)
  for (const window of ROW_WINDOWS)
    parts.bars.ring(timeframeOf(window)).onReclaim = (slot, keptFromMs) =>
      lifecycle.loseBars(slot, window, keptFromMs)
  const healing = new Healing(parts)
  const trades = new TradeWriter({ ...parts, figures, lifecycle, healing })
  const rewound = { ...parts, figures, healing, onRewound }
  const rewind = (timeMs: number) => rewindMarket(rewound, timeMs)
  return {
    prefetch: new Prefetch(parts),
    figures,
    lifecycle,
    healing,
    trades,
    events: new EventWriter({ ...parts, figures, lifecycle, trades, healing, onProfileChanged, rewind }),
  }
}
