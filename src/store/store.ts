// The store of the server: opens a data folder and serves commits, look-ups and the lake. The server process writes the log;
// the lake process does everything else.

import type { ChildProcess } from 'node:child_process'
import { realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ulid } from 'ulid'
import { assert } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-text.ts'
import { makeFolderNow, syncPathNow } from '../lib/files.ts'
import { SegmentError } from '../lib/segments/types.ts'
import type { AgentHits, AgentRecord } from '../schema/api/agent-record.ts'
import type { Calibration } from '../schema/api/calibration.ts'
import type { SubmissionPage, SubmissionQuery } from '../schema/api/submission-list.ts'
import type { Recovered } from '../schema/recovered.ts'
import type { SubmissionRow, Write } from '../schema/tables.ts'
import { checkFinished } from './backup/note.ts'
import { Staging } from './backup/staging.ts'
import { DiskSpace } from './data-folder/disk-space.ts'
import { claimFolder, noteProvenance, readFolderInfo, writeFolderInfo } from './data-folder/folder-info.ts'
import { type FolderLock, lockFolder } from './data-folder/folder-lock.ts'
import { Losses } from './data-folder/losses.ts'
import { findLostInfo } from './data-folder/lost-info.ts'
import { checkPaths } from './data-folder/odd-paths.ts'
import { makeSnapshot } from './data-folder/snapshot.ts'
import { StoreError, unavailable } from './errors.ts'
import { FaultLog } from './fault-log.ts'
import { FlushScheduler } from './flush-scheduler.ts'
import { LakeMaintenance } from './lake-maintenance.ts'
import * as limits from './limits.ts'
import { LogError } from './log/errors.ts'
import { openLog } from './log/log.ts'
import type { Visit } from './log/reader.ts'
import type { SegmentInfo } from './log/types.ts'
import { recordKept, tellNotNoted } from './log-losses.ts'
import { logFolder, logMarkPath } from './paths.ts'
import { LakeClient } from './process/client.ts'
import type { Crash } from './process/crash-points.ts'
import { EventFlushes } from './recorded-events.ts'
import { KEEP_FOR_EVER } from './retention-setting.ts'
import { identifyRow, UnflushedRows } from './rows/recent-rows.ts'
import { encodeWrite } from './rows/row-encoder.ts'
import type { StoreSettings } from './settings.ts'
import { restoreState } from './state/read-state.ts'
import { recoverFrom } from './state/recovered.ts'
import { applyCommit, type StateAges, type StoreState } from './state/state.ts'
import { StateRowParser } from './state/state-rows.ts'
import type { StoreParts } from './store-parts.ts'
import { mayCommit, StatusReporter } from './store-status.ts'
import { type ListSources, pageOfSubmissions } from './submission-lists.ts'
import { readUnlessRemoved, SubmissionLookup } from './submission-lookup.ts'
import type {
  BarSink,
  LakeFile,
  LakeRepair,
  ProfileSink,
  Provenance,
  SetAsideFile,
  ShownLabels,
  Snapshot,
  StagedBackup,
  StoreFigures,
  StoreLog,
  StoreStatus,
} from './types.ts'

/** Settings that are not given: the lake is tidied on demand alone, and keeps everything. */
export interface StoreOptions extends Partial<StoreSettings> {
  dataDir: string
  lakeFlushMs: number
  /** A date without a new file for this long is merged into one file. */
  lakeQuietMs?: number
  /** The longest cooldown in use: how long the start of one is remembered. Default 0, and as the folder was used last where
   *  `labelsDelayMs` is not given either. */
  cooldownMs?: number
  /** How long labels are withheld from others: labels younger than this are recovered apart. The same defaults. */
  labelsDelayMs?: number
  /** Where the market data of this run comes from. Written into rows, and checked against what the folder holds. */
  provenance?: Provenance | null
  /** A lake process that waits for its options; see process/fork.ts. Default: one is forked. */
  lakeProcess?: ChildProcess | undefined
  /** Of the data folder, where this process has it already. Default: it is locked. */
  lock?: FolderLock | undefined
  clock: Clock
  log: StoreLog
  /** How long a commit waits to become durable. */
  commitTimeoutMs?: number
  /** Tests only: the point at which the lake process is killed. */
  crash?: Crash
}

