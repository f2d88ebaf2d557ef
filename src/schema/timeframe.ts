// Does not import zod, so that threads and processes that do not validate input need not load it.
import { keysOf } from '../lib/record.ts'

/** Length of each timeframe in milliseconds, finest first; each divides the next. */
export const TIMEFRAME_MS = {
  '1s': 1_000,
  '5s': 5_000,
  '15s': 15_000,
  '1m': 60_000,
  '5m': 300_000,
  '15m': 900_000,
  '1h': 3_600_000,
  '4h': 14_400_000,
  '1d': 86_400_000,
} as const

export type Timeframe = keyof typeof TIMEFRAME_MS
export const TIMEFRAMES: readonly Timeframe[] = keysOf(TIMEFRAME_MS)
/** Length of each timeframe by its index. */
export const TIMEFRAME_LENGTHS_MS: readonly number[] = TIMEFRAMES.map((timeframe) => TIMEFRAME_MS[timeframe])
