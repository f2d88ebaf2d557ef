// Tools that read the market.
import { z } from 'zod'
import type { DataPointAnswer, MintlakeClient } from '../client/index.ts'
import { BAR_FILLS, type Bar, TIMEFRAMES } from '../schema/bar.ts'
import type { DataPoint } from '../schema/datapoint.ts'
import type { MarketItem } from '../schema/market-item.ts'
import { MINT_SHAPE } from '../schema/mint.ts'
import { ORDERS, SORTS, TABS } from '../schema/vocabulary.ts'
import { detailInput, shortened, tableOf, tableOutput } from './compact.ts'
import { BARS, HOLDERS_SHOWN, ROWS, TRADES_SHOWN } from './limits.ts'
import { type AddTool, clampLimit, isOn, limitInput, tool, UNTRUSTED } from './tool.ts'

/** What of a row decides whether to look closer. */
const LIST_COLUMNS = [
  ...(['mint', 'symbol', 'name', 'priceUsd', 'usd_market_cap', 'volume_24h_usd', 'liquidity_usd'] as const),
  ...(['holder_count', 'bonding_progress', 'complete', 'created_timestamp', 'last_trade_timestamp'] as const),
  'analysis_count',
] as const satisfies readonly (keyof MarketItem)[]
const BAR_COLUMNS = ['t', 'o', 'h', 'l', 'c', 'v', 'n', 'closed'] as const satisfies readonly (keyof Bar)[]
/** Of a DataPoint: what is there twice, and what no analysis needs. */
const LEFT_OUT: ReadonlySet<string> = new Set<keyof DataPoint>([
  ...(['imageUrl', 'imageUri', 'isCurrentlyLive', 'top10Holding', 'skills', 'version', 'ttl'] as const),
])
const ITEMS_SHOWN = { topHolders: HOLDERS_SHOWN, recentTrades: TRADES_SHOWN }

const mint = z.string().meta({ description: 'Mint address of the token, base58', ...MINT_SHAPE })
const unixMs = (description: string) =>
  z
    .int()
    .optional()
    .meta({ description: `${description}, Unix ms` })

const listInput = z.object({
  tab: z.enum(TABS).optional().meta({ description: 'Which tokens; all unless given' }),
  sort: z.enum(SORTS).optional(),
  order: z.enum(ORDERS).optional(),
  limit: limitInput(ROWS, 'Rows'),
  detail: detailInput,
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
  limit: limitInput(BARS, 'Bars, the most recent ones'),
  detail: detailInput,
  from: unixMs('Bars that start at this time or later'),
  to: unixMs('Bars that start at this time or earlier'),
  fill: z
    .enum(BAR_FILLS)
    .optional()
    .meta({ description: 'prev: bars without trades repeat the close before' }),
})

/** What an answer of a replay says of its market, where there is something to say. */
const notesOf = ({ approximate, warming_up }: NonNullable<DataPointAnswer['meta']> = {}) => ({
  ...(approximate !== undefined && { approximate }),
  ...(warming_up !== undefined && { warming_up }),
})

/** `list_market`, `get_datapoint`, `get_bars`. */
export function marketTools(client: MintlakeClient): AddTool[] {
  const listMarket = tool({
    name: 'list_market',
    title: 'Market list',
    description:
      'Lists tokens: price, market cap, volume, holders, and analysis_count, the number of accepted analyses. Amounts are USD, ' +
      `times Unix ms; rows are lists in the order of columns. ${UNTRUSTED}`,
    input: listInput,
    output: tableOutput,
    run: async ({ max_analyses: maxAnalyses, limit, detail, ...query }, signal) => {
      const bound = clampLimit(limit, ROWS)
      const { data, meta } = await client.market({ ...query, limit: bound.limit, maxAnalyses }, { signal })
      if (isOn('detail', detail)) return { data, meta: { ...meta, ...bound.told } }
      const { count, total, nextCursor, ignored } = meta
      const told = { count, total, nextCursor, ignored, ...notesOf(meta), ...bound.told }
      return { ...tableOf(data, LIST_COLUMNS), meta: told }
    },
  })
  const getDatapoint = tool({
    name: 'get_datapoint',
    title: 'DataPoint of a token',
    description:
      'What the market knows of one token now: prices, volumes, trades, holders, security, social links. What is not there is ' +
      `unknown; cut names what is shown in part. Analyses are checked against these values. ${UNTRUSTED}`,
    input: z.object({ mint, detail: detailInput }),
    output: z.looseObject({
      mint: z.string(),
      cut: z.array(z.string()).optional(),
      approximate: z.string().optional(),
      warming_up: z.string().optional(),
    }),
    run: async ({ mint: wanted, detail }, signal) => {
      const { data, meta } = await client.datapointAnswer(wanted, { signal })
      const datapoint = isOn('detail', detail) ? data : shortened(data, LEFT_OUT, ITEMS_SHOWN)
      return { ...datapoint, ...notesOf(meta) }
    },
  })
  const getBars = tool({
    name: 'get_bars',
    title: 'OHLC bars of a token',
    description:
      'Price bars, oldest first: t start (Unix ms), o h l c prices (USD), v volume (USD), n trades. The last bar may be forming ' +
      '(closed false).',
    input: barsInput,
    output: tableOutput,
    run: async ({ limit, detail, ...query }, signal) => {
      const bound = clampLimit(limit, BARS)
      const { data, meta } = await client.bars({ ...query, limit: bound.limit }, { signal })
      const told = { ...meta, ...bound.told }
      return isOn('detail', detail) ? { data, meta: told } : { ...tableOf(data, BAR_COLUMNS), meta: told }
    },
  })
  return [listMarket, getDatapoint, getBars]
}
