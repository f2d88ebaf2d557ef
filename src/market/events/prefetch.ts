// Fetches what the next trades will touch into the processor's cache.
//
// A trade of a token that has been silent for a while waits some thirty times for memory, each time for as long as a hundred additions
// take. Reads that do not depend on each other wait together, so all tokens of the trades that come next are read first, part after
// part (group prefetching: Chen, Ailamaki, Gibbons and Mowry, "Improving Hash Join Performance through Prefetching", 2004).
import type { BarCascade } from '../bars/bar-cascade.ts'
import type { WalletWindows } from '../bars/wallet-windows.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { RecentTrades } from '../tokens/recent-trades.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { VersionHistory } from '../tokens/version-history.ts'

export interface PrefetchParts {
  tokens: TokenTable
  bars: BarCascade
  wallets: WalletWindows
  recentTrades: RecentTrades
  rankings: Rankings
  versions: VersionHistory
}

export class Prefetch {
  readonly #parts: PrefetchParts
  /** Of the tokens that are held. */
  readonly #slots: number[] = []
  /** What was read. The compiler leaves out reads whose result nobody has. */
  readonly #read = new Float64Array(1)

  constructor(parts: PrefetchParts) {
    this.#parts = parts
  }

  /** Trades of these mints come next. Nothing that can be read changes. */
  run(mints: readonly string[]): void {
    const { tokens, bars, wallets, recentTrades, rankings, versions } = this.#parts
    const seconds = bars.ring(0)
    const slots = this.#slots
    slots.length = 0
    for (let at = 0; at < mints.length; at++) {
      const slot = tokens.slotOf(mints[at])
      if (slot !== -1) slots.push(slot)
    }
    // A loop for each part: what it reads is at the same places of every token, which the processor foresees.
    let read = 0
    for (let at = 0; at < slots.length; at++) read += tokens.prefetch(slots[at])
    for (let at = 0; at < slots.length; at++) read += bars.newestSecond(slots[at]) + seconds.newest(slots[at])
    for (let at = 0; at < slots.length; at++) read += wallets.prefetch(slots[at])
    for (let at = 0; at < slots.length; at++) read += recentTrades.prefetch(slots[at])
    for (let at = 0; at < slots.length; at++) read += rankings.prefetch(slots[at])
    for (let at = 0; at < slots.length; at++) read += versions.prefetch(slots[at])
    this.#read[0] = read
  }
}
