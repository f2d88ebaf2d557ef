// Starts the feeds that the configuration names. Only this file knows which feed needs which setting.
import type { Config } from '../config/settings.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { EventSink } from '../schema/event.ts'
import { BirdeyeClient } from './birdeye/birdeye-client.ts'
import { SECURITY_FEED, SecurityFeed } from './birdeye/security-feed.ts'
import { SOL_PRICE_FEED, SolPriceFeed } from './birdeye/sol-price-feed.ts'
import { followsRecordedTime } from './feed-settings.ts'
import { UPSTREAM_TRADE_KEYS_MAX } from './limits.ts'
import { METADATA_FEED, MetadataFeed } from './metadata/metadata-feed.ts'
import { PumpPortal } from './pumpportal/pumpportal.ts'
import { PushFeed } from './push/push-feed.ts'
import { PUSH_FEED } from './push/record.ts'
import { LakeReplay, type LakeReplayOptions } from './replay/lake-replay.ts'
import { barTerminal, ProgressReport } from './replay/progress-report.ts'
import { Replay } from './replay/replay.ts'
import { openSimulatedMarket } from './simulated-market.ts'
import { SimulatorFeed } from './simulator/simulator.ts'
import type { SolanaFeed } from './solana/solana.ts'
import type { ChainSource } from './solana/source.ts'
import type { Feed, RecordedPlace, RecordedTo, Room, TimedSink } from './types.ts'

const REPLAY_FEED = 'replay'
/** Who reports the price of SOL that the configuration has. */
const SETTING = 'setting'

/** Where a feed of this name delivers its events. */
export type SinkOf = (feed: string) => TimedSink

/** What feeds need of the market besides their sinks. */
export interface MarketSide {
  /** Feeds that can wait do so until there is room for their events. */
  room: Room
  /** Whether the events of feeds are recorded. */
  isRecorded: boolean
  /** The file that tells which market is simulated. */
  simulatedMarketPath: string
  /** Since when the market holds a token, as `Market.heldSince`; null: it does not. */
  heldSince: (mint: string) => number | null
  /** The tokens that were traded last, at most so many, the latest first. */
  tradedLast: (count: number) => string[]
  /** The hottest tokens, in the same way. */
  hottest: (count: number) => string[]
  /** The latest trades that a feed of this name brought in the runs before, oldest first. */
  recordedPlaces: (feed: string) => Promise<RecordedPlace[]>
  /** Until when the market has what the runs before brought, Unix ms; null: there were none. */
  recordedTo: (feed: string) => RecordedTo | null
}
/** Passes events on to a sink, and looks which tokens others may say something of. */
type Watch = (sink: EventSink) => EventSink
type FeedMarket = MarketSide & { sink: EventSink; holds: (mint: string) => boolean }

export interface Feeds {
  /** Those that run, for /health. */
  readonly feeds: readonly Feed[]
  /** What is pushed goes there. It is one of `feeds` where there is a key to push with. */
  readonly push: PushFeed
  /** Somebody reads a token or has submitted an analysis of it: what its sources say beside trades is asked for first. */
  want(mint: string): void
  /** Starts every feed of the configuration. This includes the feeds of Birdeye and of tokens' documents.
   *  Called once. Rejects where one cannot be started. */
  start(): Promise<void>
}