/**
 * Opens the store in `dataDir`: loads the state of the last flush and applies the commits that the log holds beyond it.
 * Rejects with `unavailable` where another server uses the folder or the disk fails, with `invalid` where the folder cannot
 * be used by this run.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const dataDir = makeFolder(options.dataDir)
  const lock = options.lock ?? lockFolder(dataDir)
  try {
    return await openLocked({ ...options, dataDir }, lock)
  } catch (error) {
    // A server in another container is known by its database alone.
    lock.release(true)
    throw error
  }
}

function makeFolder(dataDir: string): string {
  try {
    makeFolderNow(resolve(dataDir))
    const path = realpathSync(dataDir)
    syncNamesOf(path)
    return path
  } catch (error) {
    throw unavailable(`the data folder ${dataDir} cannot be used: ${errorMessage(error)}`)
  }
}

/**
 * Makes the name of the data folder durable, and those of the folders above it on its disk: without them a power cut takes all that was
 * synced within. At each start, since one that made them may have been killed before it could. Where one cannot be read nothing is synced
 * above it: the server did not make it.
 */
function syncNamesOf(path: string): void {
  const { dev: disk } = statSync(path)
  for (let above = dirname(path); above !== path; [path, above] = [above, dirname(above)]) {
    try {
      if (statSync(above).dev !== disk) return
      syncPathNow(above)
    } catch {
      return
    }
  }
}

async function openLocked(options: StoreOptions, lock: FolderLock): Promise<Store> {
  const { dataDir, clock, log } = options
  const provenance = options.provenance ?? null
  const diskReserveMb = options.diskReserveMb ?? limits.DISK_RESERVE_MB_DEFAULT
  const now = (): number => Math.floor(clock.now())
  const runId = ulid(now())
  checkFinished(dataDir)
  checkPaths(dataDir)
  await restoreFolderInfo(dataDir, now(), log)
  const { logId } = claimFolder(dataDir, { provenance, isMixed: options.isMixed ?? false, nowMs: now() })
  const client = new LakeClient({
    dataDir,
    logId,
    runId,
    provenance,
    ages: agesOf(options),
    diskReserveMb,
    now,
    log,
    lakeGraceMs: options.lakeTidy?.graceMs ?? limits.LAKE_GRACE_MS_DEFAULT,
    retain: options.retain ?? KEEP_FOR_EVER,
    crash: options.crash ?? null,
    forked: options.lakeProcess ?? null,
  })
  const space = new DiskSpace(dataDir, diskReserveMb, lock)
  try {
    const { position, ages } = await client.open()
    const state = await restoreState(position, client.savedState(), ages, false)
    const unflushed = new UnflushedRows()
    const flushed = { lsn: state.lsn, knownAtMs: state.knownAtMs }
    await space.refresh()
    const commits = await openLog(
      {
        folder: logFolder(dataDir),
        markPath: logMarkPath(dataDir),
        logId,
        clock,
        log,
        flushed,
        timeoutMs: options.commitTimeoutMs ?? limits.COMMIT_TIMEOUT_MS,
        mayWrite: (unflushedBytes) => mayCommit(unflushedBytes, space),
      },
      applyTo(state, unflushed),
    )
    const recovered = recoverFrom(state)
    const { eventNo } = position
    const losses = await openLosses(dataDir, now(), log)
    const faults = new FaultLog(log, clock)
    const parts = { dataDir, clock, nowMs: now, log, client, commits, space, unflushed, faults, losses }
    return new Store(parts, { options, folderId: logId, runId, lock, recovered, eventNo })
  } catch (error) {
    space.close()
    await client.close()
    throw error instanceof LogError || error instanceof SegmentError
      ? unavailable(`the log cannot be opened: ${error.message}`)
      : error
  }
}

