import { z } from 'zod'
import { MINUTE_MS } from '../lib/time.ts'
import { EXAMPLE_TIME_MS, EXAMPLE_TOKEN, withExample } from './example.ts'

/** Half-life of the hot score. */
export const HOT_HALF_LIFE_MS = 600_000

const nullableText = z.string().nullable()
const nullableNumber = z.number().nullable()

/** One row of the market list, with pump.fun's field names. */
export const marketItemSchema = withExample(
  z.object({
    mint: z.string(),
    name: z.string(),
    symbol: z.string(),
    description: nullableText,
    image_uri: nullableText,
    usd_market_cap: nullableNumber.meta({ unit: 'USD' }),
    market_cap: nullableNumber.meta({ unit: 'SOL' }),
    created_timestamp: z.number().int().nullable().meta({ unit: 'Unix ms' }),
    is_currently_live: z.boolean(),
    complete: z.boolean(),
    priceUsd: nullableNumber.meta({ unit: 'USD' }),
    creator: nullableText,
    virtual_sol_reserves: nullableNumber.meta({ unit: 'SOL' }),
    virtual_token_reserves: nullableNumber.meta({ unit: 'UI tokens' }),
    bonding_progress: nullableNumber.meta({ unit: 'percent 0-100' }),
    volume_24h_usd: nullableNumber.meta({
      unit: 'USD',
      description:
        'Traded within the 24 hours before the row was sent. Time alone lowers it, and sends no row of a tab that is followed; ' +
        '`follow=window` sends those too.',
    }),
    liquidity_usd: nullableNumber.meta({ unit: 'USD' }),
    holder_count: z.number().int().nullable(),
    last_trade_timestamp: z.number().int().nullable().meta({ unit: 'Unix ms' }),
    website: nullableText,
    twitter: nullableText,
    telegram: nullableText,
    analysis_count: z.number().int().meta({ description: 'Accepted analyses of this token' }),
    hot_score: z.number().meta({
      description:
        `log2 of the decayed USD volume, half-life ${HOT_HALF_LIFE_MS / MINUTE_MS} minutes, referred to the Unix epoch; 0 before the ` +
        `first trade. The volume as of time t is 2^(hot_score - t/${HOT_HALF_LIFE_MS}).`,
    }),
    quoteMint: nullableText.meta({ description: 'Mint of what its trades are paid in' }),
    isMayhem: z.boolean().nullable().meta({ description: 'Whether it trades in mayhem mode' }),
  }),
  {
    ...EXAMPLE_TOKEN,
    image_uri: null,
    usd_market_cap: 158_438.9,
    market_cap: 1_131.7,
    created_timestamp: EXAMPLE_TIME_MS - 3_600_000,
    is_currently_live: false,
    complete: false,
    priceUsd: 0.000158,
    virtual_sol_reserves: 71.3,
    virtual_token_reserves: 587_600_000,
    bonding_progress: 61.2,
    volume_24h_usd: 99_028.7,
    liquidity_usd: 21_400.5,
    holder_count: 224,
    last_trade_timestamp: EXAMPLE_TIME_MS,
    analysis_count: 2,
    hot_score: EXAMPLE_TIME_MS / HOT_HALF_LIFE_MS + 11.27,
    quoteMint: 'So11111111111111111111111111111111111111112',
    isMayhem: false,
  },
)

export type MarketItem = z.infer<typeof marketItemSchema>

const percent = nullableNumber.meta({ unit: 'percent' })
const nullableCount = z.number().int().nullable()

/** What a row has beside these where `fields` asks for it: it changes with time alone, so rows that all share do not have it. */
export const marketFiguresSchema = z.object({
  change_5m: percent,
  change_1h: percent,
  change_6h: percent,
  change_24h: percent,
  volume_1h_usd: nullableNumber.meta({ unit: 'USD' }),
  trades_24h: nullableCount,
  buys_24h: nullableCount,
  sells_24h: nullableCount,
})
export type MarketFigures = z.infer<typeof marketFiguresSchema>

/** A row with everything that it can have. */
export const marketRowSchema = z.object({ ...marketItemSchema.shape, ...marketFiguresSchema.shape })
export type MarketRow = z.infer<typeof marketRowSchema>
export type RowField = keyof MarketRow
export const ROW_FIELDS = marketRowSchema.keyof().options

/** A row that has what `fields` asked for. */
export const chosenRowSchema = z
  .object({ ...marketRowSchema.partial().shape, mint: z.string() })
  .meta({ description: 'With `fields`: the members that were asked for' })

/** What `fields=compact` stands for in a row of the list. `mint` is in every row. */
export const COMPACT_ROW_FIELDS = [
  'mint',
  'name',
  'symbol',
  'priceUsd',
  'usd_market_cap',
  'liquidity_usd',
  'volume_24h_usd',
  'change_5m',
  'change_1h',
  'change_24h',
  'buys_24h',
  'sells_24h',
  'holder_count',
  'bonding_progress',
  'created_timestamp',
  'last_trade_timestamp',
  'analysis_count',
] as const satisfies readonly RowField[]
