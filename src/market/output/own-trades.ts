// What the market's own trades say of a token, where it has watched all of a window: since the token's launch or the window's
// beginning, without a gap.

import type { TradeFigures } from '../../schema/enrichment.ts'
import type { WindowName } from '../bars/limits.ts'
import type { WalletWindows } from '../bars/wallet-windows.ts'
import { type Windows, windowFromMs } from '../bars/windows.ts'
import type { Gaps } from '../time/gaps.ts'
import { LATE_GRACE_MS } from '../time/limits.ts'
import type { MarketTime } from '../time/market-time.ts'
import { numberOrNull } from '../tokens/figure.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'

export interface OwnTradesParts {
  tokens: TokenTable
  time: MarketTime
  gaps: Gaps
  windows: Windows
  wallets: WalletWindows
}

export class OwnTrades {
  readonly #parts: OwnTradesParts

  constructor(parts: OwnTradesParts) {
    this.#parts = parts
  }

  /**
   * The figures as of `nowMs`, which is no earlier than the token's last change. Each is null where not all of its window was watched, or a
   * trade of it lacks its wallet or price.
   */
  figures(slot: number, nowMs: number): TradeFigures {
    const { wallets, windows } = this.#parts
    const [hourFromMs, dayFromMs] = [
      this.#watchedFrom(slot, '1h', nowMs),
      this.#watchedFrom(slot, '24h', nowMs),
    ]
    const hasVolumes = dayFromMs !== null && windows.hasDayVolumes(slot, dayFromMs)
    const volumes = hasVolumes ? windows.dayVolumes(slot, nowMs) : null
    return {
      unique_wallet_24h: dayFromMs === null ? null : wallets.countSince(slot, dayFromMs),
      unique_wallet_1h: hourFromMs === null ? null : wallets.countSince(slot, hourFromMs),
      buy_volume_24h_usd: volumes === null ? null : numberOrNull(volumes.buy),
      sell_volume_24h_usd: volumes === null ? null : numberOrNull(volumes.sell),
    }
  }

  /** The time from which on a window has trades of the token; null: not all of them were seen. */
  #watchedFrom(slot: number, window: WindowName, nowMs: number): number | null {
    const { tokens, time, gaps } = this.#parts
    const fromMs = Math.max(windowFromMs(window, nowMs), this.#launchedAtMs(slot))
    const watchedSinceMs = Math.max(time.firstEventAtMs, tokens.barsWholeFromMs(slot))
    const isWatched = fromMs >= watchedSinceMs && !gaps.touches(fromMs, nowMs + 1)
    return isWatched ? fromMs : null
  }

  /** When the token was launched; 0 where that is not known. A token that was here before was not launched then, whatever is said. */
  #launchedAtMs(slot: number): number {
    const { createdAtMs, firstSeenAtMs } = this.#parts.tokens.columns
    const row = rowIndex(slot)
    return createdAtMs[row] <= firstSeenAtMs[row] + LATE_GRACE_MS ? createdAtMs[row] : 0
  }
}
