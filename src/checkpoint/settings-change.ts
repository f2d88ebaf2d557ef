import { Market, type MarketOptions } from '../market/market.ts'

/** The same market under other settings: as a start with them restores it from a checkpoint. Takes a copy of it in memory. */
export function withSettings(market: Market, options: MarketOptions): Market {
  const sections = new Map<string, Uint8Array>()
  for (const { name, bytes } of market.save()) sections.set(name, Buffer.from(bytes))
  return Market.restore(options, (name) => sections.get(name) ?? null)
}
