// Starts the feeds that the configuration names. Only this file knows which feed needs which setting.
import type { Config } from '../config/settings.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { EventSink } from '../schema/event.ts'
import type { Provenance } from '../store/types.ts'
import { BirdeyeClient } from './birdeye/birdeye-client.ts'
import { type SecurityFeed, startSecurityFeed } from './birdeye/security-feed.ts'
import { startSolPriceFeed } from './birdeye/sol-price-feed.ts'
import { startPumpPortal } from './pumpportal/pumpportal.ts'
import { PushFeed } from './push/push-feed.ts'
import { startReplay } from './replay/replay.ts'
import { startSimulator } from './simulator/simulator.ts'
import type { Feed, TimedSink } from './types.ts'

export interface Feeds {
  /** Those that run, for /health. */
  feeds: Feed[]
  /** What is pushed goes there. It is one of `feeds` where there is a key to push with. */
  push: PushFeed
}

/** Starts every feed of the configuration. With a key for Birdeye this includes the feeds of security fields and SOL price. */
export async function startFeeds(config: Config, sink: TimedSink, clock: Clock, log: Log): Promise<Feeds> {
  const { birdeyeKey: apiKey, birdeyeUrl: baseUrl, birdeyeRate: requestsPerSecond } = config
  // Valid until a feed sends another. In a replay the market's time is that of the recorded data, so the clock is not used.
  const nowMs = followsRecordedTime(config) ? 0 : clock.now()
  if (config.solPrice !== null)
    sink.apply({ type: 'solPrice', ts: nowMs, usd: config.solPrice, source: 'setting' }, nowMs)
  // Configurations with only simulated or past data cannot have this key: Birdeye does not know such tokens.
  const birdeye = apiKey !== '' ? new BirdeyeClient({ apiKey, baseUrl, requestsPerSecond }) : null
  const security = birdeye && startSecurityFeed({ birdeye }, sink, clock, log)
  const feeds: Feed[] = []
  if (birdeye !== null && security !== null)
    feeds.push(security, startSolPriceFeed({ birdeye }, sink, clock, log))
  for (const feed of config.feeds) feeds.push(await startFeed(feed, config, sink, security, clock, log))
  const push = new PushFeed(security?.watch(sink) ?? sink, sink, clock)
  if (config.feedKey !== '') feeds.push(push)
  return { feeds, push }
}

/** Where the market's data comes from, as stored in rows of the lake. Null where no data can come in. */
export function provenanceOf({ feeds, feedKey }: Config): Provenance | null {
  const sources = [...feeds, ...(feedKey === '' || feeds.length > 0 ? [] : ['push'])]
  // Events that are pushed into a simulated market count as simulated.
  return sources.length === 0 ? null : { feed: sources.join(','), simulated: feeds.includes('simulator') }
}

/** Whether market time is the recorded time of a replay. Otherwise it follows the clock. */
export function followsRecordedTime(config: Config): boolean {
  return config.feeds.length === 1 && config.feeds[0] === 'replay' && config.replayTime === 'recorded'
}

/** The state of each feed, for `/readyz`; `/health` has more details. */
export function feedStates(feeds: readonly Feed[]): Record<string, unknown>[] {
  return feeds.map((feed) => {
    const { feed: name, state, stateSinceMs, latestError } = feed.describe()
    return { feed: name, state, stateSinceMs, latestError }
  })
}

/** A sentence that says why feeds that have started have delivered nothing yet; null where all have. */
export function whyNotWarm(feeds: readonly Feed[]): string | null {
  const reasons = feeds.flatMap((feed) => feed.whyNotReady?.() ?? [])
  return reasons.length === 0 ? null : `${reasons.join('; ')}.`
}

async function startFeed(
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
      return startSimulator({ seed, tokens, tradesPerSecond }, markSimulated(sink), clock, log)
    }
    case 'pumpportal': {
      const { pumpportalKey, pumpportalUrl: url } = config
      const apiKey = pumpportalKey === '' ? null : pumpportalKey
      warnOfMissingSettings(config, log)
      // Agents will ask for tokens that are launched or traded: their security fields are fetched in advance.
      return startPumpPortal({ url, apiKey, random: Math.random }, security?.watch(sink) ?? sink, clock, log)
    }
    case 'replay':
      return startConfiguredReplay(config, sink, clock, log)
    default:
      throw new Error(`assertion failed: no feed is called ${feed}`)
  }
}

/** Without a key PumpPortal sends no trades, and without a price of SOL its trades have no price in USD. */
function warnOfMissingSettings({ pumpportalKey, birdeyeKey, solPrice }: Config, log: Log): void {
  const feed = 'pumpportal'
  if (pumpportalKey === '')
    log.warn(
      { feed },
      'without a key PumpPortal sends launches and migrations, but no trades: set MINTLAKE_PUMPPORTAL_KEY',
    )
  if (birdeyeKey === '' && solPrice === null)
    log.warn(
      { feed },
      'trades of PumpPortal are rejected until there is a price of SOL: set MINTLAKE_BIRDEYE_KEY or --sol-price, or push one',
    )
}

/** Names the simulator as the source of its SOL prices. */
const markSimulated = (sink: EventSink): EventSink => ({
  apply: (event, receivedAtMs) =>
    sink.apply(event.type === 'solPrice' ? { ...event, source: 'simulator' } : event, receivedAtMs),
})

async function startConfiguredReplay(config: Config, sink: EventSink, clock: Clock, log: Log): Promise<Feed> {
  // Imported here because it loads DuckDB, which only a replay needs in this process.
  const { openTradeFile } = await import('./replay/trade-file.ts')
  const { batches, rowsTotal } = await openTradeFile({ path: config.replayFile, mapping: config.replayMap })
  const { replaySpeed: speed, replayTime: time, replayFile: label } = config
  const onProgress = (progress: object) => log.info({ ...progress }, 'replay')
  return startReplay({ trades: batches, rowsTotal, speed, time, label, onProgress }, sink, clock, log)
}
