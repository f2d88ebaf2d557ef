// Tools that read the market.
import { z } from 'zod'
import type { MintlakeClient } from '../client/index.ts'
import { BAR_FILLS, TIMEFRAMES } from '../schema/bar.ts'
import { MINT_SHAPE } from '../schema/mint.ts'
import { ORDERS, SORTS, TABS } from '../schema/vocabulary.ts'
import { BARS_DEFAULT, BARS_MAX, ROWS_DEFAULT, ROWS_MAX } from './limits.ts'
import { type AddTool, checkedByServer, READ_ONLY, tool, UNTRUSTED } from './tool.ts'

const mint = z.string().meta({ description: 'Mint address of the token, base58', ...MINT_SHAPE })
const count = (otherwise: number, max: number, what: string) =>
  z
    .int()
    .min(1)
    .optional()
    .meta({ description: `${what}; ${otherwise} unless given, at most ${max}`, maximum: max })
const unixMs = (description: string) =>
  z
    .int()
    .optional()
    .meta({ description: `${description}, Unix ms` })

const listInput = z.object({
  tab: z.enum(TABS).optional().meta({ description: 'Which tokens; all unless given' }),
  sort: z.enum(SORTS).optional(),
  order: z.enum(ORDERS).optional(),
  limit: count(ROWS_DEFAULT, ROWS_MAX, 'Rows'),
  cursor: z.string().optional().meta({ description: 'meta.nextCursor of the page before' }),
  search: z
    .string()
    .optional()
    .meta({ description: 'Beginning of a word of name or symbol, or of the mint' }),
  max_analyses: z
    .int()
    .min(0)
    .optional()
    .meta({ description: 'Only tokens with at most so many accepted analyses: 0 to 4 earn bonuses' }),
})
const barsInput = z.object({
  mint,
  tf: z.enum(TIMEFRAMES).optional().meta({ description: 'Length of a bar; 1m unless given' }),
  limit: count(BARS_DEFAULT, BARS_MAX, 'Bars, the most recent ones'),
  from: unixMs('Bars that start at this time or later'),
  to: unixMs('Bars that start at this time or earlier'),
  fill: z
    .enum(BAR_FILLS)
    .optional()
    .meta({ description: 'prev: bars without trades repeat the close before' }),
})

/** `list_market`, `get_datapoint`, `get_bars`. */
export function marketTools(client: MintlakeClient): AddTool[] {
  const listMarket = tool<z.input<typeof listInput>>({
    name: 'list_market',
    title: 'Market list',
    description:
      'Lists tokens: price, market cap, volume, holders, and analysis_count, the number of accepted analyses. Prices are USD, ' +
      `market_cap is SOL, times are Unix ms. ${UNTRUSTED}`,
    input: checkedByServer(listInput),
    annotations: READ_ONLY,
    run: ({ max_analyses: maxAnalyses, limit = ROWS_DEFAULT, ...query }, signal) =>
      client.market({ ...query, limit: Math.min(limit, ROWS_MAX), maxAnalyses }, { signal }),
  })
  const getDatapoint = tool<{ mint: string }>({
    name: 'get_datapoint',
    title: 'DataPoint of a token',
    description:
      'Everything that the market knows of one token now: prices, volumes, trades, holders, security, social links. null is ' +
      `unknown. Analyses are checked against these values. ${UNTRUSTED}`,
    input: checkedByServer(z.object({ mint })),
    annotations: READ_ONLY,
    run: ({ mint: wanted }, signal) => client.datapoint(wanted, { signal }),
  })
  const getBars = tool<z.input<typeof barsInput>>({
    name: 'get_bars',
    title: 'OHLC bars of a token',
    description:
      'Price bars, oldest first: t start (Unix ms), o h l c prices (USD), v volume (USD), n trades. The last bar may be forming ' +
      '(closed false).',
    input: checkedByServer(barsInput),
    annotations: READ_ONLY,
    run: ({ limit = BARS_DEFAULT, ...query }, signal) =>
      client.bars({ ...query, limit: Math.min(limit, BARS_MAX) }, { signal }),
  })
  return [listMarket, getDatapoint, getBars]
}
