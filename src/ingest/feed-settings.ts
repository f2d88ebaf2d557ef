// What the settings of the feeds say together, for who starts none.
import type { Config } from '../config/settings.ts'
import type { Provenance } from '../store/types.ts'

/**
 * Where the market's data comes from, as stored in rows of the lake. Null where no data can come in.
 * @param isReplaySimulated whether the feed replay plays a market that was simulated
 */
export function provenanceOf({ feeds, feedKey }: Config, isReplaySimulated: boolean): Provenance | null {
  const sources = [...feeds, ...(feedKey === '' || feeds.length > 0 ? [] : ['push'])]
  // Events that are pushed into a simulated market count as simulated.
  return sources.length === 0
    ? null
    : { feed: sources.join(','), simulated: isReplaySimulated || feeds.includes('simulator') }
}

/** Whether market time is the recorded time of a replay or of a tape. Otherwise it follows the clock. */
export function followsRecordedTime(config: Config): boolean {
  if (config.solana.tapeFile !== '') return true
  return config.feeds.length === 1 && config.feeds[0] === 'replay' && config.replay.time === 'recorded'
}

/** The feed that makes up for what it missed while the server did not run, and how long that may be; null: none does. */
export function healingFeedOf({ feeds, solana: { healMs, tapeFile } }: Config) {
  const heals = feeds.includes('solana') && healMs > 0 && tapeFile === ''
  return heals ? { feed: 'solana', healMs } : null
}

/** Whether what the market is told was recorded before, whatever time it is moved to. */
export const isReplay = (config: Config): boolean =>
  config.feeds.includes('replay') || config.solana.tapeFile !== ''

/** Whether a recorded market is replayed from its lake. */
export const isReplayOfLake = ({ replay }: Config): boolean => replay.lake !== ''
