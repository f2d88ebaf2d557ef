import { z } from 'zod'

const nullableText = z.string().nullable()
const nullableNumber = z.number().nullable()

/** One row of the market list, with pump.fun's field names. */
export const marketItemSchema = z.object({
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
  volume_24h_usd: nullableNumber.meta({ unit: 'USD' }),
  liquidity_usd: nullableNumber.meta({ unit: 'USD' }),
  holder_count: z.number().int().nullable(),
  last_trade_timestamp: z.number().int().nullable().meta({ unit: 'Unix ms' }),
  website: nullableText,
  twitter: nullableText,
  telegram: nullableText,
  analysis_count: z.number().int().meta({ description: 'Accepted analyses of this token' }),
  hot_score: z.number().meta({
    description:
      'log2 of the decayed USD volume, half-life 10 minutes, referred to the Unix epoch; 0 before the first trade. ' +
      'The volume as of time t is 2^(hot_score - t/600000).',
  }),
  quoteMint: nullableText.meta({ description: 'Mint of what its trades are paid in' }),
  isMayhem: z.boolean().nullable().meta({ description: 'Whether it trades in mayhem mode' }),
})

export type MarketItem = z.infer<typeof marketItemSchema>
