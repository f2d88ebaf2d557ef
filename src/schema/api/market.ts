// Reads of the market list, of DataPoints and of market time: queries, bodies, answers.
import { z } from 'zod'
import { COMPACT_DATAPOINT_FIELDS, chosenDataPointSchema, dataPointSchema } from '../datapoint.ts'
import { EXAMPLE_MINT, exampleOf } from '../example.ts'
import { COMPACT_ROW_FIELDS, chosenRowSchema, marketFiguresSchema, marketItemSchema } from '../market-item.ts'
import { ORDERS, RANGE_FIGURES, type RangeFigure, SORTS, TABS } from '../vocabulary.ts'
import * as parameter from './parameters.ts'
import { clampedSchema, FORMATS, metaWith, mintSchema, okData, okWith, unixMs, wholeCount } from './parts.ts'

export const MARKET_LIMIT_DEFAULT = 50
export const MARKET_LIMIT_MAX_JSON = 500
/** How long a cursor is valid at least, seconds. */
export const CURSOR_VALID_S = 30
/** Mints that a list may be limited to. */
export const MINTS_FILTERED_MAX = 200
/** Characters of a search of the market list. */
export const SEARCH_CHARACTERS_MAX = 64
export const BATCH_MINTS_MAX = 10

/** What a figure of the list is, in the words of the range filters. */
const FIGURE_UNITS: Readonly<Record<RangeFigure, string>> = {
  price: 'USD',
  volume_24h: 'USD',
  volume_1h: 'USD',
  change_5m: 'percent',
  change_1h: 'percent',
  change_6h: 'percent',
  change_24h: 'percent',
  liquidity: 'USD',
  holders: 'count',
  trades_24h: 'count',
  buys_24h: 'count',
  sells_24h: 'count',
  last_trade: 'Unix ms',
  analyses: 'count',
  market_cap: 'USD',
  created_timestamp: 'Unix ms',
  age_ms: 'ms',
}

/** Figures whose member of a row is another one than that of their name: `market_cap` of a row is SOL. */
const FIGURE_MEMBERS: Readonly<Partial<Record<RangeFigure, string>>> = {
  market_cap: 'usd_market_cap (of a row; its market_cap is SOL)',
}

const bound = (word: 'least' | 'most', figure: RangeFigure) =>
  z
    .number()
    .optional()
    .meta({
      description: `Only tokens whose ${FIGURE_MEMBERS[figure] ?? figure} is known and at ${word} this`,
      unit: FIGURE_UNITS[figure],
    })
type RangeName = `min_${RangeFigure}` | `max_${Exclude<RangeFigure, 'analyses'>}`
const ranges = Object.fromEntries(
  RANGE_FIGURES.flatMap((figure) => [
    [`min_${figure}`, bound('least', figure)],
    ...(figure === 'analyses' ? [] : [[`max_${figure}`, bound('most', figure)]]),
  ]),
) as Record<RangeName, ReturnType<typeof bound>>

const fields = (compact: readonly string[], more: string) =>
  parameter.text(
    `Names of the members that are wanted, with commas between or in several parameters; \`compact\`: ${compact.join(', ')}. \`mint\` is always one.${more}`,
  )

