import { z } from 'zod'
import { CHECKPOINT_INTERVAL_MS_DEFAULT } from '../checkpoint/limits.ts'
import { BUS_SETTINGS } from '../cluster/settings.ts'
import {
  PROVIDER_REQUESTS_PER_SECOND_MAX,
  SIMULATED_TRADES_REPEATED_MAX,
  SIMULATOR_DEFAULTS,
  SIMULATOR_RATE_MAX,
  SIMULATOR_TOKENS_MAX,
} from '../ingest/limits.ts'
import { FEEDS, feedList, metadataGateway, REPLAY, REPLAY_MAP, SOLANA_SETTINGS } from '../ingest/settings.ts'
import { SOL_PRICE_AGE_MS_MAX } from '../ingest/solana/limits.ts'
import { LOG_LEVELS } from '../lib/log.ts'
import { keysOf } from '../lib/record.ts'
import { pairs, part } from '../lib/settings/pairs.ts'
import {
  address,
  oneOf,
  orNull,
  positiveNumber,
  publicUrl,
  type Setting,
  type SettingGroup,
  secret,
  setting,
  type ValuesOf,
  wholeNumber,
} from '../lib/settings/setting.ts'
import { DAY_MS, HOUR_MS } from '../lib/time.ts'
import { NEW_WINDOW_MS_DEFAULT, SOL_PRICE_MAX_AGE_MS_DEFAULT, TOKENS_MAX_DEFAULT } from '../market/limits.ts'
import { STORE_SETTINGS } from '../store/settings.ts'
import { LABELS_DELAY_MS, SUBMIT_LIMITS } from '../submissions/limits.ts'
import { host, hostList, networkList } from './hosts.ts'

