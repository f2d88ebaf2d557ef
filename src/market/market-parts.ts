// The parts of a market, connected to one another.
import type { RewindEvent } from '../schema/event.ts'
import { ClosedBarSweep } from './bars/closed-bar.ts'
import { DAY_TIMEFRAME } from './bars/windows.ts'
import { EventWriter } from './events/event-writer.ts'
import { Healing } from './events/healing.ts'
import { Prefetch } from './events/prefetch.ts'
import { rewindMarket } from './events/rewind.ts'
import { TokenFigures } from './events/token-figures.ts'
import { TokenLifecycle } from './events/token-lifecycle.ts'
import { TradeWriter } from './events/trade-writer.ts'
import type { MarketOptions } from './market-sources.ts'
import { createState } from './market-state.ts'

export type MarketParts = ReturnType<typeof createParts>

/** The parts of an empty market. */
export function createParts(options: MarketOptions) {
  const { onProfileChanged = () => {} } = options
  const state = createState(options)
  const figures = new TokenFigures({ ...state, onProfileChanged })
  const lifecycle = new TokenLifecycle(state)
  state.bars.ring(DAY_TIMEFRAME).onReclaim = (slot) => lifecycle.settleWindow(slot)
  const healing = new Healing(state)
  const trades = new TradeWriter({ ...state, figures, lifecycle, healing })
  const sweep = new ClosedBarSweep(state.tokens, state.bars, state.time)
  const rewind = (event: RewindEvent) => rewindMarket({ ...state, figures, sweep, healing }, event)
  return {
    ...state,
    prefetch: new Prefetch(state),
    sweep,
    figures,
    lifecycle,
    trades,
    healing,
    events: new EventWriter({ ...state, figures, lifecycle, trades, healing, onProfileChanged, rewind }),
  }
}
