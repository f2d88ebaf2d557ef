// What a server is built on: its clocks and its store. Opened first, since the lake process takes as long to open the lake as this process
// to load the modules of the rest.
import type { ChildProcess } from 'node:child_process'
import type { Config } from '../config/settings.ts'
import { isReplayOfLake, provenanceOf } from '../ingest/feed-settings.ts'
import type { Pace } from '../ingest/replay/pace.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { createLog, type Log } from '../lib/log.ts'
import { ClockFile, readKnownTime } from '../store/data-folder/clock-file.ts'
import type { FolderLock } from '../store/data-folder/folder-lock.ts'
import { openStore, type Store } from '../store/store.ts'
import type { Provenance } from '../store/types.ts'
import { type Clocks, clocksOf, judgeClock } from './clocks.ts'
import type { ReplayedLake } from './replayed-lake.ts'

export interface FoundationOptions {
  clock?: Clock
  log?: Log
  /** A lake process that waits for its options; see store/process/fork.ts. */
  lakeProcess?: ChildProcess | undefined
  /** Of the data folder, where this process has it already. */
  lock?: FolderLock | undefined
  /** Of a replayed lake: who says when its events are due. Every rule on time then follows market time, which waits with the events. */
  steps?: Pace
}

export interface Foundation extends Clocks {
  log: Log
  /** The lake that is replayed; null: none is. */
  replayed: ReplayedLake | null
  /** Where the data of the market comes from; null: none can come in. */
  provenance: Provenance | null
  store: Store
  clockFile: ClockFile
}

/** Whoever calls it closes the store and the clock file. Rejects, with nothing left open, where the folder cannot be used. */
export async function layFoundation(config: Config, options: FoundationOptions): Promise<Foundation> {
  const log = options.log ?? createLog(config.logLevel)
  const clock = judgeClock(options.clock ?? systemClock, log)
  const known = await readKnownTime(config.dataDir, log)
  if (known !== null) clock.goOnFrom(known)
  const replayed = isReplayOfLake(config)
    ? await (await import('./replayed-lake.ts')).ReplayedLake.open(config, log)
    : null
  const provenance = provenanceOf(config, replayed?.plan.simulated ?? config.replay.simulated)
  const clocks = clocksOf(clock, options.steps && replayed ? replayed.plan.fromMs : null)
  const store = await openStore({
    ...config.store,
    dataDir: config.dataDir,
    cooldownMs: config.submitLimits.cooldownMs,
    labelsDelayMs: config.labelsDelayMs,
    provenance,
    lakeProcess: options.lakeProcess,
    lock: options.lock,
    clock: clocks.storeClock,
    log,
  })
  if (known === null) clock.notBefore(store.lastKnownAtMs)
  return { ...clocks, log, replayed, provenance, store, clockFile: new ClockFile(config.dataDir, clock, log) }
}
