// Answers of reads of the market.
import { z } from 'zod'
import { BAR_FILLS, barSchema, TIMEFRAMES } from '../bar.ts'
import { chosenDataPointSchema, dataPointSchema } from '../datapoint.ts'
import { gapSchema } from '../event.ts'
import { chosenRowSchema, marketItemSchema } from '../market-item.ts'
import { ORDERS, SORTS, TABS } from '../vocabulary.ts'
import { EXAMPLE_BAR, EXAMPLE_DATAPOINT, EXAMPLE_ITEM, EXAMPLE_MINT } from './examples.ts'
import {
  clampedSchema,
  metaWith,
  mintSchema,
  okData,
  okWith,
  unixMs,
  wholeCount,
  withExample,
} from './parts.ts'

export const BATCH_MINTS_MAX = 10

/** Where a page is in its list. */
export const marketMetaSchema = metaWith({
  tab: z.enum(TABS),
  sort: z.enum(SORTS),
  order: z.enum(ORDERS),
  limit: wholeCount('Rows asked for'),
  offset: wholeCount('Rows before the first one'),
  search: z.string().optional().meta({ description: 'As it was asked for' }),
  maxAnalyses: wholeCount('As it was asked for').optional(),
  ranges: z.record(z.string(), z.number()).optional().meta({ description: 'As they were asked for' }),
  mints: wholeCount('How many mints the list is limited to').optional(),
  fields: z
    .array(z.string())
    .optional()
    .meta({ description: 'What its rows have, where `fields` was asked for' }),
  count: wholeCount('Rows of this page'),
  total: wholeCount('Rows of the list'),
  version: z.number().int().meta({ description: 'Position of the list in the sequence of changes' }),
  nextCursor: z.string().nullable().meta({ description: '`cursor` of the next page; null: there is none' }),
  clamped: clampedSchema,
})

export const marketPageSchema = withExample(
  okWith({ data: z.array(z.union([marketItemSchema, chosenRowSchema])), meta: marketMetaSchema }),
  {
    ok: true,
    data: [EXAMPLE_ITEM],
    meta: {
      tab: 'all',
      sort: 'hot',
      order: 'desc',
      limit: 1,
      offset: 0,
      count: 1,
      total: 500,
      version: 7_127_000_123,
      nextCursor: 'eyJ2IjoxfQ',
    },
  },
)

export const totalsAnswerSchema = withExample(
  okData(
    z.object({
      tokens: wholeCount('Tokens that the market holds'),
      launches_24h: wholeCount('Of these, created within the last 24 hours'),
      volume_24h_usd: z.number().meta({ description: 'Traded within the last 24 hours', unit: 'USD' }),
      trades_24h: wholeCount('Trades within the last 24 hours'),
      buys_24h: wholeCount('Buys among them'),
      sells_24h: wholeCount('Sells among them'),
      ts: unixMs('Market time'),
    }),
  ),
  {
    ok: true,
    data: {
      tokens: 9_000,
      launches_24h: 8_400,
      volume_24h_usd: 12_345_678.9,
      trades_24h: 1_200_000,
      buys_24h: 640_000,
      sells_24h: 560_000,
      ts: 1_772_000_000_000,
    },
  },
)

export type TotalsAnswer = z.infer<typeof totalsAnswerSchema>

export const dataPointAnswerSchema = withExample(okData(z.union([dataPointSchema, chosenDataPointSchema])), {
  ok: true,
  data: EXAMPLE_DATAPOINT,
})

export const batchSchema = z
  .object({ mints: z.array(mintSchema).min(1).max(BATCH_MINTS_MAX) })
  .meta({ examples: [{ mints: [EXAMPLE_MINT] }] })
export const batchAnswerSchema = withExample(
  okWith({
    data: z.array(z.union([dataPointSchema, chosenDataPointSchema])),
    meta: metaWith({
      notFound: z.array(z.string()).meta({ description: 'Mints of which nothing is known' }),
    }),
  }),
  { ok: true, data: [EXAMPLE_DATAPOINT], meta: { notFound: [] } },
)

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

export const barsMetaSchema = metaWith({
  mint: z.string(),
  tf: z.enum(TIMEFRAMES),
  limit: wholeCount('Bars asked for'),
  fill: z.enum(BAR_FILLS),
  gaps: wholeCount('Intervals without trades between the first bar and the last'),
  completeFrom: unixMs('Bars that start earlier may lack trades: the token had been evicted').optional(),
  incomplete: z
    .array(gapSchema)
    .optional()
    .meta({ description: 'Intervals in which trades may be missing. Bars that they touch are incomplete' }),
  clamped: clampedSchema,
})

export const barsSchema = withExample(
  okWith({
    data: z.union([z.array(barSchema), z.array(longBarSchema)]),
    meta: barsMetaSchema,
  }),
  { ok: true, data: [EXAMPLE_BAR], meta: { mint: EXAMPLE_MINT, tf: '1m', limit: 1, fill: 'none', gaps: 0 } },
)
