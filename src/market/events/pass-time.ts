import type { MarketState } from '../market-state.ts'
import type { Healing } from './healing.ts'
import type { TokenFigures } from './token-figures.ts'

type TimedParts = Pick<MarketState, 'time' | 'rankings'> & { figures: TokenFigures; healing: Healing }

/** Moves market time forward, and does what is due by then; an earlier time does nothing. */
export function passTime({ time, healing, rankings, figures }: TimedParts, toMs: number): void {
  if (!time.advanceTo(toMs)) return
  healing.passTime()
  rankings.figureOrders.advance()
  figures.removeAged()
}
