// The DataPoint: its fields, types and units, and which of them a patch may set. The TypeScript type, OpenAPI, the documents and the
// patch validator all come from here.
import { z } from 'zod'
import { recordFrom } from '../lib/record.ts'
import { truncateText } from '../lib/text/truncate-text.ts'
import * as bounds from './bounds.ts'
import { SOURCED_FIELDS } from './enrichment.ts'
import { EXAMPLE_TIME_MS, EXAMPLE_TOKEN, withExample } from './example.ts'
import { ENRICHED, ENRICHED_FIELDS, type EnrichedField, SNAPSHOT_FIELDS } from './features.ts'
import { STREAM_SOURCES } from './vocabulary.ts'

export { ENRICHED_FIELDS, SNAPSHOT_FIELDS, type SnapshotField, type SnapshotValues } from './features.ts'

const usd = (description: string) => bounds.amount.nullable().meta({ description, unit: 'USD' })
const percent = (description: string) =>
  z.number().min(0).max(100).nullable().meta({ description, unit: 'percent 0-100' })
const change = (description: string) => bounds.change.nullable().meta({ description, unit: 'percent' })
const count = (description: string) => bounds.count.nullable().meta({ description, unit: 'count' })
const text = (description: string) => z.string().nullable().meta({ description })
const flag = (description: string) => z.boolean().meta({ description })

/** A submission may refer to a DataPoint that was read this long ago, inclusive. */
export const SNAPSHOT_AGE_MS_MAX = 300_000
/** Trades that are kept of a token; a newer one takes the place of the oldest. */
export const RECENT_TRADES_MAX = 20

const HOLDER_ADDRESS_CHARS_MAX = 64
const TOP_HOLDERS_MAX = 50

export const topHolderSchema = z.object({
  address: z.string().max(HOLDER_ADDRESS_CHARS_MAX),
  amount: bounds.amount.nullable(),
  pct: bounds.amount.nullable(),
})

export const recentTradeSchema = z.object({
  tx: z.string().nullable(),
  type: z.enum(['buy', 'sell']),
  sol: z.number().nullable(),
  wallet: z.string().nullable(),
  timestamp: z.number(),
})

export const skillSchema = z.object({ id: z.string(), method: z.enum(['GET', 'POST']), path: z.string() })

/** Whose the enriched fields are, each once, the supply and the holders. */
export const enrichedFromSchema = z
  .array(
    z.object({
      source: z.string().meta({ description: 'As in `enriched_source`' }),
      at: bounds.time.meta({ description: 'When it said so', unit: 'Unix ms' }),
      fields: z.array(z.enum([...ENRICHED_FIELDS, ...SOURCED_FIELDS])),
    }),
  )
  .meta({
    description:
      'Whose each enriched field is, and of when; the supply and the holders too, where their source was told; fields that nobody knows are not there',
  })
export type EnrichedFrom = z.infer<typeof enrichedFromSchema>

const enrichedShape = {
  has_freeze_authority: z.boolean().nullable().meta(ENRICHED.has_freeze_authority),
  has_mint_authority: z.boolean().nullable().meta(ENRICHED.has_mint_authority),
  transfer_fee_enabled: z.boolean().nullable().meta(ENRICHED.transfer_fee_enabled),
  is_mutable_metadata: z.boolean().nullable().meta(ENRICHED.is_mutable_metadata),
  top10_holder_pct_onchain: z.number().min(0).max(100).nullable().meta(ENRICHED.top10_holder_pct_onchain),
  unique_wallet_24h: bounds.count.nullable().meta(ENRICHED.unique_wallet_24h),
  unique_wallet_1h: bounds.count.nullable().meta(ENRICHED.unique_wallet_1h),
  buy_volume_24h_usd: bounds.amount.nullable().meta(ENRICHED.buy_volume_24h_usd),
  sell_volume_24h_usd: bounds.amount.nullable().meta(ENRICHED.sell_volume_24h_usd),
} satisfies Record<EnrichedField, z.ZodType>

