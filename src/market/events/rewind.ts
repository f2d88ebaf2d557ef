// Takes market time back, which a wrong clock had moved ahead. The market stays: what was stamped later than now counts as of now.
// What cannot, and would be in the way of the trades to come, is forgotten: bars of later seconds, wallets of tokens that were traded
// later, and of trades without a price in which window they are.
import { intervalStart, SECOND_MS } from '../../lib/time.ts'
import type { RewoundSpan } from '../../schema/event.ts'
import type { BarCascade } from '../bars/bar-cascade.ts'
import type { ClosedBarSweep } from '../bars/closed-bar.ts'
import type { WalletWindows } from '../bars/wallet-windows.ts'
import type { Windows } from '../bars/windows.ts'
import type { RowChanges } from '../output/row-changes.ts'
import { rewindHotScore } from '../rankings/hot-score.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { Gaps } from '../time/gaps.ts'
import type { MarketTime } from '../time/market-time.ts'
import { rewindReports } from '../tokens/enrichment.ts'
import type { EvictedMints } from '../tokens/evicted-mints.ts'
import type { RecentTrades } from '../tokens/recent-trades.ts'
import type { SolPrice } from '../tokens/sol-price.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { VersionHistory } from '../tokens/version-history.ts'
import type { Healing } from './healing.ts'
import type { TokenFigures } from './token-figures.ts'

/** Everything that holds a market time. */
export interface RewoundParts {
  time: MarketTime
  gaps: Gaps
  tokens: TokenTable
  bars: BarCascade
  windows: Windows
  wallets: WalletWindows
  sweep: ClosedBarSweep
  solPrice: SolPrice
  versions: VersionHistory
  evictedMints: EvictedMints
  recentTrades: RecentTrades
  rankings: Rankings
  changes: RowChanges
  figures: TokenFigures
  healing: Healing
  onRewound: (span: RewoundSpan) => void
}

/** Market times of a token. */
const TIMES = ['tradedAtMs', 'versionAtMs', 'firstSeenAtMs', 'barsWholeFromMs'] as const

/** A time that is not before that of the market changes nothing. */
export function rewindMarket(parts: RewoundParts, timeMs: number): void {
  const { time, tokens, windows, versions, figures, evictedMints, sweep, solPrice, gaps, changes, healing } =
    parts
  if (timeMs >= time.nowMs) return
  // A clock that was ahead when somebody began to watch has passed over the time before: it closed no bar of it.
  const span = { fromMs: Math.max(time.sinceMs, gaps.watchedFromMs(timeMs)), toMs: time.nowMs }
  parts.onRewound(span)
  time.rewindTo(timeMs, span)
  for (const part of [windows, versions, evictedMints, sweep, solPrice, gaps]) part.rewindTo(timeMs)
  for (let slot = 0; slot < tokens.slotsUsed; slot++) rewindToken(parts, slot, timeMs)
  figures.reviewAges()
  healing.update()
  changes.notify()
}

function rewindToken(parts: RewoundParts, slot: number, timeMs: number): void {
  const { tokens, bars, wallets, recentTrades, rankings, figures, changes } = parts
  const { columns } = tokens
  const row = rowIndex(slot)
  for (const name of TIMES) columns[name][row] = Math.min(columns[name][row], timeMs)
  // The second that is not over stays as it is: it has trades of before.
  const openMs = intervalStart(timeMs, SECOND_MS)
  if (bars.rewind(slot, openMs)) {
    columns.watermark[row] = openMs
    // The sums of the day are to be made anew.
    columns.dayFromMs[row] = 0
  }
  const aheadMs = columns.lastTradeAtMs[row] - timeMs
  if (aheadMs > 0) {
    wallets.forgetBefore(slot, timeMs)
    recentTrades.rewindTo(slot, timeMs)
    columns.lastTradeAtMs[row] = timeMs
    rankings.setKey(slot, 'hot', rewindHotScore(rankings.key(slot, 'hot'), aheadMs))
  } else wallets.rewindTo(slot, timeMs)
  if (columns.createdAtMs[row] > timeMs) figures.setCreatedAt(slot, timeMs)
  const sparse = tokens.sparse.get(slot)
  if (sparse.reports.some(({ atMs }) => atMs > timeMs))
    tokens.sparse.set(slot, { ...sparse, reports: rewindReports(sparse.reports, timeMs) })
  changes.record(slot)
}
