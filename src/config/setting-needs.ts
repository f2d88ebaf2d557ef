// Finds settings that were given but have no effect, since nobody would notice such a mistake.
import { CHECKPOINT_INTERVAL_MS_DEFAULT } from '../checkpoint/limits.ts'
import { REPLAY_DEFAULTS } from '../ingest/limits.ts'
import { keysOf } from '../lib/record.ts'
import { isForEver } from '../store/retention-setting.ts'
import { isReaderSetting } from './reader-settings.ts'
import {
  type Config,
  isWriter,
  pathsOf,
  SETTINGS,
  SETTINGS_BY_PATH,
  type SettingName,
  type SettingPath,
  valueAt,
} from './settings.ts'

interface Need {
  /** Of a group all are meant. */
  settings: readonly SettingName[]
  /** Whether the settings have an effect; `value` is that of the setting in question. */
  isMet(config: Config, value: unknown): boolean
  /** What is missing when they have none, to be read after "has no effect without". */
  missing: string
}

/** Where providers are unless told. */
const PROVIDERS = SETTINGS.providers.schema.parse(SETTINGS.providers.defaultText)

const NEEDS: readonly Need[] = [
  {
    settings: keysOf(SETTINGS_BY_PATH).filter((name) => !isReaderSetting(name)),
    isMet: ({ role }) => role !== 'reader',
    missing: '--role writer or --role all: a reader stores nothing, takes no feed and judges no submission',
  },
  {
    settings: ['bus.servers'],
    isMet: ({ role }, value) => role !== 'all' || (Array.isArray(value) && value.length === 0),
    missing: '--role writer or --role reader',
  },
  {
    settings: ['bus.name', 'bus.login', 'bus.stream', 'bus.nodeUrl'],
    isMet: ({ bus }) => bus.servers.length > 0,
    missing: '--bus',
  },
  {
    settings: ['bus.stream'],
    isMet: isWriter,
    missing: '--role writer, which keeps the events on the bus',
  },
  {
    settings: ['bus.password'],
    isMet: ({ bus }) => bus.login.user !== '',
    missing: '--bus-login user=NAME',
  },
  { settings: ['bus.reader'], isMet: ({ role }) => role === 'reader', missing: '--role reader' },
  {
    settings: ['simulator'],
    isMet: ({ feeds }) => feeds.includes('simulator'),
    missing: '--feed simulator',
  },
  {
    settings: ['replay'],
    isMet: ({ feeds, replay, solana }) =>
      feeds.includes('replay') || (solana.tapeFile !== '' && isSpeedAlone(replay)),
    missing: '--feed replay, or speed alone with --solana-tape',
  },
  {
    settings: ['replayMap'],
    isMet: ({ feeds }) => feeds.includes('replay'),
    missing: '--feed replay',
  },
  {
    settings: ['solana'],
    isMet: ({ feeds }) => feeds.includes('solana'),
    missing: '--feed solana',
  },
  {
    settings: ['solana.rpcUrls', 'solana.socketUrls', 'solana.requestsPerSecond', 'solana.healMs'],
    isMet: ({ solana }) => solana.tapeFile === '',
    missing: 'leaving --solana-tape out: what is on a tape needs no endpoint',
  },
  {
    settings: ['replayMap'],
    isMet: ({ replay }) => replay.lake === '',
    missing: '--replay file=FILE',
  },
  {
    settings: ['tokensMax', 'newHours', 'solPrice', 'record'],
    isMet: ({ replay }) => replay.lake === '',
    missing:
      'another source than --replay lake=FOLDER, whose market is recorded already and has the settings of then',
  },
  {
    // Whatever is pushed would change the market that is replayed.
    settings: ['feedKey'],
    isMet: ({ replay }, value) => value === '' || replay.lake === '',
    missing: 'another source than --replay lake=FOLDER, whose market nobody may push into',
  },
  {
    settings: ['pumpportalKey'],
    isMet: ({ feeds }) => feeds.includes('pumpportal'),
    missing: '--feed pumpportal',
  },
  {
    settings: ['birdeyeKey', 'metadataGateway'],
    isMet: (config, value) => value === null || isOfNow(config),
    missing:
      '--feed pumpportal, --feed solana with endpoints, or a key for feeds that push (MINTLAKE_FEED_KEY)',
  },
  {
    settings: ['providers'],
    isMet: ({ feeds, providers }) =>
      feeds.includes('pumpportal') || providers.pumpportalUrl === PROVIDERS.pumpportalUrl,
    missing: '--feed pumpportal, which pumpportal-url is for',
  },
  {
    settings: ['providers'],
    isMet: ({ birdeyeKey, providers: { birdeyeUrl, birdeyeRate } }) =>
      birdeyeKey !== '' || (birdeyeUrl === PROVIDERS.birdeyeUrl && birdeyeRate === PROVIDERS.birdeyeRate),
    missing: 'MINTLAKE_BIRDEYE_KEY, which birdeye-url and birdeye-rate are for',
  },
  {
    // The simulator sends its own price of SOL with its first event.
    settings: ['solPrice'],
    isMet: (config) =>
      config.solPrice.usd === null ||
      (!config.feeds.includes('simulator') && (hasRealTokens(config) || config.feeds.includes('replay'))),
    missing:
      'a feed that sends no price of SOL itself: pumpportal, replay, or one that pushes (MINTLAKE_FEED_KEY)',
  },
  {
    settings: ['record'],
    isMet: (config) =>
      config.record.checkpointMs === CHECKPOINT_INTERVAL_MS_DEFAULT ||
      isWriter(config) ||
      (config.record.events !== 'false' && !config.feeds.includes('simulator')),
    missing:
      'recorded events of a real feed, which checkpoint-ms is for: a simulated market is made again, or another one, at each start',
  },
  {
    settings: ['store.retain'],
    isMet: ({ store }) => isForEver(store.retain) || store.lakeTidy.everyMs > 0,
    missing: 'every-ms of --lake-tidy above 0: that is when files are removed',
  },
]

/** Whether the market may hold tokens that exist on the chain. */
const hasRealTokens = ({ feeds, feedKey }: Pick<Config, 'feeds' | 'feedKey'>): boolean =>
  feeds.includes('pumpportal') || feeds.includes('solana') || feedKey !== ''

/** Whether nothing of what is replayed but how fast was told: a tape has all else itself. */
const isSpeedAlone = ({ file, symbol, time, simulated, lake }: Config['replay']): boolean =>
  `${file}${lake}${symbol}` === '' && time === REPLAY_DEFAULTS.time && !simulated

/** Whether what others say of its tokens now is true of the market's time: a tape has its own. */
const isOfNow = (config: Config): boolean => hasRealTokens(config) && config.solana.tapeFile === ''

/** The first given setting that has no effect, and what it needs; null when all have an effect. */
export function settingWithoutEffect(
  config: Config,
  isGiven: (path: SettingPath) => boolean,
): { path: SettingPath; missing: string } | null {
  for (const { settings, isMet, missing } of NEEDS) {
    const path = pathsOf(settings).find((each) => isGiven(each) && !isMet(config, valueAt(config, each)))
    if (path !== undefined) return { path, missing }
  }
  return null
}
