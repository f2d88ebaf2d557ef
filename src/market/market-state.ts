// The state of a market, and what readers see of it: all but what applies events.
import { BarTextCache } from './bars/bar-text.ts'
import { createSources, type MarketOptions, settingsOf } from './market-sources.ts'
import { DataPointCache } from './output/datapoint-cache.ts'
import { MarketTotalsCache } from './output/market-totals.ts'
import { OwnTrades } from './output/own-trades.ts'
import { Pages } from './output/pages.ts'
import { Projections } from './output/projections.ts'
import { RowChanges } from './output/row-changes.ts'
import { RowLines } from './output/row-lines.ts'
import { AnalysisCounts } from './tokens/analysis-counts.ts'
import { EvictedMints } from './tokens/evicted-mints.ts'
import { MINTS_KNOWN_MIN, MINTS_KNOWN_PER_TOKEN, VERSION_RETENTION_MS } from './tokens/limits.ts'
import { SearchIndex } from './tokens/search-index.ts'
import { VersionHistory } from './tokens/version-history.ts'

export type MarketState = ReturnType<typeof createState>

/** The figures of tokens, and what readers see of them. */
export function createState(options: MarketOptions) {
  const settings = settingsOf(options)
  const mintsKnownMax = Math.max(MINTS_KNOWN_MIN, MINTS_KNOWN_PER_TOKEN * settings.tokensMax)
  const sources = createSources(settings, options)
  const { tokens, rankings, time, log } = sources
  const ownTrades = new OwnTrades(sources)
  const projections = new Projections({ ...sources, ownTrades })
  const rowLines = new RowLines({ ...sources, projections })
  const changes = new RowChanges(tokens, rankings, rowLines, log)
  return {
    ...sources,
    settings,
    ownTrades,
    projections,
    rowLines,
    pages: new Pages(rankings, rowLines, changes),
    changes,
    datapoints: new DataPointCache(projections, settings.tokensMax),
    searchIndex: new SearchIndex(tokens),
    totals: new MarketTotalsCache(tokens, rankings, time),
    analysisCounts: new AnalysisCounts(mintsKnownMax),
    evictedMints: new EvictedMints(mintsKnownMax),
    versions: new VersionHistory({
      tokensMax: settings.tokensMax,
      retentionMs: VERSION_RETENTION_MS,
      versionsMax: settings.versionsMax,
      evictedMax: mintsKnownMax,
    }),
    barTexts: new BarTextCache(sources.bars),
  }
}
