import { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { price, time } from '../../schema/bounds.ts'
import type { EventSink } from '../../schema/event.ts'
import { MARKET_QUOTES } from '../../schema/quote.ts'
import { FeedParts } from '../feed-parts.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import { wait } from '../wait.ts'
import type { BirdeyeClient } from './birdeye-client.ts'

const SOL_PRICE_EVERY_MS = 30_000
/** Unix seconds, read as ms. */
const updatedSeconds = z
  .number()
  .transform((seconds) => seconds * 1_000)
  .pipe(time)
export const SOL_PRICE_FEED = 'solPrice'

interface SolPriceOptions {
  birdeye: BirdeyeClient
  everyMs?: number
}

/**
 * A feed that asks Birdeye for the price of SOL at an interval and sends it as solPrice events. Trades of PumpPortal have
 * no USD price without it. When there is no answer the latest price stays in force until it is too old. The feed is ready after
 * the first answer, whether it holds a price or not.
 */
export class SolPriceFeed implements Feed {
  readonly ready: Promise<void>
  #latestPrice: { usd: number; atMs: number } | null = null
  #latestError: { message: string; atMs: number } | null = null
  readonly #options: SolPriceOptions
  readonly #parts: FeedParts
  readonly #firstAnswer = Promise.withResolvers<void>()
  readonly #running: Promise<void>

  constructor(options: SolPriceOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.#options = options
    this.#parts = new FeedParts(SOL_PRICE_FEED, sink, clock, log)
    this.ready = this.#firstAnswer.promise
    this.#running = this.#run()
  }

  async #run(): Promise<void> {
    const { signal } = this.#parts.stopping
    while (!signal.aborted) {
      try {
        await this.#askOnce(signal)
      } catch (error) {
        this.#parts.noteFault(error)
      }
      this.#firstAnswer.resolve()
      await wait(this.#options.everyMs ?? SOL_PRICE_EVERY_MS, signal)
    }
    this.#firstAnswer.resolve()
    this.#parts.state.set('stopped')
  }

  async #askOnce(signal: AbortSignal): Promise<void> {
    const { state, counters, clock } = this.#parts
    const { data, fault } = await this.#options.birdeye.get('/defi/price', MARKET_QUOTES.sol, signal)
    if (fault === 'stopped') return
    const usd = safeParse(price, data?.value).data
    const nowMs = clock.now()
    if (usd !== undefined) {
      state.set('running')
      // Birdeye may have gone without a new price for hours: it is as old as it says.
      const toldMs = safeParse(updatedSeconds, data?.updateUnixTime).data ?? nowMs
      const atMs = Math.min(nowMs, toldMs)
      this.#latestPrice = { usd, atMs }
      counters.apply({ type: 'solPrice', ts: atMs, usd, source: 'birdeye' }, nowMs)
      return
    }
    state.set('reconnecting')
    const message = fault ?? 'malformed'
    if (message === 'malformed') counters.countRejected(message, () => 'an answer without a price of SOL')
    else counters.countFailure(message)
    this.#latestError = { message, atMs: nowMs }
    this.#parts.logSeldom(
      'warn',
      { fault: message },
      'Birdeye gave no price of SOL: the latest one stays in force until it is too old',
    )
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await this.#running
  }

  describe(): FeedStatus {
    return this.#parts.status({
      source: 'birdeye',
      latestPrice: this.#latestPrice,
      latestError: this.#latestError,
    })
  }
}