/** Where store.json is missing from a folder that is not new, it is made anew: without its identity the log is one of strangers. */
async function restoreFolderInfo(dataDir: string, nowMs: number, log: StoreLog): Promise<void> {
  if (readFolderInfo(dataDir) !== null) return
  const info = await findLostInfo(dataDir, nowMs)
  if (info === null) return
  writeFolderInfo(dataDir, info)
  log.warn({ logId: info.logId }, 'store.json was gone; it was made anew from what else the folder has')
}

/** What was lost before, the lake process's start included. A list that cannot be read or written does not keep a server from starting. */
async function openLosses(dataDir: string, nowMs: number, log: StoreLog): Promise<Losses> {
  const losses = new Losses(dataDir)
  try {
    await losses.load(nowMs)
    await recordKept(losses, dataDir, nowMs)
  } catch (error) {
    tellNotNoted(log, error)
  }
  return losses
}

/** Null: those with which the folder was used last. */
function agesOf({ cooldownMs, labelsDelayMs }: StoreOptions): StateAges | null {
  if (cooldownMs === undefined && labelsDelayMs === undefined) return null
  const cooldownKeptMs = Math.max(cooldownMs ?? 0, limits.COOLDOWNS_RECOVERED_MS_MIN)
  return { cooldownKeptMs, labelsDelayMs: labelsDelayMs ?? 0 }
}

/** What the start does with each commit of the log. A function of its own, so that no closure of the store keeps the state. */
function applyTo(state: StoreState, unflushed: UnflushedRows): Visit {
  const parser = new StateRowParser()
  return ({ lsn, knownAtMs, payload, position }) => {
    const rows = parser.parse(payload)
    applyCommit(state, { lsn, knownAtMs, rows })
    unflushed.add(
      rows.map(([table, row]) => identifyRow(table, row)),
      position,
    )
  }
}

/** How a store was opened. */
interface Opened {
  options: StoreOptions
  folderId: string
  runId: string
  lock: FolderLock
  recovered: Recovered
  /** The last recorded event that the lake has. */
  eventNo: number
}

