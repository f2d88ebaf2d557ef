// In: the price of SOL as the security provider gives it, asked for now and then. Out: solPrice events, without which no
// trade of PumpPortal has a USD price. Never invents one: without an answer the latest price stays in force.
import { assert } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import type { EventSink } from '../schema/event.ts'
import { Birdeye, type BirdeyeOptions } from './birdeye.ts'
import { Tally } from './tally.ts'
import type { Feed, FeedLog, FeedStatus } from './types.ts'
import { wait } from './wait.ts'

export interface SolPriceOptions extends BirdeyeOptions {
  everyMs?: number
}

export const SOL_PRICE_EVERY_MS = 30_000
const WRAPPED_SOL = 'So11111111111111111111111111111111111111112'

/** Starts asking. It is ready after the first answer, good or not. */
export function startSolPrice(options: SolPriceOptions, sink: EventSink, clock: Clock, log: FeedLog): Feed {
  const { everyMs = SOL_PRICE_EVERY_MS } = options
  assert(everyMs > 0, 'the price is asked for at an interval')
  const stopping = new AbortController()
  const birdeye = new Birdeye(options, stopping.signal)
  const tally = new Tally(sink)
  const settled = Promise.withResolvers<void>()

  const askOnce = async (): Promise<void> => {
    const { data, fault } = await birdeye.get('/defi/price', WRAPPED_SOL)
    if (fault === 'stopped') return
    const usd = data?.value
    if (typeof usd === 'number' && usd > 0 && Number.isFinite(usd)) {
      tally.apply({ type: 'solPrice', ts: clock.now(), usd }, clock.now())
      return
    }
    tally.refuse(fault ?? 'malformed')
    log.warn(
      { feed: 'solPrice', fault: fault ?? 'malformed' },
      'no price of SOL: the latest one stays in force',
    )
  }
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await askOnce()
      settled.resolve()
      await wait(everyMs, stopping.signal)
    }
    settled.resolve()
  }
  const running = run()

  return {
    ready: settled.promise,
    stop: async () => {
      stopping.abort()
      await running
    },
    describe: (): FeedStatus => ({
      feed: 'solPrice',
      state: stopping.signal.aborted ? 'stopped' : 'running',
      simulated: false,
      source: 'birdeye',
      accepted: tally.accepted,
      rejected: { ...tally.rejected },
    }),
  }
}
