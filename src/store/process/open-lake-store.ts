// Opens the state database and the lake when a lake process starts: completes what a crash interrupted, imports a folder of
// format 1, and rebuilds the state from the lake's files where the state database is gone.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { readJournal } from '../../journal/reader.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { Compactor } from '../compaction/compactor.ts'
import { isV1, keepOlderVersionsOut } from '../data-folder/older-versions.ts'
import { type Database, isFullError, isReadOnlyError, openDatabase, transaction } from '../duckdb/database.ts'
import { EventFlusher } from '../events/event-flusher.ts'
import { countLostEvents, findEventPosition, saveEventPosition } from '../events/event-position.ts'
import { Flusher } from '../flush/flusher.ts'
import { type Lake, openLake } from '../lake/lake.ts'
import { listAllLiveFiles } from '../lake/manifest.ts'
import { COOLDOWNS_RECOVERED_MS_MIN, STATE_AGE_MS_MAX } from '../limits.ts'
import { type BarStore, openBarStore } from '../market-data/bar-store.ts'
import { ProfileBuffer } from '../market-data/profile-buffer.ts'
import { OutcomeLabeler } from '../outcomes/outcome-labeler.ts'
import { flushFolder, lakeFolder, spillFolder } from '../paths.ts'
import { LakeLists } from '../query/lake-lists.ts'
import { LakeLookup } from '../query/lake-lookup.ts'
import { importV1 } from '../state/import-v1.ts'
import { moveToChunks } from '../state/move-to-chunks.ts'
import { countOutcomes } from '../state/outcome-counts.ts'
import { loadState, readState, type StatePiece } from '../state/read-state.ts'
import { rebuildState, reopenOutcomes } from '../state/rebuild.ts'
import type { StateAges } from '../state/state.ts'
import {
  beginState,
  isStateBegun,
  loadPosition,
  noteMark,
  noteStateRebuilt,
  type SavedPosition,
  saveState,
  stateRebuiltAt,
} from '../state/state-database.ts'
import type { LakeTrouble } from '../types.ts'
import type { CrashPoint, LakeProcessOptions, LogLine } from './protocol.ts'

/** The parts of an open lake that requests are answered from. */
export interface LakeStore {
  bars: BarStore
  compactor: Compactor
  database: Database
  events: EventFlusher
  flusher: Flusher
  lake: Lake
  lookup: LakeLookup
  lists: LakeLists
  /** The state as of the last flush, to be read before the next one. On the maintenance connection. */
  savedState: AsyncGenerator<StatePiece, void, void>
  tokens: ProfileBuffer
}

export interface OpenContext {
  options: LakeProcessOptions
  failpoint(point: CrashPoint): void
  log(line: LogLine): void
  onTrouble(trouble: LakeTrouble): void
}

export interface OpenedLakeStore {
  store: LakeStore
  /** Of the saved state. */
  position: SavedPosition
  /** By which its entries end. */
  ages: StateAges
}

export async function openLakeStore(asked: OpenContext, nowMs: number): Promise<OpenedLakeStore> {
  const { failpoint, log, onTrouble } = asked
  const { dataDir, provenance } = asked.options
  mkdirSync(lakeFolder(dataDir), { recursive: true })
  const database = await openDatabase(dataDir)
  const ages = asked.options.ages ?? (await agesOfFolder(database))
  const options: OpenOptions = { ...asked.options, ...ages }
  const context = { ...asked, options }
  const isNew = !(await hasState(database, options))
  const lake = await openLake(database, { dataDir, failpoint, log, onTrouble })
  await recoverLake(context, database, lake, { isNew, nowMs })
  if (isNew) {
    await rebuild(context, database, lake, nowMs)
    await database.syncFolder()
  }
  await upgradeState(context, database, lake, nowMs)
  blockOlderVersions(context)
  lake.publishTrouble({
    stateRebuiltAtMs: await database.maintenance.run(stateRebuiltAt),
    eventsLost: await database.maintenance.run(countLostEvents),
  })
  const position = await database.maintenance.run(loadPosition)
  const bars = await openBarStore(database, lake.reader, provenance, nowMs)
  const tokens = new ProfileBuffer()
  const spillDir = join(spillFolder(dataDir), 'outcomes')
  const outcomes = new OutcomeLabeler({ database, reader: lake.reader, spillDir, failpoint })
  const store = {
    ...{ bars, database, lake, tokens },
    savedState: await database.maintenance.run(async (connection) => readState(connection)),
    lookup: new LakeLookup(database.lookups, lake.reader),
    lists: new LakeLists(database.lists, lake.reader),
    compactor: new Compactor(lake, { ...options, failpoint, log }),
    events: new EventFlusher({
      ...{ dataDir, database, lake, readJournal, failpoint },
      logId: options.logId,
      monotonicMs: () => performance.now(),
    }),
    flusher: new Flusher({ ...options, database, lake, bars, tokens, outcomes, failpoint, log }),
  }
  return { store, position, ages }
}

