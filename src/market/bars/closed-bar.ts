// How closed bars leave the engine: as values, each once.

import { z } from 'zod'
import { jsonSection, type Saved, type Section, type SectionReader } from '../../lib/sections/sections.ts'
import type { ClosedBar } from '../../schema/bar.ts'
import { TIMEFRAMES } from '../../schema/bar.ts'
import { TIMEFRAME_LENGTHS_MS } from '../../schema/timeframe.ts'
import type { Gaps } from '../time/gaps.ts'
import { LATE_GRACE_MS, SILENCE_MS } from '../time/limits.ts'
import type { MarketTime } from '../time/market-time.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { BarCascade, BarCascadeOptions } from './bar-cascade.ts'
import { BV, buyCount, C, H, L, N, O, T, tradeCount, V } from './bar-ring.ts'
import { watermarkMs } from './watermark.ts'

const savedSchema = z.object({ emittedToMs: z.number(), nextSlot: z.number(), roundStartMs: z.number() })

export interface EmitterParts {
  tokens: TokenTable
  time: MarketTime
  gaps: Gaps
  /** By timeframe: counts the bars that were given to `onBarClosed`. */
  barsEmitted: number[]
}

/** What the cascade calls with each closed bar, which lies at an address of its memory: it gives a copy to `onBarClosed`. */
export const emitterOf =
  (
    onBarClosed: (bar: ClosedBar) => void,
    { tokens, time, gaps, barsEmitted }: EmitterParts,
  ): NonNullable<BarCascadeOptions['onClosed']> =>
  (slot, timeframe, values, address) => {
    barsEmitted[timeframe]++
    const counts = values[address + N]
    const startMs = values[address + T]
    const watchedSinceMs = Math.max(time.sinceMs, tokens.barsWholeFromMs(slot))
    onBarClosed({
      mint: tokens.metadata[slot].mint,
      tf: TIMEFRAMES[timeframe],
      t: startMs,
      o: values[address + O],
      h: values[address + H],
      l: values[address + L],
      c: values[address + C],
      v: values[address + V],
      n: tradeCount(counts),
      buyV: values[address + BV],
      buys: buyCount(counts),
      closedAtMs: time.nowMs,
      watchedSinceMs,
      complete:
        startMs >= watchedSinceMs && !gaps.touches(startMs, startMs + TIMEFRAME_LENGTHS_MS[timeframe]),
    })
  }

/**
 * Emits closed bars of tokens that no later trade has reached: without it, a silent token's last bars would never be
 * emitted. It goes round all tokens, some at each call.
 */
export class ClosedBarSweep implements Saved {
  /** All bars that ended by this time, Unix ms, were emitted, but for those of late trades. */
  emittedToMs = 0
  readonly #tokens: TokenTable
  readonly #bars: BarCascade
  readonly #time: MarketTime
  #nextSlot = 0
  /** When the round that is under way began. */
  #roundStartMs = 0

  constructor(tokens: TokenTable, bars: BarCascade, time: MarketTime) {
    this.#tokens = tokens
    this.#bars = bars
    this.#time = time
  }

  *save(): Iterable<Section> {
    yield jsonSection('sweep', {
      emittedToMs: this.emittedToMs,
      nextSlot: this.#nextSlot,
      roundStartMs: this.#roundStartMs,
    })
  }

  restore(sections: SectionReader): void {
    const { emittedToMs, nextSlot, roundStartMs } = sections.json('sweep', savedSchema)
    this.emittedToMs = emittedToMs
    this.#nextSlot = nextSlot
    this.#roundStartMs = roundStartMs
  }

  /** Market time has gone back. */
  rewindTo(timeMs: number): void {
    this.emittedToMs = Math.min(this.emittedToMs, timeMs - SILENCE_MS - LATE_GRACE_MS)
    this.#roundStartMs = Math.min(this.#roundStartMs, timeMs)
  }

  /** Emits, once more or for the first time, every bar of all tokens that ended after `endedAfterMs` and is closed by now. */
  emitEndedSince(endedAfterMs: number): void {
    const tokens = this.#tokens
    for (let slot = 0; slot < tokens.slotsUsed; slot++)
      this.#bars.emitEndedSince(slot, endedAfterMs, watermarkMs(tokens.columns, slot, this.#time))
  }

  /** Looks at the next `tokensMax` tokens. */
  run(tokensMax: number): void {
    const tokens = this.#tokens
    // What a feed may still heal is not closed.
    const { nowMs, heldFromMs } = this.#time
    if (this.#nextSlot === 0) this.#roundStartMs = Math.min(nowMs, heldFromMs)
    const end = Math.min(tokens.slotsUsed, this.#nextSlot + tokensMax)
    for (let slot = this.#nextSlot; slot < end; slot++)
      this.#bars.emitEnded(slot, watermarkMs(tokens.columns, slot, this.#time))
    this.#nextSlot = end === tokens.slotsUsed ? 0 : end
    if (this.#nextSlot === 0) this.emittedToMs = this.#roundStartMs - SILENCE_MS - LATE_GRACE_MS
  }
}
