// Whether a market is recorded, and whether a start goes on with it.

import type { Config } from '../config/settings.ts'
import { followsRecordedTime } from '../ingest/feed-settings.ts'
import type { Foundation } from './foundation.ts'
import type { MarketPublisher } from './market-publisher.ts'

export interface RecordingDeps extends Pick<Foundation, 'log' | 'provenance' | 'replayed'> {
  config: Config
  /** Brings the recorded market to other processes; null: there are none. */
  publisher: MarketPublisher | null
}

/** How this configuration's market is recorded. */
export interface Recording {
  isOn: boolean
  /** A start goes on with the market of the run before. */
  isRestorable: boolean
  /** Checkpoints are made: for the next start, or for readers elsewhere. */
  hasCheckpoints: boolean
}

export function recordingOf({ config, provenance, publisher, replayed }: RecordingDeps): Recording {
  const isPublished = publisher !== null
  // Where no data can come in there is nothing to record, and what is replayed is recorded already.
  const isOff = provenance === null || replayed !== null || config.record.events === 'false'
  if (isOff && !isPublished) return { isOn: false, isRestorable: false, hasCheckpoints: false }
  const isSimulated = provenance?.simulated === true
  const isOn = !isSimulated || config.record.events === 'true' || isPublished
  const isRestorable = isOn && !isSimulated && !followsRecordedTime(config)
  return { isOn, isRestorable, hasCheckpoints: isRestorable || isPublished }
}

export function explainRecording(
  { config, log, provenance, replayed }: RecordingDeps,
  recording: Recording,
): void {
  const { isOn, isRestorable } = recording
  if (provenance === null || isRestorable) return
  if (config.record.events === 'false')
    log.info({}, 'market events are not recorded: each start begins with an empty market')
  else if (replayed !== null)
    log.info({}, 'market events are not recorded: the lake that is replayed has them')
  else if (!isOn) {
    log.info(
      {},
      'a simulated market is not recorded unless --record true asks for it: each start makes it again',
    )
    if (config.feedKey !== '')
      log.warn(
        {},
        'what is pushed to a simulated market is gone with the next start, as nothing of it is recorded; with --feed none it is kept',
      )
  }
  if (!isOn) return
  const kind = followsRecordedTime(config) ? 'a replay in recorded time' : 'a simulated market'
  log.info({}, `market events are recorded; ${kind} begins anew with each start, with an empty market`)
}
