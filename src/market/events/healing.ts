// While a feed brings what it has missed, bars that its gap touches stay open: those of all tokens, since nobody knows which of them
// it will bring. Whatever ends that closes them as if they had not been held.

import type { BarCascade } from '../bars/bar-cascade.ts'
import { HELD_SECONDS_MAX } from '../bars/limits.ts'
import type { RowChanges } from '../output/row-changes.ts'
import type { Gaps } from '../time/gaps.ts'
import { LATE_GRACE_MS } from '../time/limits.ts'
import type { MarketTime } from '../time/market-time.ts'
import type { SolPrice } from '../tokens/sol-price.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'

export interface HealingParts {
  time: MarketTime
  gaps: Gaps
  tokens: TokenTable
  bars: BarCascade
  solPrice: SolPrice
  changes: RowChanges
}

export class Healing {
  readonly #parts: HealingParts
  /** The earliest deadline; Infinity: nothing heals. */
  #deadlineMs = Number.POSITIVE_INFINITY

  constructor(parts: HealingParts) {
    this.#parts = parts
  }

  /** Gaps have begun or ended. */
  update(): void {
    const { time, gaps, solPrice } = this.#parts
    const { heldFromMs } = gaps
    this.#deadlineMs = gaps.healDeadlineMs
    if (heldFromMs === time.heldFromMs) return
    const isLess = heldFromMs > time.heldFromMs
    time.heldFromMs = heldFromMs
    solPrice.hold(heldFromMs !== Number.POSITIVE_INFINITY)
    if (!isLess) return
    this.#closeHeld()
  }

  /** Market time has moved: gaps whose deadlines have passed go on without healing, as of the deadline. */
  passTime(): void {
    const { time } = this.#parts
    while (this.#deadlineMs <= time.nowMs) {
      time.eventMs = this.#deadlineMs
      this.#expire(this.#deadlineMs)
    }
  }

  /** Where as many seconds are held as there is memory for, nothing heals any more. To be called after a trade is added: one that is refused changes nothing. */
  makeRoom(): void {
    if (this.#parts.bars.heldSeconds >= HELD_SECONDS_MAX) this.#expire(Number.POSITIVE_INFINITY)
  }

  #expire(deadlineMs: number): void {
    const { gaps, changes } = this.#parts
    gaps.expire(deadlineMs)
    this.update()
    changes.notify()
  }

  /** Closes the seconds that are held no longer, as far as later trades of their tokens would have. */
  #closeHeld(): void {
    const { time, tokens, bars } = this.#parts
    const { watermark } = tokens.columns
    for (const slot of bars.heldSlots()) {
      const row = rowIndex(slot)
      const closedMs = Math.min(bars.newestSecond(slot), time.heldFromMs) - LATE_GRACE_MS
      watermark[row] = Math.max(watermark[row], closedMs)
      bars.close(slot, watermark[row])
    }
  }
}
