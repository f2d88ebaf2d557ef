// Options of markets that are restored, and markets under other ones.
import { Market, type MarketOptions } from '../market/market.ts'
import type { EngineSettings } from '../schema/event.ts'

/** Options of a market that nobody reads from. */
export const quietOptions = (settings: EngineSettings): MarketOptions => ({
  ...settings,
  changeLogEntriesMax: 1,
  evictionsMax: 1,
})

/** The same market under other settings: as a start with them restores it from a checkpoint. Takes a copy of it in memory. */
export function withSettings(market: Market, options: MarketOptions): Market {
  const sections = new Map<string, Uint8Array>()
  for (const { name, bytes } of market.save()) sections.set(name, Buffer.from(bytes))
  return Market.restore(options, (name) => sections.get(name) ?? null)
}

/** The same market under the settings that a run was recorded with, for the events of that run. */
export const underSettings = (market: Market, settings: EngineSettings): Market =>
  withSettings(market, quietOptions(settings))