export const dataPointSchema = withExample(
  z.object({
    mint: z.string().meta({ description: 'Mint address, base58' }),
    name: z.string(),
    symbol: z.string(),
    description: text('What its creator says of it'),
    imageUrl: text('Image'),
    imageUri: text('The same as imageUrl'),
    creator: text('Wallet that created the token'),
    priceUsd: usd('Price of the latest trade'),
    priceSol: bounds.amount.nullable().meta({ description: 'Price of the latest trade', unit: 'SOL' }),
    solPriceUsd: usd('Latest price of one SOL; /health tells its source and age'),
    priceChange1h: change('Change against the price one hour ago'),
    priceChange6h: change('Change against the price six hours ago'),
    priceChange24h: change('Change against the price 24 hours ago'),
    marketCap: usd('Price times circulating supply'),
    fdv: usd('Price times total supply'),
    liquidity: usd('Value of both sides of the pool or curve'),
    totalSupply: bounds.amount.nullable().meta({ description: 'Total supply', unit: 'UI tokens' }),
    volume1m: usd('Traded in the last minute'),
    volume1h: usd('Traded in the last hour'),
    volume6h: usd('Traded in the last 6 hours'),
    volume24h: usd('Traded in the last 24 hours'),
    buys24h: count('Buys in the last 24 hours'),
    sells24h: count('Sells in the last 24 hours'),
    tradeCount: count('Trades since the token is known here'),
    holderCount: count('Holders'),
    tradeRate1m: count('Trades in the last minute'),
    buySellImbalance1m: z
      .number()
      .min(-1)
      .max(1)
      .nullable()
      .meta({ description: '(buy - sell) / (buy + sell) of the last minute’s USD volume', unit: '-1..1' }),
    bondingComplete: flag('The bonding curve is complete: the token has graduated'),
    bondingProgress: percent('Progress on the bonding curve'),
    isLive: flag('A live stream is on'),
    isCurrentlyLive: flag('The same as isLive'),
    streamSource: z.enum(STREAM_SOURCES).meta({ description: 'Where the live stream comes from' }),
    viewerCount: count('Viewers of the live stream'),
    website: text('Website'),
    twitter: text('X handle or address'),
    telegram: text('Telegram address'),
    dexPaid: flag('A paid DEX profile exists'),
    dexBoosted: flag('A DEX boost is active'),
    primaryDex: text('Where most of it trades'),
    topHolders: z
      .array(topHolderSchema)
      .max(TOP_HOLDERS_MAX)
      .meta({ description: 'Largest holders, at most 50' }),
    top10Holding: percent('Share of the ten largest holders'),
    top10HolderPct: percent('The same as top10Holding'),
    snipersHolding: percent('Share held by snipers'),
    insidersHolding: percent('Share held by insiders'),
    bundleHolding: percent('Share held by bundlers'),
    freshWalletsHolding: percent('Share held by fresh wallets'),
    creatorHolding: percent('Share held by the creator'),
    recentTrades: z
      .array(recentTradeSchema)
      .max(RECENT_TRADES_MAX)
      .meta({ description: `The latest trades, newest first, at most ${RECENT_TRADES_MAX}` }),
    snapshotAt: z.number().int().meta({
      description: 'When these values were taken: less than a second before they were read',
      unit: 'Unix ms',
    }),
    ttl: z
      .number()
      .int()
      .meta({ description: 'How long a submission may refer to this read', unit: 'seconds' }),
    version: z.string().meta({ description: 'Version of this schema' }),
    ...enrichedShape,
    enriched_at: bounds.time
      .nullable()
      .meta({ description: 'When the oldest of the enriched fields was resolved', unit: 'Unix ms' }),
    enriched_source: text(
      'Whose the enriched fields are: `chain`, `birdeye`, `trades` (what this server saw), `simulated`, or who pushed them; several are joined by `+`',
    ),
    enrichedFrom: enrichedFromSchema,
    createdAt: bounds.time.nullable().meta({ description: 'When the token was created', unit: 'Unix ms' }),
    virtualSolReserves: bounds.amount
      .nullable()
      .meta({ description: 'Virtual SOL on the curve, or in the pool', unit: 'SOL' }),
    virtualTokenReserves: bounds.amount
      .nullable()
      .meta({ description: 'Virtual tokens on the curve, or in the pool', unit: 'UI tokens' }),
    pairAddress: text('Address of the pool'),
    quoteMint: text('Mint of what its trades are paid in'),
    isMayhem: z.boolean().nullable().meta({ description: 'Whether it trades in mayhem mode' }),
    sparkline: z.array(z.number()).max(24).meta({
      description: 'Closes of the last 24 five-minute bars that hold trades, oldest first',
      unit: 'USD',
    }),
    skills: z.array(skillSchema).meta({ description: 'What an agent may do next with this token' }),
  }),
  {
    ...EXAMPLE_TOKEN,
    priceUsd: 0.000158,
    marketCap: 158_438.9,
    volume24h: 99_028.7,
    liquidity: 21_400.5,
    holderCount: 224,
    top10HolderPct: 55.8,
    buys24h: 310,
    sells24h: 290,
    bondingProgress: 61.2,
    has_freeze_authority: false,
    has_mint_authority: false,
    transfer_fee_enabled: false,
    is_mutable_metadata: null,
    top10_holder_pct_onchain: 55.8,
    unique_wallet_24h: 231,
    unique_wallet_1h: 40,
    buy_volume_24h_usd: 51_200.4,
    sell_volume_24h_usd: 47_828.3,
    imageUrl: null,
    imageUri: null,
    priceSol: 0.0000011,
    solPriceUsd: 140,
    priceChange1h: 4.1,
    priceChange6h: null,
    priceChange24h: null,
    fdv: 158_438.9,
    totalSupply: 1_000_000_000,
    volume1m: 420.1,
    volume1h: 12_050.3,
    volume6h: 99_028.7,
    tradeCount: 600,
    tradeRate1m: 6,
    buySellImbalance1m: 0.2,
    bondingComplete: false,
    isLive: false,
    isCurrentlyLive: false,
    streamSource: 'none',
    viewerCount: null,
    dexPaid: false,
    dexBoosted: false,
    primaryDex: null,
    topHolders: [{ address: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin', amount: 61_000_000, pct: 6.1 }],
    top10Holding: 55.8,
    snipersHolding: null,
    insidersHolding: null,
    bundleHolding: null,
    freshWalletsHolding: null,
    creatorHolding: 6.1,
    recentTrades: [{ tx: null, type: 'buy', sol: 0.5, wallet: null, timestamp: EXAMPLE_TIME_MS }],
    snapshotAt: EXAMPLE_TIME_MS,
    ttl: SNAPSHOT_AGE_MS_MAX / 1_000,
    version: '1',
    enriched_at: EXAMPLE_TIME_MS,
    enriched_source: 'chain+trades',
    enrichedFrom: [
      {
        source: 'chain',
        at: EXAMPLE_TIME_MS,
        fields: [
          'has_freeze_authority',
          'has_mint_authority',
          'transfer_fee_enabled',
          'top10_holder_pct_onchain',
          'topHolders',
        ],
      },
      {
        source: 'trades',
        at: EXAMPLE_TIME_MS,
        fields: ['unique_wallet_24h', 'unique_wallet_1h', 'buy_volume_24h_usd', 'sell_volume_24h_usd'],
      },
    ],
    createdAt: EXAMPLE_TIME_MS - 3_600_000,
    virtualSolReserves: 71.3,
    virtualTokenReserves: 587_600_000,
    pairAddress: null,
    quoteMint: 'So11111111111111111111111111111111111111112',
    isMayhem: false,
    sparkline: [0.00014, 0.00015, 0.000158],
    skills: [{ id: 'submit', method: 'POST', path: '/api/v1/analysis/submit' }],
  },
)

export type DataPoint = z.infer<typeof dataPointSchema>
/** What a token says of itself. */
export type TokenTexts = Pick<
  DataPoint,
  'name' | 'symbol' | 'description' | 'imageUri' | 'creator' | 'website' | 'twitter' | 'telegram'
>
export type Enriched = Pick<DataPoint, EnrichedField>
/** With whose they are. */
export type SourcedEnriched = Pick<DataPoint, EnrichedField | 'enriched_at' | 'enriched_source'>

/** The value of the `version` field. */
export const DATAPOINT_VERSION = '1'

/** Fields that are computed, from others or at each read. Patches cannot set them. */
const NEVER_PATCHED = [
  'mint',
  'snapshotAt',
  'ttl',
  'version',
  'recentTrades',
  'sparkline',
  'skills',
  'enrichedFrom',
] as const

/** The texts of a patch, truncated like those of a token event. */
const patchedTexts = {
  name: bounds.word,
  symbol: bounds.word,
  description: bounds.description.nullable(),
  imageUrl: bounds.uri.nullable(),
  imageUri: bounds.uri.nullable(),
  creator: bounds.word.nullable(),
  website: bounds.uri.nullable(),
  twitter: bounds.uri.nullable(),
  telegram: bounds.uri.nullable(),
  primaryDex: bounds.word.nullable(),
  pairAddress: bounds.word.nullable(),
  enriched_source: bounds.word.nullable(),
  topHolders: z
    .array(
      topHolderSchema.extend({
        address: topHolderSchema.shape.address.transform((text) =>
          truncateText(text, HOLDER_ADDRESS_CHARS_MAX),
        ),
      }),
    )
    .max(TOP_HOLDERS_MAX),
}

/** A patch: any other fields of the DataPoint. Unknown names are dropped; wrong types and values out of bounds are rejected. */
export const patchFieldsSchema = dataPointSchema
  .omit(recordFrom(NEVER_PATCHED, () => true as const))
  .extend(patchedTexts)
  .partial()
export type PatchFields = z.infer<typeof patchFieldsSchema>

/** A DataPoint that has what `fields` asked for. */
export const chosenDataPointSchema = z
  .object({ ...dataPointSchema.partial().shape, mint: dataPointSchema.shape.mint })
  .meta({ description: 'With `fields`: the members that were asked for' })

/** What `fields=compact` stands for in a DataPoint: the compared values and what tells how old they are. `mint` is in every one. */
export const COMPACT_DATAPOINT_FIELDS = [
  'mint',
  'name',
  'symbol',
  ...SNAPSHOT_FIELDS,
  'priceChange1h',
  'priceChange24h',
  'volume1h',
  'createdAt',
  'snapshotAt',
  'ttl',
] as const satisfies readonly (keyof DataPoint)[]
