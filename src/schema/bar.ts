import { z } from 'zod'
import { EXAMPLE_TIME_MS, withExample } from './example.ts'
import type { Timeframe } from './timeframe.ts'

export { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from './timeframe.ts'

export const barSchema = withExample(
  z.object({
    t: z.number().int().meta({ description: 'Inclusive start', unit: 'Unix ms' }),
    o: z.number().meta({ unit: 'USD' }),
    h: z.number().meta({ unit: 'USD' }),
    l: z.number().meta({ unit: 'USD' }),
    c: z.number().meta({ unit: 'USD' }),
    v: z.number().meta({ description: 'Volume', unit: 'USD' }),
    n: z.number().int().meta({ description: 'Trades' }),
    closed: z.boolean().meta({ description: 'No later trade will change this bar' }),
  }),
  {
    t: EXAMPLE_TIME_MS,
    o: 0.00015,
    h: 0.00019,
    l: 0.00015,
    c: 0.00019,
    v: 4_135.18,
    n: 47,
    closed: true,
  },
)

export type Bar = z.infer<typeof barSchema>
export const BAR_FILLS = ['none', 'prev'] as const
export const BAR_SHAPES = ['short', 'long'] as const
export type BarShape = (typeof BAR_SHAPES)[number]
/** The names of a bar's fields in each shape, in the same order. */
export const BAR_NAMES: Readonly<Record<BarShape, readonly string[]>> = {
  short: Object.keys(barSchema.shape),
  long: ['timestamp', 'open', 'high', 'low', 'close', 'volume', 'trades', 'closed'],
}
export type BarFill = (typeof BAR_FILLS)[number]

/** A closed bar of a minute or longer; no later trade changes it. */
export interface ClosedBar extends Omit<Bar, 'closed'> {
  mint: string
  tf: Timeframe
  /** Volume of the buys, USD, and their count. */
  buyV: number
  buys: number
  /** Market time at which it was found to be closed. */
  closedAtMs: number
  /** A bar that starts before this market time may lack trades. */
  watchedSinceMs: number
  /** False where it starts earlier, or a gap known at `closedAtMs` touches it: it may lack trades. A gap that becomes known later
   *  is not told here. */
  complete: boolean
}