type OpenOptions = LakeProcessOptions & StateAges

/** The ages with which a folder was used last. Where it does not say so the longest, so that nothing ends too early. */
async function agesOfFolder(database: Database): Promise<StateAges> {
  const { ages, isNew } = await database.maintenance.run(async (connection) => ({
    ...(await loadPosition(connection)),
    isNew: !(await isStateBegun(connection)) && !isV1(database.dataDir),
  }))
  if (ages !== null) return ages
  return isNew
    ? { cooldownKeptMs: COOLDOWNS_RECOVERED_MS_MIN, labelsDelayMs: 0 }
    : { cooldownKeptMs: STATE_AGE_MS_MAX, labelsDelayMs: STATE_AGE_MS_MAX }
}

/** Whether the database has a state to continue from. A store of format 1 is imported first. */
async function hasState(database: Database, options: OpenOptions): Promise<boolean> {
  const { dataDir } = options
  return database.maintenance.run(async (connection) => {
    if (await isStateBegun(connection)) return true
    if (!isV1(dataDir)) return false
    await importV1(connection, dataDir, options, flushFolder(dataDir))
    return true
  })
}

/** A lake without a manifest is listed again from its files. */
async function recoverLake(
  { log }: OpenContext,
  database: Database,
  lake: Lake,
  { isNew, nowMs }: { isNew: boolean; nowMs: number },
): Promise<void> {
  const { lsn } = await database.maintenance.run(loadPosition)
  try {
    await lake.recover(lsn, isNew, nowMs)
  } catch (error) {
    if (isNew || !(isFullError(error) || isReadOnlyError(error))) throw error
    // The lake can still be read; what waits in the log is flushed when the disk has room again.
    log({
      level: 'error',
      message: 'the disk takes no writes: the lake stays as it is',
      fields: { error: errorMessage(error) },
    })
  }
}

/** Completes a state that an earlier version saved, or one that was saved with other settings. Where the disk takes no writes, the next start does. */
async function upgradeState(
  { options, log }: OpenContext & { options: OpenOptions },
  database: Database,
  lake: Lake,
  nowMs: number,
): Promise<void> {
  const spillDir = flushFolder(options.dataDir)
  try {
    await database.maintenance.run(async (connection) => {
      await moveToChunks(connection)
      await countOutcomes(connection, lake.reader, { options, spillDir, nowMs })
      await changeAges(connection, options, spillDir)
    })
  } catch (error) {
    if (!(isFullError(error) || isReadOnlyError(error))) throw error
    const message = 'the state of an earlier version could not be completed: the disk takes no writes'
    log({ level: 'warn', message, fields: { error: errorMessage(error) } })
  }
}

/** Where the folder was used with other ages, what has ended by these ends now, and is saved so. */
async function changeAges(
  connection: DuckDBConnection,
  options: OpenOptions,
  spillDir: string,
): Promise<void> {
  const { ages } = await loadPosition(connection)
  const { cooldownKeptMs, labelsDelayMs = 0 } = options
  if (ages?.cooldownKeptMs === cooldownKeptMs && ages.labelsDelayMs === labelsDelayMs) return
  const state = await loadState(connection, options)
  await transaction(connection, () => saveState(connection, state, spillDir))
}

const STATE_REBUILT =
  'the state database is gone: XP and coverage were computed from the lake; agents, keys and bans are only in a backup'

/** Makes a new state. Where the lake has files, its sums come from them, and the loss of the old state is recorded. */
async function rebuild(
  { options, log }: OpenContext & { options: OpenOptions },
  database: Database,
  lake: Lake,
  nowMs: number,
): Promise<void> {
  await database.maintenance.run(async (connection) => {
    const state = await rebuildState(connection, lake, options)
    const isLost = (await listAllLiveFiles(connection)).length > 0
    await transaction(connection, async () => {
      await saveEventPosition(connection, await findEventPosition(connection))
      await saveState(connection, state, flushFolder(options.dataDir))
      if (isLost) {
        await reopenOutcomes(connection, lake)
        await noteStateRebuilt(connection, nowMs)
      } else {
        await noteMark(connection, 'outcomes_counted')
      }
      await beginState(connection)
    })
    if (isLost) log({ level: 'error', message: STATE_REBUILT, fields: { lsn: state.lsn } })
  })
}

/** Where the disk takes no writes the next start tries again: reading works all the same. */
function blockOlderVersions({ options, log }: OpenContext): void {
  try {
    keepOlderVersionsOut(options.dataDir)
  } catch (error) {
    const fields = { error: errorMessage(error) }
    log({
      level: 'warn',
      message: 'an older version could still be started on this folder; it must not be',
      fields,
    })
  }
}
