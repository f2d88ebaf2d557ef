// Finds settings that were given but have no effect, since nobody would notice such a mistake.
import { keysOf } from '../lib/record.ts'
import { isReaderSetting } from './reader-settings.ts'
import { isForEver } from './retention.ts'
import { type Config, isWriter, SETTINGS } from './settings.ts'

interface Need {
  settings: readonly (keyof Config)[]
  /** Whether the settings have an effect; `value` is that of the setting in question. */
  isMet(config: Config, value: unknown): boolean
  /** What is missing when they have none, to be read after "has no effect without". */
  missing: string
}

const NEEDS: readonly Need[] = [
  {
    settings: keysOf(SETTINGS).filter((name) => !isReaderSetting(name)),
    isMet: ({ role }) => role !== 'reader',
    missing: '--role writer or --role all: a reader stores nothing, takes no feed and judges no submission',
  },
  {
    settings: ['bus'],
    isMet: ({ role }, value) => role !== 'all' || (Array.isArray(value) && value.length === 0),
    missing: '--role writer or --role reader',
  },
  {
    settings: ['busName', 'busLogin', 'busTls', 'busStream', 'nodeUrl'],
    isMet: ({ bus }) => bus.length > 0,
    missing: '--bus',
  },
  {
    settings: ['busStream'],
    isMet: isWriter,
    missing: '--role writer, which keeps the events on the bus',
  },
  {
    settings: ['busPassword'],
    isMet: ({ busLogin }) => busLogin.user !== '',
    missing: '--bus-login user=NAME',
  },
  { settings: ['reader'], isMet: ({ role }) => role === 'reader', missing: '--role reader' },
  {
    settings: ['simulator'],
    isMet: ({ feeds }) => feeds.includes('simulator'),
    missing: '--feed simulator',
  },
  {
    settings: ['replayFile', 'replayLake', 'replaySpan', 'replayMap', 'replayAs'],
    isMet: ({ feeds }) => feeds.includes('replay'),
    missing: '--feed replay',
  },
  {
    settings: ['replaySpeed'],
    isMet: ({ feeds, solanaTape }) => feeds.includes('replay') || solanaTape !== '',
    missing: '--feed replay or --solana-tape',
  },
  {
    settings: [
      'solanaRpc',
      'solanaWs',
      'solanaCommitment',
      'solanaRps',
      'solanaHealMs',
      'solanaPools',
      'solanaTape',
    ],
    isMet: ({ feeds }) => feeds.includes('solana'),
    missing: '--feed solana',
  },
  {
    settings: ['solanaRpc', 'solanaWs', 'solanaRps', 'solanaHealMs'],
    isMet: ({ solanaTape }) => solanaTape === '',
    missing: 'leaving --solana-tape out: what is on a tape needs no endpoint',
  },
  {
    settings: ['replaySpan'],
    isMet: ({ replayLake }) => replayLake !== '',
    missing: '--replay-lake',
  },
  {
    settings: ['replayMap', 'replayAs'],
    isMet: ({ replayLake }) => replayLake === '',
    missing: '--replay-file',
  },
  {
    settings: ['tokensMax', 'newHours', 'solPrice', 'record', 'checkpointIntervalMs'],
    isMet: ({ replayLake }) => replayLake === '',
    missing:
      'another source than --replay-lake, whose market is recorded already and has the settings of then',
  },
  {
    // Whatever is pushed would change the market that is replayed.
    settings: ['feedKey'],
    isMet: ({ replayLake }, value) => value === '' || replayLake === '',
    missing: 'another source than --replay-lake, whose market nobody may push into',
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
    isMet: ({ feeds, birdeyeKey }) => feeds.includes('pumpportal') || birdeyeKey !== '',
    missing: '--feed pumpportal or MINTLAKE_BIRDEYE_KEY',
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
    settings: ['checkpointIntervalMs'],
    isMet: (config) => isWriter(config) || (config.record !== 'false' && !config.feeds.includes('simulator')),
    missing: 'recorded events of a real feed: a simulated market is new at each start',
  },
  {
    settings: ['retain'],
    isMet: ({ lakeTidy, retain }) => isForEver(retain) || lakeTidy.everyMs > 0,
    missing: 'every-ms of --lake-tidy above 0: that is when files are removed',
  },
]

/** Whether the market may hold tokens that exist on the chain. */
const hasRealTokens = ({ feeds, feedKey }: Pick<Config, 'feeds' | 'feedKey'>): boolean =>
  feeds.includes('pumpportal') || feeds.includes('solana') || feedKey !== ''

/** Whether what others say of its tokens now is true of the market's time: a tape has its own. */
const isOfNow = (config: Config): boolean => hasRealTokens(config) && config.solanaTape === ''

/** The first given setting that has no effect, and what it needs; null when all have an effect. */
export function settingWithoutEffect(
  config: Config,
  isGiven: (name: keyof Config) => boolean,
): { name: keyof Config; missing: string } | null {
  for (const { settings, isMet, missing } of NEEDS) {
    const name = settings.find((setting) => isGiven(setting) && !isMet(config, config[setting]))
    if (name !== undefined) return { name, missing }
  }
  return null
}
