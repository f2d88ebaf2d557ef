// Trades without a price, which no bar holds, counted for the windows that count trades: by second for the last minute and by quarter
// of an hour for the last day. Few tokens have any; one takes 3.5 kB at most, however often it is traded.
import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  wrongLength,
} from '../../lib/sections/sections.ts'
import { intervalStart } from '../../lib/time.ts'
import { TIMEFRAME_MS } from '../../schema/bar.ts'
import { WINDOWS } from './limits.ts'

const COUNTED = ['1m', '24h'] as const satisfies readonly (keyof typeof WINDOWS)[]
type CountedWindow = (typeof COUNTED)[number]

/**
 * Of one token. Of each window the start and the counts (bar-ring.ts) of each interval with such trades, one behind the other, in order
 * of time.
 */
interface TokenCounts extends Record<CountedWindow, number[]> {
  /** Counts of all its trades without a price. */
  lifetime: number
  /** Market time of the latest: what no window held then was forgotten. */
  addedAtMs: number
}

export class UnpricedCounts implements Saved {
  readonly #tokens = new Map<number, TokenCounts>()

  /** Whether no token has such trades. */
  get isEmpty(): boolean {
    return this.#tokens.size === 0
  }

  add(slot: number, tsMs: number, counts: number, nowMs: number): void {
    let token = this.#tokens.get(slot)
    if (token === undefined) {
      token = { lifetime: 0, addedAtMs: 0, '1m': [], '24h': [] }
      this.#tokens.set(slot, token)
    }
    token.lifetime += counts
    token.addedAtMs = nowMs
    for (const window of COUNTED) {
      const { lengthMs, timeframe } = WINDOWS[window]
      addTo(token[window], intervalStart(tsMs, TIMEFRAME_MS[timeframe]), counts)
      dropBefore(token[window], nowMs - lengthMs)
    }
  }

  /** The counts of a token in the intervals of a window that start at or after `fromMs`. */
  since(slot: number, window: CountedWindow, fromMs: number): number {
    const intervals = this.#tokens.get(slot)?.[window] ?? NONE
    let counts = 0
    for (let at = intervals.length - 2; at >= 0 && intervals[at] >= fromMs; at -= 2)
      counts += intervals[at + 1]
    return counts
  }

  lifetime(slot: number): number {
    return this.#tokens.get(slot)?.lifetime ?? 0
  }

  /** Market time has gone back: tokens that were counted later have no windows any more. @returns those tokens */
  rewindTo(timeMs: number): number[] {
    const slots: number[] = []
    for (const [slot, token] of this.#tokens) {
      if (token.addedAtMs <= timeMs) continue
      token.addedAtMs = timeMs
      for (const window of COUNTED) token[window] = []
      slots.push(slot)
    }
    return slots
  }

  clear(slot: number): void {
    this.#tokens.delete(slot)
  }

  *save(): Iterable<Section> {
    const saved: number[] = []
    for (const [slot, token] of this.#tokens) {
      saved.push(slot, token.lifetime, token.addedAtMs)
      for (const window of COUNTED) {
        saved.push(token[window].length)
        for (const number of token[window]) saved.push(number)
      }
    }
    yield numbersSection('windows.unpriced', Float64Array.from(saved))
  }

  restore(sections: SectionReader): void {
    // Checkpoints of before have none: windows.ts takes no count of a window with such a trade for known there.
    if (!sections.has('windows.unpriced')) return
    const saved = sections.float64('windows.unpriced')
    let at = 0
    while (at < saved.length) {
      const [slot, lifetime, addedAtMs] = saved.subarray(at, at + 3)
      const token: TokenCounts = { lifetime, addedAtMs, '1m': [], '24h': [] }
      at += 3
      for (const window of COUNTED) {
        const end = at + 1 + saved[at]
        token[window] = [...saved.subarray(at + 1, end)]
        at = end
      }
      this.#tokens.set(slot, token)
    }
    if (at !== saved.length) throw wrongLength('windows.unpriced')
  }
}

const NONE: readonly number[] = []

function addTo(intervals: number[], startMs: number, counts: number): void {
  // What comes is nearly always of the newest.
  let at = intervals.length
  while (at > 0 && intervals[at - 2] > startMs) at -= 2
  if (at > 0 && intervals[at - 2] === startMs) intervals[at - 1] += counts
  else intervals.splice(at, 0, startMs, counts)
}

function dropBefore(intervals: number[], fromMs: number): void {
  let old = 0
  while (intervals[old] < fromMs) old += 2
  if (old > 0) intervals.splice(0, old)
}
