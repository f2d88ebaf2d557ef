// Bars: query and answer.
import { z } from 'zod'
import { BAR_FILLS, BAR_SHAPES, barSchema, TIMEFRAMES } from '../bar.ts'
import { gapSchema } from '../event.ts'
import { EXAMPLE_MINT, exampleOf } from '../example.ts'
import * as parameter from './parameters.ts'
import { clampedSchema, FORMATS, metaWith, mintSchema, okWith, unixMs, wholeCount } from './parts.ts'

export const BARS_LIMIT_DEFAULT = 100
export const BARS_LIMIT_MAX = 1_000

/** GET /api/v1/ohlc */
export const barsQuery = z.object({
  mint: mintSchema,
  tf: z.enum(TIMEFRAMES).default('1m').meta({ description: 'Timeframe' }),
  limit: parameter.limit(BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX, ', which meta.clamped tells'),
  from: parameter.time('Bars that start at this time or later'),
  to: parameter.time('Bars that start at this time or earlier'),
  fill: z.enum(BAR_FILLS).default('none').meta({
    description: '`prev` repeats the close where there was no trade, between the first trade and the last',
  }),
  shape: z.enum(BAR_SHAPES).default('short').meta({ description: 'The names of the fields' }),
  format: parameter.word(FORMATS, '`json` unless told here or by Accept'),
})

/** A bar under `shape=long`: the same values by longer names. */
export const longBarSchema = z.object({
  timestamp: barSchema.shape.t,
  open: barSchema.shape.o,
  high: barSchema.shape.h,
  low: barSchema.shape.l,
  close: barSchema.shape.c,
  volume: barSchema.shape.v,
  trades: barSchema.shape.n,
  closed: barSchema.shape.closed,
})

/** A line of bars as NDJSON: `shape` chooses. */
export const barLineSchema = z.union([barSchema, longBarSchema])

/** Told where bars were asked for that are not held any more. */
export const heldFromSchema = unixMs(
  'Where older bars were asked for (`from` is earlier, or without it there are fewer than `limit`): they are not held any more. The lake has those of 1m and longer, as long as --retain says',
).optional()

export const barsMetaSchema = metaWith({
  mint: z.string(),
  tf: z.enum(TIMEFRAMES),
  limit: wholeCount('Bars asked for'),
  fill: z.enum(BAR_FILLS),
  gaps: wholeCount('Intervals without trades between the first bar and the last'),
  completeFrom: unixMs('Bars that start earlier may lack trades: the token had been evicted').optional(),
  heldFrom: heldFromSchema,
  incomplete: z
    .array(gapSchema)
    .optional()
    .meta({ description: 'Intervals in which trades may be missing. Bars that they touch are incomplete' }),
  clamped: clampedSchema,
})

export const barsSchema = okWith(
  {
    data: z.union([z.array(barSchema), z.array(longBarSchema)]),
    meta: barsMetaSchema,
  },
  {
    data: [exampleOf(barSchema)],
    meta: { mint: EXAMPLE_MINT, tf: '1m', limit: 1, fill: 'none', gaps: 0 },
  },
)
