// In: a token's columns and words. Out: the text of its row in the market list. Written by hand because a row is made for
// every change that somebody reads; a test holds it equal to JSON.stringify of the typed value. Never keeps what it made:
// page-cache.ts does.
import type { MarketItem } from '../../schema/market-item.ts'
import type { TokenMetadata } from '../tokens/token-table.ts'

const text = (value: string | null): string => (value === null ? 'null' : JSON.stringify(value))
const number = (value: number | null): string => (value === null ? 'null' : `${value}`)

/** The part of a row that changes only with the token's words; `rowEnd` holds what follows the numbers. */
export interface RowText {
  start: string
  creator: string
  socials: string
}

export function rowText(metadata: TokenMetadata): RowText {
  return {
    start:
      `{"mint":"${metadata.mint}","name":${text(metadata.name)},"symbol":${text(metadata.symbol)},` +
      `"description":${text(metadata.description)},"image_uri":${text(metadata.imageUri)},"usd_market_cap":`,
    creator: `,"creator":${text(metadata.creator)},"virtual_sol_reserves":`,
    socials: `,"website":${text(metadata.website)},"twitter":${text(metadata.twitter)},"telegram":${text(metadata.telegram)},"analysis_count":`,
  }
}

/** One row of the market list as JSON, the same text as JSON.stringify(item), but for its closing brace: a follower's row
 *  has one member more. */
export function renderOpenItem(item: MarketItem, metadata: RowText): string {
  return (
    `${metadata.start}${number(item.usd_market_cap)},"market_cap":${number(item.market_cap)}` +
    `,"created_timestamp":${number(item.created_timestamp)},"is_currently_live":${item.is_currently_live}` +
    `,"complete":${item.complete},"priceUsd":${number(item.priceUsd)}${metadata.creator}${number(item.virtual_sol_reserves)}` +
    `,"virtual_token_reserves":${number(item.virtual_token_reserves)},"bonding_progress":${number(item.bonding_progress)}` +
    `,"volume_24h_usd":${number(item.volume_24h_usd)},"liquidity_usd":${number(item.liquidity_usd)}` +
    `,"holder_count":${number(item.holder_count)},"last_trade_timestamp":${number(item.last_trade_timestamp)}` +
    `${metadata.socials}${item.analysis_count},"hot_score":${item.hot_score}`
  )
}
