// The clocks of one server: the machine's, judged before it is believed, and the one that rules on time count by.
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { MarketClock } from '../lib/market-clock.ts'
import { SteadyClock } from '../lib/steady-clock.ts'

export interface Clocks {
  /** The machine's. */
  clock: SteadyClock
  /** By which rules count: limits, ages, what is shown and stored. It differs from `clock` where the market waits. */
  rulesClock: Clock
  /** Stores what the rules say; but a disk takes as long as it takes. */
  storeClock: Clock
  /** By which the age of what is served counts, ms. Where the market does not wait, no clock that a test or an operator sets is asked. */
  servedMs(): number
  /** To be called once the market is there. */
  followMarket(market: { readonly timeMs: number }): void
}

/** @param marketFromMs where the market waits: market time at which it begins, Unix ms; null: it follows the machine's clock */
export function clocksOf(clock: SteadyClock, marketFromMs: number | null): Clocks {
  if (marketFromMs === null)
    return {
      clock,
      rulesClock: clock,
      storeClock: clock,
      servedMs: () => performance.now(),
      followMarket: () => {},
    }
  const rulesClock = new MarketClock(marketFromMs)
  return {
    clock,
    rulesClock,
    storeClock: { now: () => rulesClock.now(), monotonicMs: () => clock.monotonicMs() },
    servedMs: () => rulesClock.now(),
    followMarket: (market) => rulesClock.follow(market),
  }
}

export function judgeClock(machine: Clock, log: Log): SteadyClock {
  return new SteadyClock(machine, (jumpMs, isFollowed) =>
    log.warn(
      { jumpMs },
      isFollowed ? 'the clock that has jumped is believed' : 'the clock has jumped: it is not believed yet',
    ),
  )
}
