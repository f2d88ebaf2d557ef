// Renders a row of the market list as JSON. Written by hand, because a row is rendered for every change that somebody reads; a test
// compares it with JSON.stringify.
import { jsonLine } from '../../lib/text/json-text.ts'
import type { MarketItem } from '../../schema/market-item.ts'
import type { TokenMetadata } from '../tokens/token-table.ts'

const jsonText = (value: string | null): string => (value === null ? 'null' : jsonLine(value))
const jsonNumber = (value: number | null): string => (value === null ? 'null' : `${value}`)

/** The parts of a row that change only with the token's texts. */
export interface RowText {
  start: string
  creator: string
  socials: string
  quote: string
}

export function rowText(metadata: TokenMetadata): RowText {
  return {
    start:
      `{"mint":"${metadata.mint}","name":${jsonText(metadata.name)},"symbol":${jsonText(metadata.symbol)},` +
      `"description":${jsonText(metadata.description)},"image_uri":${jsonText(metadata.imageUri)},"usd_market_cap":`,
    creator: `,"creator":${jsonText(metadata.creator)},"virtual_sol_reserves":`,
    quote: `,"quoteMint":${jsonText(metadata.quoteMint)},"isMayhem":`,
    socials: `,"website":${jsonText(metadata.website)},"twitter":${jsonText(metadata.twitter)},"telegram":${jsonText(metadata.telegram)},"analysis_count":`,
  }
}

/** A row as the text of JSON.stringify(item) without the closing brace: a follower's row has one more member. */
export function renderOpenItem(item: MarketItem, metadata: RowText): string {
  return (
    `${metadata.start}${jsonNumber(item.usd_market_cap)},"market_cap":${jsonNumber(item.market_cap)}` +
    `,"created_timestamp":${jsonNumber(item.created_timestamp)},"is_currently_live":${item.is_currently_live}` +
    `,"complete":${item.complete},"priceUsd":${jsonNumber(item.priceUsd)}${metadata.creator}${jsonNumber(item.virtual_sol_reserves)}` +
    `,"virtual_token_reserves":${jsonNumber(item.virtual_token_reserves)},"bonding_progress":${jsonNumber(item.bonding_progress)}` +
    `,"volume_24h_usd":${jsonNumber(item.volume_24h_usd)},"liquidity_usd":${jsonNumber(item.liquidity_usd)}` +
    `,"holder_count":${jsonNumber(item.holder_count)},"last_trade_timestamp":${jsonNumber(item.last_trade_timestamp)}` +
    `${metadata.socials}${item.analysis_count},"hot_score":${item.hot_score}${metadata.quote}${item.isMayhem}`
  )
}
