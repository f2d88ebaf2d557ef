// The query parameters of every route that reads any. Others are ignored, and the answer tells their names.
import { z } from 'zod'
import { BAR_FILLS, BAR_SHAPES, TIMEFRAMES } from '../bar.ts'
import { COMPACT_DATAPOINT_FIELDS } from '../datapoint.ts'
import { COMPACT_ROW_FIELDS } from '../market-item.ts'
import { ORDERS, OUTCOMES, RANGE_FIGURES, type RangeFigure, SENTIMENTS, SORTS, TABS } from '../vocabulary.ts'
import { mintSchema as mint } from './parts.ts'

export const MARKET_LIMIT_DEFAULT = 50
export const MARKET_LIMIT_MAX_JSON = 500
export const BARS_LIMIT_DEFAULT = 100
export const BARS_LIMIT_MAX = 1_000
/** Rows of one page of a list of submissions. */
export const ANALYSES_LIMIT_DEFAULT = 50
export const ANALYSES_LIMIT_MAX = 200
export const LEADERBOARD_LIMIT_DEFAULT = 50
export const LEADERBOARD_LIMIT_MAX = 200
/** Rows of one export of the training set; a larger set takes several requests, each from where the last one ended. */
export const EXPORT_LIMIT_DEFAULT = 100_000
export const EXPORT_LIMIT_MAX = 500_000
/** Mints that a list may be limited to. */
export const MINTS_FILTERED_MAX = 200
/** Characters of a search of the market list. */
export const SEARCH_CHARACTERS_MAX = 64

/** The formats of reads of the market; the parameter wins over the Accept header. */
export const FORMATS = ['json', 'ndjson', 'msgpack', 'arrow'] as const
export const EXPORT_FORMATS = ['parquet', 'arrow'] as const

/** One of these words, in upper or lower case. */
const word = <Word extends string>(words: readonly [Word, ...Word[]], description: string) =>
  z.enum(words).optional().meta({ description })
const whole = (min: number, description: string) => z.int().min(min).optional().meta({ description })
const unixMs = (description: string) => z.int().min(0).optional().meta({ description, unit: 'Unix ms' })
const text = (description: string) => z.string().optional().meta({ description })
/** Rows wanted. A number above the maximum is reduced to it, so it is no `maximum` of the schema. */
const limit = (otherwise: number, max: number, told: string) =>
  z
    .int()
    .min(1)
    .default(otherwise)
    .meta({ description: `Rows wanted. More than ${max} become ${max}${told}` })

/** GET /api/v1/time */
export const timeQuery = z.object({ until: unixMs('Answer once market time is this') })
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

