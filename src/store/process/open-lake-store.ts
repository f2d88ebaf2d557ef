// Opens the state database and the lake when a lake process starts: completes what a crash interrupted, and
// rebuilds the state from the lake's files where the state database is gone.
import type { DuckDBConnection } from '@duckdb/node-api'
import { readJournal } from '../../journal/reader.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { makeFolderNow } from '../../lib/files.ts'
import { Compactor } from '../compaction/compactor.ts'
import { Losses } from '../data-folder/losses.ts'
import { explainDamage } from '../duckdb/damaged-state.ts'
import { type Database, isFullError, isReadOnlyError, openDatabase, transaction } from '../duckdb/database.ts'
import { queryValue } from '../duckdb/query.ts'
import { EventFlusher } from '../events/event-flusher.ts'
import { countLostEvents, findEventPosition, saveEventPosition } from '../events/event-position.ts'
import { Flusher } from '../flush/flusher.ts'
import { findLastKnownMs, saveLastKnown } from '../lake/known-at.ts'
import { type Lake, type LakeOptions, openLake } from '../lake/lake.ts'
import { importList, noteGaps, readCatalog } from '../lake/lost-list.ts'
import type { ListSource } from '../lake/orphan-files.ts'
import { COOLDOWNS_RECOVERED_MS_MIN, STATE_AGE_MS_MAX } from '../limits.ts'
import { type BarStore, openBarStore } from '../market-data/bar-store.ts'
import { ProfileBuffer } from '../market-data/profile-buffer.ts'
import { OutcomeLabeler } from '../outcomes/outcome-labeler.ts'
import { flushFolder, lakeFolder } from '../paths.ts'
import { moveToChunks, noteChunksCut } from '../state/move-to-chunks.ts'
import { loadState, readState, type StatePiece } from '../state/read-state.ts'
import { findLastLsn, noteExpiredDates, rebuildState, reopenOutcomes } from '../state/rebuild.ts'
import type { StateAges } from '../state/state.ts'
import {
  beginState,
  isStateBegun,
  loadPosition,
  type SavedPosition,
  saveState,
} from '../state/state-database.ts'
import type { LakeProcessOptions } from './protocol.ts'

/** The parts of an open lake that requests are answered from. */
export interface LakeStore {
  bars: BarStore
  compactor: Compactor
  database: Database
  events: EventFlusher
  flusher: Flusher
  lake: Lake
  /** The state as of the last flush, to be read before the next one. On the maintenance connection. */
  savedState: AsyncGenerator<StatePiece, void, void>
  tokens: ProfileBuffer
}

export interface OpenedLakeStore {
  store: LakeStore
  /** Of the saved state. */
  position: SavedPosition
  /** By which its entries end. */
  ages: StateAges
}

export interface OpenContext extends LakeOptions {
  options: LakeProcessOptions
}

/**
 * Rejects with `invalid`, and a sentence on what to do, where the state database is damaged.
 * @returns the open parts, and the state as of the last flush
 */
export const openLakeStore = (context: OpenContext, nowMs: number): Promise<OpenedLakeStore> =>
  open(context, nowMs).catch((error) => Promise.reject(explainDamage(context.options.dataDir, error)))

async function open(asked: OpenContext, nowMs: number): Promise<OpenedLakeStore> {
  const { dataDir } = asked.options
  makeFolderNow(lakeFolder(dataDir))
  const database = await openDatabase(dataDir)
  const ages = asked.options.ages ?? (await agesOfFolder(database))
  const options: OpenOptions = { ...asked.options, ...ages }
  const isNew = !(await database.maintenance.run(isStateBegun))
  const lake = await openLake(database, asked)
  const listFrom = isNew ? await findList(lake) : 'manifest'
  await recoverLake(lake, { listFrom, nowMs })
  if (isNew) {
    await rebuild(options, lake, nowMs)
    await database.syncFolder()
  }
  await upgradeState(options, lake, nowMs)
  lake.publishTrouble({ eventsLost: await database.maintenance.run(countLostEvents) })
  const position = await database.maintenance.run(loadPosition)
  const bars = await openBarStore(lake, options, nowMs)
  const tokens = new ProfileBuffer()
  const outcomes = new OutcomeLabeler(lake)
  const store = {
    bars,
    database,
    lake,
    tokens,
    savedState: await database.maintenance.run(async (connection) => readSaved(connection, dataDir)),
    compactor: new Compactor(lake, options),
    events: new EventFlusher({
      lake,
      readJournal,
      logId: options.logId,
      monotonicMs: () => performance.now(),
    }),
    flusher: new Flusher({ ...options, lake, bars, tokens, outcomes }),
  }
  return { store, position, ages }
}

/** @throws like `openLakeStore` */
async function* readSaved(
  connection: DuckDBConnection,
  dataDir: string,
): AsyncGenerator<StatePiece, void, void> {
  try {
    yield* readState(connection)
  } catch (error) {
    throw explainDamage(dataDir, error)
  }
}

type OpenOptions = LakeProcessOptions & StateAges