/** Every promise rejects with StoreError where the disk, DuckDB or the request is at fault. */
export class Store {
  /** Identity of the data folder. */
  readonly folderId: string
  /** Identity of this life of a server on the folder. */
  readonly runId: string
  readonly bars: BarSink
  readonly profiles: ProfileSink
  /** The way of recorded events to the lake. */
  readonly events: EventFlushes
  /** Resolves when the commits that the log held at the start are in the lake, or the first attempt has failed. */
  readonly caughtUp: Promise<void>
  readonly #parts: StoreParts
  readonly #lock: FolderLock
  readonly #staging = new Staging((folder) => {
    // The lake's files are linked; the state is copied.
    this.#parts.space.require(this.figures().databaseBytes)
    return this.snapshot(folder)
  })
  #recovered: Recovered | null
  readonly #provenance: Provenance | null
  readonly #lookup: SubmissionLookup
  readonly #lists: ListSources
  readonly #flushes: FlushScheduler
  readonly #maintenance: LakeMaintenance
  readonly #status: StatusReporter
  #closed: Promise<void> | null = null
  /** On the monotonic clock. */
  #noteDataFromMs = 0

  constructor(parts: StoreParts, { options, folderId, runId, lock, recovered, eventNo }: Opened) {
    const { client, commits, unflushed, nowMs } = parts
    const { lakeFlushMs, lakeQuietMs = limits.DATE_QUIET_MS, lakeTidy } = options
    this.#parts = parts
    this.#lock = lock
    this.#provenance = options.provenance ?? null
    this.#lookup = new SubmissionLookup(client, commits, unflushed)
    this.#lists = {
      unflushed,
      readCommit: (position) => readUnlessRemoved(commits, position),
      readLake: (query) => client.askPatiently('list', { query, nowMs: nowMs() }, limits.LOOKUP_TIMEOUT_MS),
    }
    this.#flushes = new FlushScheduler(parts, lakeFlushMs)
    this.events = new EventFlushes(parts, lakeFlushMs, eventNo)
    this.#maintenance = new LakeMaintenance(parts, lakeTidy?.everyMs ?? 0, lakeQuietMs)
    this.#status = new StatusReporter(parts, this.#flushes, this.events)
    const { bars, caughtUp, profiles } = this.#flushes
    this.folderId = folderId
    this.runId = runId
    this.#recovered = recovered
    this.bars = bars
    this.profiles = profiles
    this.caughtUp = caughtUp
  }

  /**
   * The first data of this run comes, which may never be mixed with that of the other kind. What the disk does not take is noted by a
   * later call, a second later at the earliest. @returns whether it is noted
   */
  readonly noteData = (): boolean => {
    const { clock, dataDir, log } = this.#parts
    const nowMs = clock.monotonicMs()
    if (nowMs < this.#noteDataFromMs) return false
    try {
      if (this.#provenance !== null) noteProvenance(dataDir, this.#provenance)
      return true
    } catch (error) {
      this.#noteDataFromMs = nowMs + 1_000
      log.warn({ error: errorMessage(error) }, 'store.json cannot be written; trying again')
      return false
    }
  }

  /** What the state was at the start. Throws once it is forgotten. */
  get recovered(): Recovered {
    assert(this.#recovered !== null, 'what was recovered is read at the start')
    return this.#recovered
  }

  /** Frees `recovered`, which may be a gigabyte. Bound, because it is passed on. */
  readonly forgetRecovered = (): void => {
    this.#recovered = null
  }

  /** Makes all rows durable together. A rejection with `mayBeStored` leaves it open whether they are stored. */
  async commit(writes: readonly Write[]): Promise<void> {
    assert(writes.length <= limits.COMMIT_ROWS_MAX, `a commit has at most ${limits.COMMIT_ROWS_MAX} rows`)
    const encoded = writes.map((write) => encodeWrite(write, this.#provenance))
    if (this.#closed !== null) throw new StoreError('closing', 'the store is closing')
    if (encoded.length === 0) return
    const appended = await this.#parts.commits.append(encoded).catch(throwStoreError)
    this.#lookup.add(writes, encoded, appended)
  }

  /** The stored row of an accepted or rejected submission; null where there is none. */
  analysis(analysisId: string): Promise<SubmissionRow | null> {
    return this.#lookup.find(analysisId, this.#parts.nowMs())
  }

  /**
   * A page of submissions, newest first, whether they are in the lake yet or not. Rejects with `unavailable` where the lake
   * cannot be read in time.
   */
  submissions(query: SubmissionQuery): Promise<SubmissionPage> {
    return pageOfSubmissions(this.#lists, query)
  }

  /** Compares labels with outcomes, of the submissions of the last 30 days. Costly: see `SingleFlight`. Rejects
   *  with `unavailable` as `submissions` does. */
  calibration(shown: ShownLabels): Promise<Calibration> {
    const { client, nowMs } = this.#parts
    const ask = { ...shown, nowMs: nowMs() }
    return client.askPatiently('calibration', ask, limits.CALIBRATION_TIMEOUT_MS)
  }

  /** The same of one agent, with its XP over time. */
  agentRecord(agentId: string, shown: ShownLabels): Promise<Omit<AgentRecord, 'name'>> {
    const { client, nowMs } = this.#parts
    const ask = { ...shown, agentId, nowMs: nowMs() }
    return client.askPatiently('agentRecord', ask, limits.CALIBRATION_TIMEOUT_MS)
  }

  /** Of some agents, whether they were right: those of whom anything is known. */
  agentHits(agentIds: readonly string[], shown: ShownLabels): Promise<AgentHits[]> {
    const { client, nowMs } = this.#parts
    const ask = { ...shown, agentIds, nowMs: nowMs() }
    return client.askPatiently('agentHits', ask, limits.CALIBRATION_TIMEOUT_MS)
  }

  /** Whether the disk has room to record market events, with so many bytes of them that the lake does not have; see `DiskSpace`. */
  mayRecord(unflushedBytes: number, usesReserve = false): boolean {
    return this.#parts.space.mayRecord(unflushedBytes, usesReserve)
  }

  /** When the newest commit became durable, Unix ms; 0: there is none. */
  get lastKnownAtMs(): number {
    return this.#parts.commits.status().lastKnownAtMs
  }

  /** The lake has every closed bar that ended by this market time, Unix ms, as far as this run knows. */
  get barsInLakeToMs(): number {
    return this.#flushes.barsInLakeToMs
  }

  /** The earliest end of a closed bar that the lake may not have, Unix ms: one of late trades may be before the time above. Infinity:
   *  it has all. */
  get barsWaitFromMs(): number {
    return this.#flushes.bars.firstEndMs
  }

  /**
   * Resolves when everything committed, delivered and recorded before this call is in the lake.
   * @param onBegun called when all that is on its way: what comes later is for the next flush
   */
  async flushLake(onBegun?: () => void): Promise<void> {
    await Promise.all([this.#flushes.flush(onBegun), this.events.flush()])
  }

  /** Merges small files of the lake, and deletes replaced files after the grace period. */
  compactLake(): Promise<{ merged: number; removed: number }> {
    return this.#maintenance.compact()
  }

  /** Checks the files in the background and quarantines damaged ones. Only one check runs at a time. Bound, because it is passed on to
   *  readers that meet damaged files. */
  readonly checkLake = (): void => this.#maintenance.check()

  /** Reads every file of the lake, quarantines damaged ones, restores valid ones, and acknowledges losses unless told otherwise. */
  repairLake({ acknowledges = true } = {}): Promise<LakeRepair> {
    return this.#maintenance.repair(acknowledges)
  }

  /** Expires dates although the clock has jumped: the operator has confirmed the clock. */
  retireLake(): Promise<{ files: number }> {
    return this.#maintenance.retire()
  }

  /**
   * Copies the data folder, as of one LSN, to a new folder `folder`. The copy has all rows acknowledged before this call.
   * Commits continue meanwhile; flushes wait.
   */
  async snapshot(folder: string): Promise<Snapshot> {
    const { client, dataDir, nowMs } = this.#parts
    // As far as the lake can be written: what the journal still has is not in the copy.
    await this.events.flush().catch(() => undefined)
    const copy = async (segments: readonly SegmentInfo[]) => {
      const copied = await makeSnapshot(dataDir, resolve(folder), segments, (to) =>
        client.ask('snapshot', { to, nowMs: nowMs() }, limits.HOUSEKEEPING_TIMEOUT_MS),
      )
      return { ...copied, lsn: Math.max(copied.lsn, segments.at(-1)?.lastLsn ?? 0) }
    }
    return this.events.pauseFor(() => this.#flushes.pauseFor(copy))
  }

  /** Makes such a copy in the data folder itself, for `mintlake backup` to take from. @param gone aborted once nobody waits for it */
  stageBackup(gone?: AbortSignal): Promise<StagedBackup> {
    return this.#staging.make(this.#parts.dataDir, gone)
  }

  /** The files of the lake as of one moment, oldest rows first by table. Rejects while no lake process runs. */
  lakeFiles(): Promise<readonly LakeFile[]> {
    return this.#parts.client.ask('files', {}, limits.STATUS_TIMEOUT_MS)
  }

  /** Files of the lake that are missing or damaged, until a repair settles it. */
  get lostFiles(): readonly SetAsideFile[] {
    return this.#parts.client.trouble.setAside
  }

  async status(): Promise<StoreStatus> {
    return { folderId: this.folderId, ...(await this.#status.report(this.#closed !== null)) }
  }

  figures(): StoreFigures {
    return this.#status.figures(this.#closed !== null)
  }

  /** Flushes and closes. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    const { client, commits, space } = this.#parts
    this.#flushes.stop()
    this.events.stop()
    this.#maintenance.stop()
    const areFlushed = await Promise.all([this.#flushes.close(), this.events.close()])
    await Promise.all([commits.close(), client.close(areFlushed.every(Boolean))])
    space.close()
    this.#lock.release()
  }
}

/** Turns an error of the log into one of the store. */
function throwStoreError(error: unknown): never {
  if (!(error instanceof LogError)) throw error
  if (error.code === 'closed') throw new StoreError('closing', error.message)
  throw unavailable(error.message, { mayBeStored: error.mayBeStored, cause: error })
}