/** @param openReplay what a replay of a lake plays; null: there is none */
export function prepareFeeds(
  config: Config,
  sinkOf: SinkOf,
  clock: Clock,
  log: Log,
  marketSide: MarketSide,
  openReplay: (() => Promise<LakeReplayOptions>) | null = null,
): Feeds {
  const feeds: Feed[] = []
  let solana: SolanaFeed | null = null
  let pushed: EventSink = sinkOf(PUSH_FEED)
  const sink: EventSink = {
    apply: (event, receivedAtMs) => pushed.apply(event, receivedAtMs),
    prefetch: (mints) => pushed.prefetch?.(mints),
  }
  const push = new PushFeed(sink, sinkOf(PUSH_FEED), clock, log, marketSide.room)
  if (config.feedKey !== '') feeds.push(push)
  /** Before `push`, which is the last one. */
  const add = (feed: Feed): void => void feeds.splice(feeds.length - (config.feedKey === '' ? 0 : 1), 0, feed)
  return {
    feeds,
    push,
    want: (mint) => solana?.want(mint, 'asked'),
    start: async () => {
      const { birdeyeKey: apiKey, metadataGateway: gateway, solPrice, providers } = config
      const { birdeyeUrl: baseUrl, birdeyeRate: requestsPerSecond } = providers
      // Valid until a feed sends another. In a replay the market's time is that of the recorded data, so the clock is not used.
      const nowMs = followsRecordedTime(config) ? 0 : clock.now()
      if (solPrice.usd !== null)
        sinkOf(SETTING).apply({ type: 'solPrice', ts: nowMs, usd: solPrice.usd, source: SETTING }, nowMs)
      // Configurations with only simulated or past data cannot have this key: Birdeye does not know such tokens.
      const birdeye = apiKey !== '' ? new BirdeyeClient({ apiKey, baseUrl, requestsPerSecond }) : null
      const { heldSince } = marketSide
      const holds = (mint: string) => heldSince(mint) !== null
      const security = birdeye && new SecurityFeed({ birdeye, holds }, sinkOf(SECURITY_FEED), clock, log)
      // What tokens say of themselves elsewhere is fetched only where the operator has said so.
      const metadata =
        gateway === null ? null : new MetadataFeed({ gateway, heldSince }, sinkOf(METADATA_FEED), clock, log)
      const watch: Watch = (sink) =>
        [security, metadata].reduce((inner, feed) => feed?.watch(inner) ?? inner, sink)
      if (birdeye !== null && security !== null) {
        add(security)
        add(new SolPriceFeed({ birdeye }, sinkOf(SOL_PRICE_FEED), clock, log))
      }
      if (metadata !== null) add(metadata)
      if (openReplay !== null)
        add(new LakeReplay(await openReplay(), sinkOf(REPLAY_FEED), clock, log, marketSide.room))
      else
        for (const feed of config.feeds) {
          const market = { ...marketSide, holds, sink: sinkOf(feed) }
          if (feed === 'solana') {
            const onUri = (mint: string, uri: string) => metadata?.want(mint, uri)
            solana = await startConfiguredSolana(config, market, { watch, onUri }, clock, log)
            add(solana)
          } else add(await startFeed(feed, config, market, watch, clock, log))
        }
      pushed = watch(pushed)
      push.begin()
    },
  }
}

/** The state of each feed, for `/readyz`; `/health` has more details. */
export function feedStates(feeds: readonly Feed[]): Record<string, unknown>[] {
  return feeds.map((feed) => {
    const { feed: name, state, stateSinceMs, latestError } = feed.describe()
    return { feed: name, state, stateSinceMs, latestError }
  })
}

/** A sentence for answers of a market that still gets what it begins with; null: it has it. */
export function whyWarming(feeds: readonly Feed[]): string | null {
  const reasons = feeds.flatMap((feed) => feed.whyWarming?.() ?? [])
  return reasons.length === 0 ? null : `${reasons.join('; ')}.`
}

/** A sentence that says why feeds that have started have delivered nothing yet; null where all have. */
export function whyNotWarm(feeds: readonly Feed[]): string | null {
  const reasons = feeds.flatMap((feed) => feed.whyNotReady?.() ?? [])
  return reasons.length === 0 ? null : `${reasons.join('; ')}.`
}

