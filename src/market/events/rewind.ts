// Takes market time back, which a wrong clock had moved ahead. The market stays: what was stamped later than now counts as of now,
// and bars of later seconds, which would be in the way of the trades to come, are forgotten.
import { intervalStart, SECOND_MS } from '../../lib/time.ts'
import type { RewindEvent } from '../../schema/event.ts'
import type { ClosedBarSweep } from '../bars/closed-bar.ts'
import type { MarketState } from '../market-state.ts'
import { rewindHotScore } from '../rankings/hot-score.ts'
import { rowIndex } from '../tokens/token-table.ts'
import type { Healing } from './healing.ts'
import { passTime } from './pass-time.ts'
import type { TokenFigures } from './token-figures.ts'

type RewoundParts = MarketState & { figures: TokenFigures; healing: Healing; sweep: ClosedBarSweep }

/** Market times of a token. */
const TIMES = ['tradedAtMs', 'versionAtMs', 'firstSeenAtMs', 'barsWholeFromMs'] as const

/** A time that is not before that of the market changes nothing. */
export function rewindMarket(parts: RewoundParts, { ts: timeMs, fromMs = timeMs }: RewindEvent): void {
  // Where events are applied again, nothing else may have told the time that passed before.
  passTime(parts, fromMs)
  const { time, tokens, windows, figures, evictedMints, sweep, solPrice, gaps, changes, healing } = parts
  if (timeMs >= time.nowMs) return
  time.rewindTo(timeMs)
  for (const part of [windows, evictedMints, sweep, solPrice, gaps]) part.rewindTo(timeMs)
  for (let slot = 0; slot < tokens.slotsUsed; slot++)
    if (tokens.isHeld(slot)) rewindToken(parts, slot, timeMs)
  figures.reviewAges()
  healing.update()
  changes.notify()
}

function rewindToken(parts: RewoundParts, slot: number, timeMs: number): void {
  const { tokens, bars, wallets, versions, rankings, figures, changes } = parts
  const { columns } = tokens
  const row = rowIndex(slot)
  if (columns.versionAtMs[row] > timeMs) versions.clear(slot)
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
    columns.lastTradeAtMs[row] = timeMs
    rankings.setKey(slot, 'hot', rewindHotScore(rankings.key(slot, 'hot'), aheadMs))
  } else wallets.rewindTo(slot, timeMs)
  if (columns.createdAtMs[row] > timeMs) figures.setCreatedAt(slot, timeMs)
  changes.record(slot)
}