/** The ages with which a folder was used last. Where it does not say so the longest, so that nothing ends too early. */
async function agesOfFolder(database: Database): Promise<StateAges> {
  const { ages, isNew } = await database.maintenance.run(async (connection) => ({
    ...(await loadPosition(connection)),
    isNew: !(await isStateBegun(connection)),
  }))
  if (ages !== null) return ages
  return isNew
    ? { cooldownKeptMs: COOLDOWNS_RECOVERED_MS_MIN, labelsDelayMs: 0 }
    : { cooldownKeptMs: STATE_AGE_MS_MAX, labelsDelayMs: STATE_AGE_MS_MAX }
}

/** The list of files of a new state database: that of the catalog, where it can be read. @returns where the list is from */
async function findList({ database, lakeDir }: Lake): Promise<ListSource> {
  const catalog = await readCatalog(lakeDir)
  if (catalog === null) return 'folders'
  await database.maintenance.run((connection) => importList(connection, catalog))
  return 'catalog'
}

async function recoverLake(
  lake: Lake,
  { listFrom, nowMs }: { listFrom: ListSource; nowMs: number },
): Promise<void> {
  const flushedLsn = await lake.database.maintenance.run(async (connection) =>
    listFrom === 'catalog' ? findLastLsn(connection) : (await loadPosition(connection)).lsn,
  )
  try {
    await lake.recover({ flushedLsn, listFrom }, nowMs)
  } catch (error) {
    if (listFrom !== 'manifest' || !(isFullError(error) || isReadOnlyError(error))) throw error
    // The lake can still be read; what waits in the log is flushed when the disk has room again.
    const message = 'the disk takes no writes: the lake stays as it is'
    lake.log({ level: 'error', message, fields: { error: errorMessage(error) } })
  }
}

/** Completes a state that an earlier version saved, or one that was saved with other settings. Where the disk takes no writes, the next start does. */
async function upgradeState(options: OpenOptions, { database, log }: Lake, nowMs: number): Promise<void> {
  const spillDir = flushFolder(options.dataDir)
  try {
    await database.maintenance.run(async (connection) => {
      await moveToChunks(connection)
      await moveRebuiltNote(connection, options.dataDir, nowMs)
      await changeAges(connection, options, spillDir)
    })
  } catch (error) {
    if (!(isFullError(error) || isReadOnlyError(error))) throw error
    const message = 'the state of an earlier version could not be completed: the disk takes no writes'
    log({ level: 'warn', message, fields: { error: errorMessage(error) } })
  }
}

/** Earlier versions noted in the state that it had been made anew. */
async function moveRebuiltNote(connection: DuckDBConnection, dataDir: string, nowMs: number): Promise<void> {
  const sql = 'SELECT rebuilt_at_ms::DOUBLE FROM state_position'
  const rebuiltAtMs = await queryValue(connection, sql, 'number?')
  if (rebuiltAtMs === null) return
  const sentence = `the state database was lost and made anew from the lake (${new Date(rebuiltAtMs).toISOString()}); lost: earlier agents, keys and bans`
  await new Losses(dataDir).record({ kind: 'state', sentence }, nowMs)
  await connection.run('UPDATE state_position SET rebuilt_at_ms = NULL')
}

/** Where the folder was used with other ages, what has ended by these ends now, and is saved so. */
async function changeAges(
  connection: DuckDBConnection,
  options: OpenOptions,
  spillDir: string,
): Promise<void> {
  const { ages } = await loadPosition(connection)
  const { cooldownKeptMs, labelsDelayMs } = options
  if (ages?.cooldownKeptMs === cooldownKeptMs && ages.labelsDelayMs === labelsDelayMs) return
  const state = await loadState(connection, options)
  await transaction(connection, () => saveState(connection, state, spillDir))
}

/** Makes a new state. Where the folder has a lake or accounts, it comes from them, and the loss of the old state is recorded. */
async function rebuild(options: OpenOptions, lake: Lake, nowMs: number): Promise<void> {
  await lake.database.maintenance.run(async (connection) => {
    const rebuilt = await rebuildState(connection, lake, options, nowMs)
    // Before the new state counts: a start that is cut off in between tells it again.
    if (rebuilt.loss !== null)
      await new Losses(options.dataDir).record({ kind: 'state', sentence: rebuilt.loss }, nowMs)
    const lastKnownMs = await findLastKnownMs(connection, lake.reader, nowMs)
    await transaction(connection, async () => {
      await saveLastKnown(connection, lastKnownMs)
      await saveEventPosition(connection, await findEventPosition(connection))
      await saveState(connection, rebuilt.state, flushFolder(options.dataDir))
      if (rebuilt.hasLake) {
        await reopenOutcomes(connection, lake)
        await noteExpiredDates(connection, lake)
        await noteGaps(connection, nowMs)
      }
      await noteChunksCut(connection)
      await beginState(connection)
    })
    if (rebuilt.loss !== null)
      lake.log({ level: 'error', message: rebuilt.loss, fields: { lsn: rebuilt.state.lsn } })
  })
}
