// The market of a run before it begins: what the runs before have recorded, and the journal behind it.

import { findRecorded, lastRecordedEvent, type Recorded } from '../checkpoint/find-base.ts'
import { type Restored, type RestoreOptions, restoreMarket } from '../checkpoint/restoration.ts'
import { solPriceMaxAgeMs } from '../config/settings.ts'
import type { Pace } from '../ingest/replay/pace.ts'
import { type EventJournal, openJournal } from '../journal/journal.ts'
import { FORMAT } from '../journal/segments/format.ts'
import type { LostInterval } from '../journal/types.ts'
import { errorMessage } from '../lib/error-text.ts'
import type { Log } from '../lib/log.ts'
import type { NumberRange } from '../lib/segments/types.ts'
import type { SteadyClock } from '../lib/steady-clock.ts'
import { HOUR_MS } from '../lib/time.ts'
import { MINTLAKE_VERSION } from '../lib/version.ts'
import { Market } from '../market/market.ts'
import { settingsOf } from '../market/market-parts.ts'
import { prepareRecorder } from '../recording/market-recorder.ts'
import type { EngineSettings, RunHeader } from '../schema/event.ts'
import type { Positions } from '../store/data-folder/positions.ts'
import { checkpointFolder, journalFolder, journalMarkPath } from '../store/paths.ts'
import type { Store } from '../store/store.ts'
import { explainRecording, type Recording, type RecordingDeps, recordingOf } from './recording-mode.ts'
import type { Tuning } from './tuning.ts'

export interface RunningMarketDeps extends RecordingDeps {
  clock: SteadyClock
  store: Store
  positions: Positions
  tuning?: Tuning
  /** Who takes a market on that waits. */
  steps?: Pace | undefined
}

/** The market of a run that has not begun. */
export type OpenedMarket = Awaited<ReturnType<typeof openMarket>>

/**
 * Restores the market of the run before, where this configuration goes on with it, and opens the journal.
 * @param onLost told of market time in which events could not be recorded
 */
export async function openMarket(deps: RunningMarketDeps, onLost: (interval: LostInterval) => void) {
  const { clock, config, log, replayed, store, tuning = {} } = deps
  const { changeLogEntriesMax, poolBarsMin } = tuning
  const recording = recordingOf(deps)
  explainRecording(deps, recording)
  const { callbacks, recorderOf } = prepareRecorder(store, log)
  const settings = settingsOf({
    tokensMax: config.tokensMax,
    newWindowMs: config.newHours * HOUR_MS,
    solPriceMaxAgeMs: solPriceMaxAgeMs(config),
  })
  const restoreOptions: RestoreOptions = {
    journalFolder: journalFolder(config.dataDir),
    journalMarkPath: journalMarkPath(config.dataDir),
    checkpointFolder: checkpointFolder(config.dataDir),
    folderId: store.folderId,
    marketOptions: { ...settings, ...callbacks, changeLogEntriesMax, poolBarsMin },
    settings,
    log,
  }
  const { eventNo: lakeEventNo } = store.events.progress
  if (deps.provenance === null && replayed === null && lakeEventNo > 0)
    log.warn(
      {},
      'the market that was recorded here is not shown, as nothing can come in: set MINTLAKE_FEED_KEY',
    )
  const found = recording.isOn
    ? await findQuietly(restoreOptions, lakeEventNo)
    : { recorded: null, trouble: null }
  /** Why this market began empty though there was one before; null: it did not. */
  let emptied = null as string | null
  const restored = await restore(recording, restoreOptions, found.recorded, (reason) => {
    emptied = reason
  })
  const newOptions = { ...restoreOptions.marketOptions, firstSeq: deps.positions.first }
  const market = restored?.market ?? (await replayed?.createMarket(newOptions)) ?? new Market(newOptions)
  const header = headerOf(deps, restored, settings)
  const opened = await openJournalQuietly(found, () =>
    openJournal({
      folder: restoreOptions.journalFolder,
      folderId: store.folderId,
      clock,
      log,
      settings,
      runId: header.runId,
      simulated: header.simulated,
      markPath: restoreOptions.journalMarkPath,
      originEventNo: restored?.base.originEventNo ?? null,
      afterEventNo: found.recorded === null ? lakeEventNo : lastRecordedEvent(found.recorded),
      lakeEventNo: () => store.events.progress.eventNo,
      mayRecord: (unflushedBytes, usesReserve) => store.mayRecord(unflushedBytes, usesReserve),
      waitingBytesMax: deps.tuning?.journalWaitingBytesMax,
      onBatch: (batch) => deps.publisher?.onBatch(batch),
      onLost,
    }),
  )
  const { recorded } = found
  // The newest events of the runs before, where they were deleted or cut off; null: they are there.
  const lostEnd = recorded && lostEndOf(recorded, log)
  const recorder = recorderOf(market)
  return {
    recording,
    market,
    recorder,
    ...opened,
    recorded,
    restored,
    restoreOptions,
    header,
    lostEnd,
    emptied,
  }
}

interface Found {
  recorded: Recorded | null
  trouble: string | null
}

/** Tells of events that were recorded and are neither in the lake nor in the journal, at whose end they were. */
function lostEndOf({ end, knownEventNo }: Recorded, log: Log): NumberRange | null {
  const lost = { from: Math.max(end.heldEventNo, knownEventNo) + 1, to: end.lastEventNo }
  if (lost.from > lost.to) return null
  log.error(lost, 'the end of the journal is missing: these recorded events are lost')
  return lost
}

const notRecorded = (error: unknown): string => `market events are not recorded: ${errorMessage(error)}`

/** A folder that cannot be read must not keep the server from starting. */
async function findQuietly(options: RestoreOptions, lakeEventNo: number): Promise<Found> {
  try {
    return { recorded: await findRecorded(options, lakeEventNo), trouble: null }
  } catch (error) {
    options.log.error(
      { error: errorMessage(error) },
      'what was recorded cannot be read: the market begins empty',
    )
    return { recorded: null, trouble: notRecorded(error) }
  }
}

async function openJournalQuietly(
  { recorded, trouble }: Found,
  open: () => Promise<EventJournal>,
): Promise<{ journal: EventJournal | null; trouble: string | null }> {
  if (recorded === null) return { journal: null, trouble }
  try {
    return { journal: await open(), trouble }
  } catch (error) {
    return { journal: null, trouble: notRecorded(error) }
  }
}

async function restore(
  recording: Recording,
  options: RestoreOptions,
  recorded: Recorded | null,
  onEmpty: (reason: string) => void,
): Promise<Restored | null> {
  if (recorded === null || !recording.isRestorable) return null
  if (recorded.latest?.simulated === true) {
    options.log.warn({}, 'the market that was recorded last is simulated: the market begins empty')
    return null
  }
  return restoreMarket(options, recorded, onEmpty)
}

function headerOf(
  { clock, provenance, store }: RunningMarketDeps,
  restored: Restored | null,
  settings: EngineSettings,
): RunHeader {
  return {
    runId: store.runId,
    version: MINTLAKE_VERSION,
    formatVersion: FORMAT,
    node: process.version,
    settings,
    feeds: provenance?.feed.split(',') ?? [],
    simulated: provenance?.simulated ?? false,
    checkpointEventNo: restored?.base.afterEventNo ?? null,
    startedAtMs: clock.now(),
  }
}
