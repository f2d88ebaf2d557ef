// What holds the figures of the tokens of a market, and what these are made of.
import { type ClosedBar, TIMEFRAMES } from '../schema/bar.ts'
import type { EngineSettings } from '../schema/event.ts'
import { BarCascade, type BarCascadeOptions } from './bars/bar-cascade.ts'
import { copyClosedBar } from './bars/closed-bar.ts'
import { WalletWindows } from './bars/wallet-windows.ts'
import { Windows } from './bars/windows.ts'
import {
  BARS_PER_TOKEN_MAX_DEFAULT,
  NEW_WINDOW_MS_DEFAULT,
  SOL_PRICE_MAX_AGE_MS_DEFAULT,
  TOKENS_MAX_DEFAULT,
  VERSIONS_MAX_DEFAULT,
} from './limits.ts'
import { ChangeLog } from './output/change-log.ts'
import { CHANGE_LOG_ENTRIES_MAX, EVICTIONS_MAX } from './output/limits.ts'
import { ListFigures } from './rankings/list-figures.ts'
import { MintOrder } from './rankings/mint-order.ts'
import { Rankings } from './rankings/rankings.ts'
import { Gaps } from './time/gaps.ts'
import { MarketTime } from './time/market-time.ts'
import { RecentTrades } from './tokens/recent-trades.ts'
import { SolPrice } from './tokens/sol-price.ts'
import { TokenTable } from './tokens/token-table.ts'

const MINUTE_INDEX = TIMEFRAMES.indexOf('1m')

export interface MarketOptions extends Partial<EngineSettings> {
  changeLogEntriesMax?: number | undefined
  poolBarsMin?: number | undefined
  evictionsMax?: number
  /** The position before the first change; it must be above every position of an earlier run. */
  firstSeq?: number
  /** Called once with each closed bar of a minute or longer, during a write: it must not read the market. */
  onBarClosed?: (bar: ClosedBar) => void
  /** Called when a token's profile may have changed, during a write: it must not read the market. */
  onProfileChanged?: (mint: string) => void
}

/** What the engine's answers depend on besides the events, where options leave it open. */
export const settingsOf = (options: MarketOptions): EngineSettings => ({
  tokensMax: options.tokensMax ?? TOKENS_MAX_DEFAULT,
  newWindowMs: options.newWindowMs ?? NEW_WINDOW_MS_DEFAULT,
  solPriceMaxAgeMs: options.solPriceMaxAgeMs ?? SOL_PRICE_MAX_AGE_MS_DEFAULT,
  barsPerTokenMax: options.barsPerTokenMax ?? BARS_PER_TOKEN_MAX_DEFAULT,
  versionsMax: options.versionsMax ?? VERSIONS_MAX_DEFAULT,
})

export type MarketSources = ReturnType<typeof createSources>

/** What holds the figures of tokens, and what they are made of. */
export function createSources(
  { tokensMax, barsPerTokenMax, solPriceMaxAgeMs }: EngineSettings,
  { onBarClosed, poolBarsMin, changeLogEntriesMax, evictionsMax, firstSeq }: MarketOptions,
) {
  const time = new MarketTime()
  const log = new ChangeLog({
    entriesMax: changeLogEntriesMax ?? CHANGE_LOG_ENTRIES_MAX,
    evictionsMax: evictionsMax ?? EVICTIONS_MAX,
    firstSeq: firstSeq ?? 0,
  })
  const gaps = new Gaps(time, log)
  const tokens = new TokenTable(tokensMax)
  const mintOrder = new MintOrder(tokens)
  const barsEmitted = TIMEFRAMES.map(() => 0)
  const bars = new BarCascade({
    tokensMax,
    barsPerTokenMax,
    poolBarsMin,
    onClosed: onBarClosed && emitterOf(onBarClosed, { tokens, time, gaps, barsEmitted }),
    closedFrom: MINUTE_INDEX,
  })
  const windows = new Windows(bars, tokens.columns)
  const listFigures = new ListFigures(tokens, windows)
  return {
    time,
    log,
    gaps,
    tokens,
    mintOrder,
    bars,
    /** How many closed bars were given to `onBarClosed`, by timeframe. */
    barsEmitted,
    windows,
    wallets: new WalletWindows(tokensMax, bars.blocks),
    listFigures,
    rankings: new Rankings({ tokensMax, mintOrder, figures: listFigures, time }),
    recentTrades: new RecentTrades(),
    solPrice: new SolPrice(solPriceMaxAgeMs),
  }
}

interface EmitterParts {
  tokens: TokenTable
  time: MarketTime
  gaps: Gaps
  barsEmitted: number[]
}

/** What the cascade calls with each closed bar, which it holds as numbers at an address. */
function emitterOf(
  onBarClosed: (bar: ClosedBar) => void,
  { tokens, time, gaps, barsEmitted }: EmitterParts,
): NonNullable<BarCascadeOptions['onClosed']> {
  return (slot, timeframe, values, address) => {
    const { mint } = tokens.metadata[slot]
    barsEmitted[timeframe]++
    const watchedSinceMs = Math.max(time.sinceMs, tokens.barsWholeFromMs(slot))
    onBarClosed(copyClosedBar(values, address, mint, timeframe, time.nowMs, watchedSinceMs, gaps))
  }
}