/** GET /api/v1/market */
export const marketQuery = z.object({
  tab: z.enum(TABS).default('all').meta({ description: 'Which tokens' }),
  sort: parameter.word(
    SORTS,
    '`hot` unless told; `created_timestamp` for the tab `new`. Tokens whose figure is not known come last in either order, by mint; ' +
      'of others that are equal the first by mint is the first of `desc` and the last of `asc`. What trades do is in the order at once, and so is what time alone moves (volume, change, trades) where that is at most 2048 tokens; ' +
      'of more the others follow as time passes, hundreds a second',
  ),
  order: z.enum(ORDERS).default('desc').meta({ description: 'In upper or lower case' }),
  limit: parameter.limit(
    MARKET_LIMIT_DEFAULT,
    MARKET_LIMIT_MAX_JSON,
    ', which meta.clamped tells; NDJSON may have every token',
  ),
  offset: z.int().min(0).default(0).meta({ description: 'Rows to skip' }),
  search: z
    .string()
    .max(SEARCH_CHARACTERS_MAX)
    .optional()
    .meta({
      description:
        'Only tokens with a word in their name or symbol that begins with this, or with a mint that does, whatever the ' +
        'case. Several words have to follow one another. follow=1 ignores it',
      examples: ['soggy nar'],
    }),
  max_analyses: parameter.whole(0, 'Only tokens with at most so many accepted analyses. follow=1 ignores it'),
  ...ranges,
  mints: parameter.text(
    `Only these tokens: up to ${MINTS_FILTERED_MAX} mints, with commas between or in several parameters; a comma alone: no token`,
  ),
  fields: fields(
    COMPACT_ROW_FIELDS,
    ` These are in rows only where they are asked for: ${marketFiguresSchema.keyof().options.join(', ')}`,
  ),
  cursor: parameter.text(
    `meta.nextCursor or X-Next-Cursor of the page before, valid for at least ${CURSOR_VALID_S} s. The list is that of the first page: ` +
      'only limit, format and fields are read beside it. Empty: the first page, with a cursor in NDJSON and Arrow too',
  ),
  follow: parameter.word(
    ['0', '1', 'false', 'true', 'window'],
    '1: the rows as NDJSON, then each row of the tab that changes. window: the rows as NDJSON, then once a second what has changed ' +
      'among the rows from offset on, at most limit (200 at most), of the sorted and filtered list',
  ),
  since: parameter.whole(
    0,
    'With follow=1: only what changed after this `seq`; a resync where that is no longer known',
  ),
  format: parameter.word(FORMATS, '`json` unless told here or by Accept'),
})

/** GET /api/v1/datapoint */
export const datapointQuery = z.object({
  mint: mintSchema,
  fields: fields(COMPACT_DATAPOINT_FIELDS, ''),
  format: parameter.word(['json'], 'There is JSON only'),
})

/** POST /api/v1/datapoint/batch */
export const batchQuery = z.object({ fields: fields(COMPACT_DATAPOINT_FIELDS, '') })

/** GET /api/v1/time */
export const timeQuery = z.object({ until: parameter.time('Answer once market time is this') })

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

export const marketPageSchema = okWith(
  { data: z.array(z.union([marketItemSchema, chosenRowSchema])), meta: marketMetaSchema },
  {
    data: [exampleOf(marketItemSchema)],
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

export const totalsAnswerSchema = okData(
  z.object({
    tokens: wholeCount('Tokens that the market holds'),
    launches_24h: wholeCount('Of these, created within the last 24 hours'),
    volume_24h_usd: z.number().meta({ description: 'Traded within the last 24 hours', unit: 'USD' }),
    trades_24h: wholeCount('Trades within the last 24 hours'),
    buys_24h: wholeCount('Buys among them'),
    sells_24h: wholeCount('Sells among them'),
    ts: unixMs('Market time'),
  }),
  {
    tokens: 9_000,
    launches_24h: 8_400,
    volume_24h_usd: 12_345_678.9,
    trades_24h: 1_200_000,
    buys_24h: 640_000,
    sells_24h: 560_000,
    ts: 1_772_000_000_000,
  },
)

export type TotalsAnswer = z.infer<typeof totalsAnswerSchema>

export const dataPointAnswerSchema = okData(
  z.union([dataPointSchema, chosenDataPointSchema]),
  exampleOf(dataPointSchema),
)

export const batchSchema = z
  .object({ mints: z.array(mintSchema).min(1).max(BATCH_MINTS_MAX) })
  .meta({ examples: [{ mints: [EXAMPLE_MINT] }] })
export const batchAnswerSchema = okWith(
  {
    data: z.array(z.union([dataPointSchema, chosenDataPointSchema])),
    meta: metaWith({
      notFound: z.array(z.string()).meta({ description: 'Mints of which nothing is known' }),
    }),
  },
  { data: [exampleOf(dataPointSchema)], meta: { notFound: [] } },
)

/** Market time. */
export const timeAnswerSchema = okData(
  z.object({ marketTime: unixMs('The time up to which the market has gone') }),
  { marketTime: 1_772_000_000_800 },
)
