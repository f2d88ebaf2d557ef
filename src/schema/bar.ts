import { z } from 'zod'

export { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from './timeframe.ts'

export const barSchema = z.object({
  t: z.number().int().meta({ description: 'Inclusive start', unit: 'Unix ms' }),
  o: z.number().meta({ unit: 'USD' }),
  h: z.number().meta({ unit: 'USD' }),
  l: z.number().meta({ unit: 'USD' }),
  c: z.number().meta({ unit: 'USD' }),
  v: z.number().meta({ description: 'Volume', unit: 'USD' }),
  n: z.number().int().meta({ description: 'Trades' }),
  closed: z.boolean().meta({ description: 'No later trade will change this bar' }),
})

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
