// The bar of a second that may still change, with the times of its first and last trade.
import { BAR_STRIDE, type BarRing, BV, C, H, L, N, O, T, V } from './bar-ring.ts'
import { FIRST_AT, LAST_AT, PENDING_STRIDE } from './token-block.ts'

/** Begins a second with its first trade. */
export function startSecond(
  bars: Float64Array,
  at: number,
  second: number,
  tsMs: number,
  price: number,
  volume: number,
  buyVolume: number,
  counts: number,
): void {
  bars[at + T] = second
  bars[at + O] = price
  bars[at + H] = price
  bars[at + L] = price
  bars[at + C] = price
  bars[at + V] = volume
  bars[at + N] = counts
  bars[at + BV] = buyVolume
  bars[at + FIRST_AT] = tsMs
  bars[at + LAST_AT] = tsMs
}

/** Adds a trade to a second that has some. */
export function updateSecond(
  bars: Float64Array,
  at: number,
  tsMs: number,
  price: number,
  volume: number,
  buyVolume: number,
  counts: number,
): void {
  if (price > bars[at + H]) bars[at + H] = price
  if (price < bars[at + L]) bars[at + L] = price
  // Of trades with equal times the one that arrives first opens the bar, and the last one closes it.
  if (tsMs >= bars[at + LAST_AT]) {
    bars[at + C] = price
    bars[at + LAST_AT] = tsMs
  } else if (tsMs < bars[at + FIRST_AT]) {
    bars[at + O] = price
    bars[at + FIRST_AT] = tsMs
  }
  bars[at + V] += volume
  bars[at + N] += counts
  bars[at + BV] += buyVolume
}

/** A closed second of a token as one that may still change; null: it has no trade, or its bar is gone. */
export function reopenedSecond(seconds: BarRing, slot: number, startMs: number): Float64Array | null {
  const { values } = seconds
  let second: Float64Array | null = null
  seconds.backwards(slot, (address) => {
    if (values[address + T] === startMs) {
      second = new Float64Array(PENDING_STRIDE)
      second.set(values.subarray(address, address + BAR_STRIDE))
      // When its trades were is no longer known: what comes later closes it, nothing opens it.
      second[FIRST_AT] = startMs
      second[LAST_AT] = startMs
    }
    return values[address + T] > startMs
  })
  return second
}