/** Every setting of the server. A test holds the README's table equal to this. */
export const SETTINGS = {
  port: setting('port', 8080, wholeNumber(0, 65_535), 'Port to listen on; 0 picks a free one'),
  host: setting('host', '127.0.0.1', host, 'Address to listen on'),
  dataDir: setting(
    'data-dir',
    './data',
    z.string().min(1, 'must be a folder'),
    'Folder of the database and the lake',
  ),
  feeds: setting(
    'feed',
    'simulator',
    feedList,
    `Sources of market data: ${FEEDS.join(', ')}; several, comma-separated`,
  ),
  feedKey: secret('FEED_KEY', 'Key of feeds that push; without it push ingest is off'),
  adminKey: secret('ADMIN_KEY', 'Key of the operator; without it the admin endpoints are off'),
  readLimitAnonymous: setting(
    'read-limit-anonymous',
    30,
    wholeNumber(0, 1e9),
    'Reads per minute of an address without a key; 0: no limit',
  ),
  readLimitKeyed: setting(
    'read-limit-keyed',
    300,
    wholeNumber(0, 1e9),
    'Reads per minute of a key; 0: no limit',
  ),
  registerLimit: setting(
    'register-limit',
    20,
    wholeNumber(0, 1e9),
    'Registrations per hour of an address; 0: no limit',
  ),
  registration: setting(
    'registration',
    'open',
    oneOf(['open', 'closed']),
    'Whether agents may register themselves: open or closed',
  ),
  submitLimits: pairs(
    'submit-limits',
    {
      rate: part(SUBMIT_LIMITS.rate, wholeNumber(0, 1e6)),
      cooldownMs: part(SUBMIT_LIMITS.cooldownMs, wholeNumber(0, DAY_MS)),
      strikes: part(SUBMIT_LIMITS.strikes, wholeNumber(0, 1_000)),
      suspensions: part(SUBMIT_LIMITS.suspensions, wholeNumber(0, 1_000)),
    },
    'What an agent may submit: rate: submissions per minute; cooldown-ms: least time between two on one mint; strikes: rejections within 24 hours that suspend it; suspensions: of them within 30 days that ban it for good. 0 switches each off',
    {
      flaw: ({ strikes, suspensions }) =>
        strikes > 0 || suspensions === 0 || suspensions === SUBMIT_LIMITS.suspensions
          ? null
          : 'must have strikes above 0 for suspensions: nobody is suspended else',
    },
  ),
  labelsDelayMs: setting(
    'labels-delay-ms',
    LABELS_DELAY_MS,
    wholeNumber(0, DAY_MS),
    'How long other agents do not see the labels of a submission (sentiment, score, summary, quant), ms; 0: they see them at once',
  ),
  pageAgeMs: setting(
    'page-age-ms',
    50,
    wholeNumber(0, 1_000),
    'How long the answer to a read may be reused, ms; 0: only while it is the newest',
  ),
  drainNoticeMs: setting(
    'drain-notice-ms',
    500,
    wholeNumber(0, 10_000),
    'How long a server that is shutting down says so by /readyz, and still answers, before it refuses requests, ms',
  ),
  store: STORE_SETTINGS,
  record: pairs(
    'record',
    {
      events: part('auto', oneOf(['auto', 'true', 'false'])),
      checkpointMs: part(CHECKPOINT_INTERVAL_MS_DEFAULT, wholeNumber(0, DAY_MS)),
    },
    'What a start goes on with: events, or a word alone: whether those of the market are recorded, for the lake too; auto: those of real feeds are, simulated ones are not; checkpoint-ms: how often another process writes the market down, which takes the memory of a second one meanwhile, 0: at shutdown only, and a kill begins with an empty market',
    { unnamed: 'events' },
  ),
  tokensMax: setting(
    'tokens-max',
    TOKENS_MAX_DEFAULT,
    wholeNumber(1, 2_000_000),
    'Tokens held at once; one more evicts the least recently active one',
  ),
  newHours: setting(
    'new-hours',
    NEW_WINDOW_MS_DEFAULT / HOUR_MS,
    wholeNumber(1, 24 * 365),
    'How long a token counts as new, hours',
  ),
  trustedProxies: setting(
    'trusted-proxies',
    '',
    networkList,
    'Addresses, or networks as address/bits, whose X-Forwarded-For is believed, comma-separated',
  ),
  publicUrl: setting(
    'public-url',
    '',
    publicUrl,
    'Address at which clients reach this server, for links in documents; without it the address of each request',
  ),
  imageHosts: setting(
    'image-hosts',
    '',
    hostList,
    'Hosts whose images of tokens the console shows, over https, comma-separated; they learn the addresses of its visitors',
  ),
  role: setting(
    'role',
    'all',
    oneOf(['all', 'writer', 'standby', 'reader']),
    'all: one process; writer: the one that takes events and submissions, for readers on a bus; standby: a writer that waits until the one before it has ended, then goes on with its data folder; reader: a replica that answers reads',
  ),
  bus: BUS_SETTINGS,
  simulator: pairs(
    'simulator',
    {
      seed: part('', orNull(wholeNumber(0, Number.MAX_SAFE_INTEGER))),
      tokens: part(SIMULATOR_DEFAULTS.tokens, wholeNumber(1, SIMULATOR_TOKENS_MAX)),
      tradesPerSecond: part(SIMULATOR_DEFAULTS.tradesPerSecond, wholeNumber(1, SIMULATOR_RATE_MAX)),
    },
    `The simulated market: its seed (that of the market which the data folder had, or 1), which makes the same market again in an empty folder: where one cannot go on (after ${SIMULATED_TRADES_REPEATED_MAX} trades, recorded, or with other figures than before) the next one has other tokens; tokens at the start; trades-per-second, also of the latest part of the history that it begins with, which reaches a day back`,
  ),
  replay: REPLAY,
  replayMap: REPLAY_MAP,
  pumpportalKey: secret(
    'PUMPPORTAL_KEY',
    'API key of PumpPortal: without it launches and migrations come, but no trades',
  ),
  birdeyeKey: secret(
    'BIRDEYE_KEY',
    'API key of Birdeye, a provider of enriched fields and of the price of SOL; without it the fields come from the chain, from own trades and from patches',
  ),
  providers: pairs(
    'providers',
    {
      pumpportalUrl: part('wss://pumpportal.fun/api/data', address('ws', 'wss')),
      birdeyeUrl: part('https://public-api.birdeye.so', address('http', 'https')),
      birdeyeRate: part(1, wholeNumber(1, PROVIDER_REQUESTS_PER_SECOND_MAX)),
    },
    'Where PumpPortal and Birdeye are; birdeye-rate: requests per second that Birdeye’s plan allows: each token takes two, and the most recently traded tokens come first',
  ),
  solana: SOLANA_SETTINGS,
  metadataGateway: setting(
    'fetch-metadata',
    'false',
    metadataGateway,
    'true: fetch the document that a new token names, for its description, picture and links, from whatever public https address it is at, and from IPFS through https://ipfs.io; or the address of another public gateway of IPFS, without a key: everybody sees it',
  ),
  solPrice: pairs(
    'sol-price',
    { usd: part('', orNull(positiveNumber)), maxAgeMs: part('', orNull(wholeNumber(0, 30 * DAY_MS))) },
    `Price of one SOL: usd, or a number alone: until a feed sends one, of any age (PumpPortal sends none); max-age-ms: how old that of a feed may be, trades without a price in USD are refused beyond that, 0: any age; without it ${SOL_PRICE_MAX_AGE_MS_DEFAULT}, with the feed solana ${SOL_PRICE_AGE_MS_MAX}`,
    { unnamed: 'usd' },
  ),
  logLevel: setting(
    'log-level',
    'info',
    oneOf(LOG_LEVELS),
    'What the log has: debug, info, warn or error, and what is graver',
  ),
} as const

