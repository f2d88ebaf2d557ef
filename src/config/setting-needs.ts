// In: a configuration, and which of its settings somebody gave. Out: the first of those that does nothing in it, with what it
// would need. A setting without an effect is a mistake that nobody would notice. Never knows where a setting was given.
import type { Config } from './config.ts'

interface Need {
  settings: readonly (keyof Config)[]
  /** Whether the settings do something; `value` is that of the one asked about. */
  holds(config: Config, value: unknown): boolean
  /** What they do not work without. */
  without: string
}

const NEEDS: readonly Need[] = [
  {
    settings: ['simulatorSeed', 'simulatorTokens', 'simulatorRate'],
    holds: ({ feeds }) => feeds.includes('simulator'),
    without: '--feed simulator',
  },
  {
    settings: ['replayFile', 'replayMap', 'replaySpeed', 'replayTime'],
    holds: ({ feeds }) => feeds.includes('replay'),
    without: '--feed replay',
  },
  {
    settings: ['pumpportalKey', 'pumpportalUrl'],
    holds: ({ feeds }) => feeds.includes('pumpportal'),
    without: '--feed pumpportal',
  },
  {
    settings: ['birdeyeKey'],
    holds: (config) => hasRealTokens(config),
    without: '--feed pumpportal or a key for feeds that push (MINTLAKE_FEED_KEY)',
  },
  {
    settings: ['birdeyeUrl', 'birdeyeRate'],
    holds: ({ birdeyeKey }) => birdeyeKey !== '',
    without: 'MINTLAKE_BIRDEYE_KEY',
  },
  {
    // The simulator tells its own price of SOL from its first event on.
    settings: ['solPrice'],
    holds: (config, value) =>
      value === null ||
      (!config.feeds.includes('simulator') && (hasRealTokens(config) || config.feeds.includes('replay'))),
    without:
      'a feed that tells no price of SOL itself: pumpportal, replay, or one that pushes (MINTLAKE_FEED_KEY)',
  },
  {
    settings: ['suspensions'],
    holds: ({ strikes }, value) => value === 0 || strikes > 0,
    without: '--strikes above 0: nobody is suspended',
  },
  {
    settings: ['retainTrainingDays', 'retainRejectionsDays', 'retainBarsDays', 'retainOutcomesDays'],
    holds: ({ lakeTidyMs }, value) => value === 0 || lakeTidyMs > 0,
    without: '--lake-tidy-ms above 0: that is when files are removed',
  },
]

/** Whether there are tokens that exist outside this server. */
const hasRealTokens = ({ feeds, feedKey }: Pick<Config, 'feeds' | 'feedKey'>): boolean =>
  feeds.includes('pumpportal') || feedKey !== ''

/** The first of the settings given that has no effect, and what it lacks; null where all have one. */
export function idleSetting(
  config: Config,
  given: readonly (keyof Config)[],
): { name: keyof Config; without: string } | null {
  for (const { settings, holds, without } of NEEDS) {
    const name = settings.find((setting) => given.includes(setting) && !holds(config, config[setting]))
    if (name !== undefined) return { name, without }
  }
  return null
}
