// What a row of the market has in the console: the server is asked for nothing else of it.
import type { MarketRow, RowField } from '../schema/market-item.ts'

/** What the market's list shows of a token. */
export const LISTED_FIELDS = [
  ...(['mint', 'name', 'symbol', 'image_uri', 'priceUsd', 'usd_market_cap', 'liquidity_usd'] as const),
  ...([
    'change_5m',
    'change_1h',
    'change_6h',
    'change_24h',
    'volume_24h_usd',
    'buys_24h',
    'sells_24h',
  ] as const),
  ...(['holder_count', 'complete', 'is_currently_live', 'created_timestamp', 'analysis_count'] as const),
] as const satisfies readonly RowField[]
export type ListedRow = Pick<MarketRow, (typeof LISTED_FIELDS)[number]>
