// In: the configuration. Out: the feeds it names, running into the market. A part of the server: it alone knows which
// upstream needs which setting. Never knows a route or a table.
import type { Config } from '../config/settings.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { EventSink } from '../schema/event.ts'
import type { Provenance } from '../store/types.ts'
import { Birdeye } from './birdeye/birdeye.ts'
import { type SecurityFeed, startSecurity } from './birdeye/security.ts'
import { startSolPrice } from './birdeye/sol-price.ts'
import { startPumpPortal } from './pumpportal/pumpportal.ts'
import type { TimedSink } from './push/push.ts'
import { startReplay } from './replay/replay.ts'
import { startSimulator } from './simulator/simulator.ts'
import type { Feed } from './types.ts'

export interface Feeds {
  feeds: Feed[]
  /** Where pushed events go: to the market, and what they launch or trade is asked for at the security provider. */
  pushed: TimedSink
}

/** Starts every feed of the configuration; with a key for it the security provider, and the price of SOL that it tells. */
export async function startFeeds(config: Config, sink: TimedSink, clock: Clock, log: Log): Promise<Feeds> {
  const { birdeyeKey: apiKey, birdeyeUrl: baseUrl, birdeyeRate: requestsPerSecond } = config
  // Until a feed tells a better one. In a replay of old data the market's time is the data's, and the clock says nothing.
  const nowMs = followsRecordedTime(config) ? 0 : clock.now()
  if (config.solPrice !== null)
    sink.apply({ type: 'solPrice', ts: nowMs, usd: config.solPrice, source: 'setting' }, nowMs)
  // Of a simulated market or one of the past a provider knows nothing: such a configuration has no key for it.
  const birdeye = apiKey !== '' ? new Birdeye({ apiKey, baseUrl, requestsPerSecond }) : null
  const security = birdeye && startSecurity({ birdeye }, sink, clock, log)
  const feeds: Feed[] = []
  if (birdeye !== null && security !== null)
    feeds.push(security, startSolPrice({ birdeye }, sink, clock, log))
  for (const feed of config.feeds) feeds.push(await start(feed, config, sink, security, clock, log))
  return { feeds, pushed: security === null ? sink : watchedBy(security, sink) }
}

function watchedBy(security: SecurityFeed, market: TimedSink): TimedSink {
  const { apply } = security.watch(market)
  return {
    apply,
    get timeMs() {
      return market.timeMs
    },
  }
}

/** Where the market's data comes from, as rows of the lake say it. Null: nothing can come in. */
export function provenanceOf({ feeds, feedKey }: Config): Provenance | null {
  const sources = [...feeds, ...(feedKey === '' || feeds.length > 0 ? [] : ['push'])]
  // What is pushed into a simulated market is part of it.
  return sources.length === 0 ? null : { feed: sources.join(','), simulated: feeds.includes('simulator') }
}

/** In a replay of old data the data's own time is the market's; everywhere else the market follows the clock. */
export function followsRecordedTime(config: Config): boolean {
  return config.feeds.length === 1 && config.feeds[0] === 'replay' && config.replayTime === 'recorded'
}

/** Where each feed stands, for `/readyz`: `/health` tells more. */
export function feedStates(feeds: readonly Feed[]): Record<string, unknown>[] {
  return feeds.map((feed) => {
    const { feed: name, state, stateSinceMs, latestError } = feed.describe()
    return { feed: name, state, stateSinceMs, latestError }
  })
}

/** Why the market is not warm though every feed has begun: a sentence, or null. */
export function whyNotWarm(feeds: readonly Feed[]): string | null {
  const reasons = feeds.flatMap((feed) => feed.whyNotReady?.() ?? [])
  return reasons.length === 0 ? null : `${reasons.join('; ')}.`
}

async function start(
  feed: Config['feeds'][number],
  config: Config,
  sink: EventSink,
  security: SecurityFeed | null,
  clock: Clock,
  log: Log,
): Promise<Feed> {
  switch (feed) {
    case 'simulator': {
      const { simulatorSeed: seed, simulatorTokens: tokens, simulatorRate: tradesPerSecond } = config
      return startSimulator({ seed, tokens, tradesPerSecond }, simulated(sink), clock, log)
    }
    case 'pumpportal': {
      const { pumpportalKey, pumpportalUrl: url } = config
      const apiKey = pumpportalKey === '' ? null : pumpportalKey
      warnOfWhatIsMissing(config, log)
      // What is launched or traded is what agents will ask for: its security fields are fetched ahead of them.
      return startPumpPortal({ url, apiKey, random: Math.random }, security?.watch(sink) ?? sink, clock, log)
    }
    case 'replay':
      return replay(config, sink, clock, log)
    default:
      throw new Error(`assertion failed: no feed is called ${feed}`)
  }
}

/** PumpPortal's data is less than it seems without a key and without a price of SOL: that is said before it is missed. */
function warnOfWhatIsMissing({ pumpportalKey, birdeyeKey, solPrice }: Config, log: Log): void {
  const feed = 'pumpportal'
  if (pumpportalKey === '')
    log.warn(
      { feed },
      'PumpPortal tells launches and migrations, but no trades, without a key: set MINTLAKE_PUMPPORTAL_KEY',
    )
  if (birdeyeKey === '' && solPrice === null)
    log.warn(
      { feed },
      'no trade of PumpPortal has a price in USD, and none is taken, before there is a price of SOL: set MINTLAKE_BIRDEYE_KEY or --sol-price, or push one',
    )
}

/** A price of SOL that is made up says so. */
const simulated = (sink: EventSink): EventSink => ({
  apply: (event, receivedAtMs) =>
    sink.apply(event.type === 'solPrice' ? { ...event, source: 'simulator' } : event, receivedAtMs),
})

async function replay(config: Config, sink: EventSink, clock: Clock, log: Log): Promise<Feed> {
  // The reader brings DuckDB into this thread: only a replay pays for that.
  const { openTradeFile } = await import('./replay/trade-file.ts')
  const { batches, rowsTotal } = await openTradeFile({ path: config.replayFile, mapping: config.replayMap })
  const { replaySpeed: speed, replayTime: time, replayFile: label } = config
  const onProgress = (progress: object) => log.info({ ...progress }, 'replay')
  return startReplay({ trades: batches, rowsTotal, speed, time, label, onProgress }, sink, clock, log)
}