async function startFeed(
  feed: Exclude<Config['feeds'][number], 'solana'>,
  config: Config,
  market: FeedMarket,
  watch: Watch,
  clock: Clock,
  log: Log,
): Promise<Feed> {
  const { sink } = market
  switch (feed) {
    case 'simulator':
      return await startConfiguredSimulator(config, market, clock, log)
    case 'pumpportal': {
      const { pumpportalKey, providers } = config
      const { pumpportalUrl: url } = providers
      const apiKey = pumpportalKey === '' ? null : pumpportalKey
      warnOfMissingSettings(config, log)
      // Agents will ask for tokens that are launched or traded: what others say of them is fetched in advance.
      const tradedBefore = apiKey === null ? [] : market.tradedLast(UPSTREAM_TRADE_KEYS_MAX).toReversed()
      return new PumpPortal({ url, apiKey, tradedBefore, random: Math.random }, watch(sink), clock, log)
    }
    case 'replay':
      return startConfiguredReplay(config, market, clock, log)
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
  if (birdeyeKey === '' && solPrice.usd === null)
    log.warn(
      { feed },
      'trades of PumpPortal are rejected until there is a price of SOL: set MINTLAKE_BIRDEYE_KEY or --sol-price, or push one',
    )
}

async function startConfiguredSimulator(
  { simulator }: Config,
  { sink, room, isRecorded, simulatedMarketPath }: FeedMarket,
  clock: Clock,
  log: Log,
): Promise<Feed> {
  const options = { ...simulator, isRecorded }
  const market = await openSimulatedMarket(simulatedMarketPath, options, clock.now(), log)
  return new SimulatorFeed(market, markSimulated(sink), clock, log, room)
}

/** Names the simulator as the source of its SOL prices. */
const markSimulated = (sink: EventSink): EventSink => ({
  apply: (event, receivedAtMs) =>
    sink.apply(event.type === 'solPrice' ? { ...event, source: 'simulator' } : event, receivedAtMs),
})

async function startConfiguredSolana(
  config: Config,
  { sink, holds, heldSince, hottest, room, recordedPlaces, recordedTo }: FeedMarket,
  { watch, onUri }: { watch: Watch; onUri: (mint: string, uri: string) => void },
  clock: Clock,
  log: Log,
): Promise<SolanaFeed> {
  // Imported here: only this feed needs what reads the chain.
  const { SolanaFeed } = await import('./solana/solana.ts')
  const { commitment, pools, healMs } = config.solana
  const source = await openChainSource(config, clock)
  // A tape begins with an empty market, whatever was recorded.
  const past = source.hasEnd
    ? {}
    : {
        recorded: await recordedPlaces('solana'),
        recordedTo: recordedTo('solana'),
        healMs,
      }
  const told = { holds, heldSince, hottest, room, onUri, random: Math.random }
  const options = { source, commitment, pools, ...told, ...past }
  return new SolanaFeed(options, watch(sink), log)
}

async function openChainSource({ solana, replay }: Config, clock: Clock): Promise<ChainSource> {
  if (solana.tapeFile !== '') {
    const { openTape } = await import('./solana/tape.ts')
    return openTape(solana.tapeFile, replay.speed, () => clock.monotonicMs())
  }
  const { LiveSource } = await import('./solana/source.ts')
  return new LiveSource(solana, clock)
}

async function startConfiguredReplay(
  config: Config,
  { sink, room }: FeedMarket,
  clock: Clock,
  log: Log,
): Promise<Feed> {
  // Imported here because it loads DuckDB, which only a replay needs in this process.
  const { openTradeFile } = await import('./replay/trade-file.ts')
  const { file, speed, symbol, time, simulated } = config.replay
  const { batches, rowsTotal } = await openTradeFile({
    path: file,
    mapping: config.replayMap,
    symbol: symbol === '' ? null : symbol,
  })
  const report = new ProgressReport('rows', log, barTerminal(config.logLevel))
  const options = { trades: batches, rowsTotal, speed, time, simulated, label: file, report }
  return new Replay(options, sink, clock, log, room)
}