const bound = (word: 'least' | 'most', figure: RangeFigure) =>
  z
    .number()
    .optional()
    .meta({
      description: `Only tokens whose ${figure} is known and at ${word} this`,
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
  text(
    `Names of the members that are wanted, with commas between; \`compact\`: ${compact.join(', ')}. \`mint\` is always one.${more}`,
  )

/** GET /api/v1/market */
export const marketQuery = z.object({
  tab: z.enum(TABS).default('all').meta({ description: 'Which tokens' }),
  sort: word(
    SORTS,
    '`hot` unless told; `created_timestamp` for the tab `new`. Tokens whose figure is not known come last in either order, equal ' +
      'ones by mint. What trades do is in the order at once; what time alone moves (volume, change, trades) at most once a second, ' +
      'and all of it within seconds',
  ),
  order: z.enum(ORDERS).default('desc').meta({ description: 'In upper or lower case' }),
  limit: limit(
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
        'case. Several words have to follow one another. follow ignores it',
      examples: ['soggy nar'],
    }),
  max_analyses: whole(0, 'Only tokens with at most so many accepted analyses. follow ignores it'),
  ...ranges,
  mints: text(`Only these tokens: up to ${MINTS_FILTERED_MAX} mints, with commas between`),
  fields: fields(
    COMPACT_ROW_FIELDS,
    ' change_5m, change_1h, change_6h, change_24h, volume_1h_usd, trades_24h, buys_24h and sells_24h are in rows only where they ' +
      'are asked for',
  ),
  cursor: text(
    'meta.nextCursor or X-Next-Cursor of the page before, valid for at least 30 s. The list is that of the first page: ' +
      'only limit, format and fields are read beside it. Empty: the first page, with a cursor in any format',
  ),
  follow: word(
    ['0', '1', 'false', 'true', 'window'],
    '1: the rows as NDJSON, then each row of the tab that changes. window: the rows as NDJSON, then once a second what has changed ' +
      'among the rows from offset on, at most limit (200 at most), of the sorted and filtered list',
  ),
  since: whole(0, 'With follow: only what changed after this `seq`; a resync where that is no longer known'),
  format: word(FORMATS, '`json` unless told here or by Accept'),
})

/** GET /api/v1/datapoint */
export const datapointQuery = z.object({
  mint,
  fields: fields(COMPACT_DATAPOINT_FIELDS, ''),
  format: word(['json'], 'There is JSON only'),
})

/** POST /api/v1/datapoint/batch */
export const batchQuery = z.object({ fields: fields(COMPACT_DATAPOINT_FIELDS, '') })

/** GET /api/v1/ohlc */
export const barsQuery = z.object({
  mint,
  tf: z.enum(TIMEFRAMES).default('1m').meta({ description: 'Timeframe' }),
  limit: limit(BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX, ', which meta.clamped tells'),
  from: unixMs('Bars that start at this time or later'),
  to: unixMs('Bars that start at this time or earlier'),
  fill: z.enum(BAR_FILLS).default('none').meta({
    description: '`prev` repeats the close where there was no trade, between the first trade and the last',
  }),
  shape: z.enum(BAR_SHAPES).default('short').meta({ description: 'The names of the fields' }),
  format: word(FORMATS, '`json` unless told here or by Accept'),
})

/** GET /health/history */
export const historyQuery = z.object({ since: unixMs('Only samples after this time') })

/** GET of either leaderboard. */
export const leaderboardQuery = z.object({
  limit: limit(LEADERBOARD_LIMIT_DEFAULT, LEADERBOARD_LIMIT_MAX, ', which meta.clamped tells'),
})

/** GET /api/v1/training/export */
export const exportQuery = z.object({
  format: word(EXPORT_FORMATS, '`parquet` unless told here or by Accept'),
  from: unixMs('Submitted at this time or later'),
  to: unixMs('Submitted before this time'),
  since: text(
    'X-Next-Since of the answer before, for the rows after it; or Unix ms, for rows known from then on',
  ),
  limit: limit(EXPORT_LIMIT_DEFAULT, EXPORT_LIMIT_MAX, ''),
})

/** GET /api/v1/analysis */
export const analysesQuery = z.object({
  agentId: text('List the submissions of this agent; `me`: of the agent whose key is sent'),
  mint: text('List the submissions on this token only'),
  latest: word(['0', '1', 'false', 'true'], '1: list the submissions of all agents on all tokens'),
  outcome: word(OUTCOMES, 'List those with this verdict only'),
  sentiment: word(SENTIMENTS, 'List those that say this only; withheld labels are none'),
  cursor: text('meta.nextCursor of the page before'),
  limit: limit(ANALYSES_LIMIT_DEFAULT, ANALYSES_LIMIT_MAX, ''),
})

/** GET /api/v1/agents/record */
export const agentRecordQuery = z.object({
  agentId: z.string().meta({ description: '`agentId` of an agent; `me`: the one whose key is sent' }),
})

/** POST /api/v1/analysis/submit */
export const submitQuery = z.object({
  dryRun: word(
    ['0', '1', 'false', 'true'],
    '1: every check, the verdict and the XP that it would earn. It uses the submit rate; nothing else is stored, and ' +
      'the Idempotency-Key is not read. Refusals are those of a submission, with `dryRun:true`',
  ),
})