type Tree = typeof SETTINGS

/** What the settings say; those of one group are an object. */
export type Config = Readonly<{
  [Name in keyof Tree]: Tree[Name] extends Setting
    ? z.infer<Tree[Name]['schema']>
    : Tree[Name] extends SettingGroup
      ? ValuesOf<Tree[Name]>
      : never
}>

/** Where a setting is, such as `bus.name`. */
export type SettingPath = {
  [Name in keyof Tree]: Tree[Name] extends Setting ? Name : `${Name}.${keyof Tree[Name] & string}`
}[keyof Tree]

const isSetting = (node: Setting | SettingGroup): node is Setting => typeof node.env === 'string'

// Object.fromEntries forgets the names, which are all that SettingPath says.
export const SETTINGS_BY_PATH = Object.fromEntries(
  Object.entries<Setting | SettingGroup>(SETTINGS).flatMap(([name, node]) =>
    isSetting(node)
      ? [[name, node]]
      : Object.entries(node).map(([inner, each]) => [`${name}.${inner}`, each]),
  ),
) as Readonly<Record<SettingPath, Setting>>

/** A setting, or all of a group. */
export type SettingName = SettingPath | keyof Tree

/** The settings of these names, in their order. */
export const pathsOf = (names: readonly SettingName[]): SettingPath[] =>
  names.flatMap((name) =>
    keysOf(SETTINGS_BY_PATH).filter((path) => path === name || path.startsWith(`${name}.`)),
  )

/** The value of a setting. */
export function valueAt(config: Config, path: SettingPath): unknown {
  const [name = '', inner] = path.split('.')
  const value: unknown = Reflect.get(config, name)
  return inner === undefined ? value : Reflect.get(Object(value), inner)
}

/** Whether it takes events and submissions for readers, at once or when its turn comes. */
export const isWriter = ({ role }: Pick<Config, 'role'>): boolean => role === 'writer' || role === 'standby'

/** How old the price of SOL may be; 0: any age. The chain tells it every minute: one that is older for it is stale. */
export const solPriceMaxAgeMs = ({ feeds, solPrice }: Config): number =>
  solPrice.maxAgeMs ?? (feeds.includes('solana') ? SOL_PRICE_AGE_MS_MAX : SOL_PRICE_MAX_AGE_MS_DEFAULT)
