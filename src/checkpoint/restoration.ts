// Restores the market of the runs before: from a checkpoint, and then from the events recorded behind it, which are applied in slices
// while the server answers already.

import { isDeepStrictEqual } from 'node:util'
import { readJournal } from '../journal/reader.ts'
import type { JournalLog } from '../journal/types.ts'
import { CheckpointError } from '../lib/sections/checkpoint-error.ts'
import { nextTurn } from '../lib/wait.ts'
import type { Market, MarketOptions } from '../market/market.ts'
import type { EngineSettings } from '../schema/event.ts'
import { EventReplayer } from './event-replayer.ts'
import { type Base, findBase, type Recorded, type StartFolders } from './find-base.ts'
import { quietOptions, underSettings, withSettings } from './market-options.ts'

export interface RestoreOptions extends StartFolders {
  /** Of this run: the settings of the engine, and what it calls. */
  marketOptions: EngineSettings & MarketOptions
  settings: EngineSettings
  log: JournalLog
}

export interface Restored {
  market: Market
  base: Base
  /** Checkpoints that could not be used, by event number. */
  unusable: number[]
  /** Of events behind the base that were applied already; null: they are still to be applied, by `redo`. */
  redone: Redone | null
}

/** Whether all that is to be applied again was applied under these settings the first time. */
function isUnderSettings({ end }: Recorded, base: Base, settings: EngineSettings): boolean {
  const behind = end.segments.filter(({ cutoffNo }) => cutoffNo > base.afterEventNo)
  return [base.settings, ...behind.flatMap(({ header }) => header?.settings ?? [])].every((each) =>
    isDeepStrictEqual(each, settings),
  )
}

const NOT_WHOLE = 'neither a checkpoint nor the journal has the last market whole'

/** Whether nothing was recorded yet. */
const isNew = ({ latest, checkpoints, knownEventNo }: Recorded): boolean =>
  latest === null && checkpoints.length === 0 && knownEventNo === 0

/**
 * Restores the newest checkpoint that can be. @returns null where the market has to begin empty: the log says why.
 * @param onEmpty told why, where there was a market
 */
export async function restoreMarket(
  options: RestoreOptions,
  recorded: Recorded,
  onEmpty: (reason: string) => void = () => {},
): Promise<Restored | null> {
  const { log, marketOptions, settings } = options
  const unusable: number[] = []
  const found = findBase(recorded, {
    onUnusable: ({ path, eventNo, reason }) => {
      unusable.push(eventNo)
      log.error({ path, reason }, 'a checkpoint cannot be used')
    },
    optionsOf: (base) =>
      isUnderSettings(recorded, base, settings) ? marketOptions : quietOptions(base.settings),
  })
  if (found === null) {
    if (isNew(recorded)) return null
    log.warn({}, `${NOT_WHOLE}: the market begins empty`)
    onEmpty(NOT_WHOLE)
    return null
  }
  const { base, market: restored } = found
  const isUpToDate = recorded.end.lastEventNo <= base.afterEventNo
  if (isUnderSettings(recorded, base, settings)) {
    const redone = isUpToDate ? { market: restored, events: 0, lost: 0, tookMs: 0 } : null
    return { market: restored, base, unusable, redone }
  }
  // Events have to be applied under the settings of then, and what results goes on under those of now.
  try {
    const redone = await redo(options, recorded, restored, base)
    return { market: withSettings(redone.market, marketOptions), base, unusable, redone }
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error
    log.error({ reason: error.message }, 'the market cannot go on under these settings: it begins empty')
    onEmpty(`${error.message} See --tokens-max`)
    return null
  }
}

export interface Redone {
  market: Market
  /** Events applied, and those that the journal has lost. */
  events: number
  lost: number
  tookMs: number
}

/**
 * Applies the events behind the base in slices, between which the event loop has a turn. They are not recorded again.
 * @param isCancelled asked between slices: then it ends early, and the market must not be used
 */
export async function redo(
  { folderId, journalFolder, log }: Pick<RestoreOptions, 'folderId' | 'journalFolder' | 'log'>,
  { end }: Recorded,
  market: Market,
  { afterEventNo, settings }: Pick<Base, 'afterEventNo' | 'settings'>,
  isCancelled: () => boolean = () => false,
): Promise<Redone> {
  const beganMs = performance.now()
  const replayer = new EventReplayer({ market, afterEventNo, settings, onSettings: underSettings })
  const batches = readJournal(journalFolder, afterEventNo, {
    folderId,
    throughEventNo: end.lastEventNo,
    onDamage: (damage) => log.error({ ...damage }, 'a part of the journal is damaged'),
  })
  reading: for await (const batch of batches) {
    for (const _ of replayer.apply(batch)) {
      await nextTurn()
      if (isCancelled()) break reading
    }
  }
  const { count: events, lastEventNo } = replayer
  // Those of a lost end are within the gap of the downtime.
  const lost = Math.max(end.lastEventNo, lastEventNo) - afterEventNo - events
  return { market: replayer.market, events, lost, tookMs: performance.now() - beganMs }
}
