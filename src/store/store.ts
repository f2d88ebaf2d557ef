// In: a data folder and rows to keep. Out: the store (types.ts): durable commits, look-ups, the lake and its state. Keeps the
// log itself, and has the lake process do everything else. Never acknowledges a row that is not durable.
import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import pLimit from 'p-limit'
import { assert } from '../lib/assert.ts'
import { type Clock, readClock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-text.ts'
import type { Row, SubmissionRow, TableName, Write } from '../schema/tables.ts'
import { DiskSpace } from './data-folder/disk-space.ts'
import { useFolder } from './data-folder/folder-info.ts'
import { type FolderLock, lockFolder } from './data-folder/folder-lock.ts'
import { makeSnapshot } from './data-folder/snapshot.ts'
import { StoreError, unavailable } from './errors.ts'
import { type FaultLog, openFaultLog } from './fault-log.ts'
import type { RetainedDays } from './lake/retention.ts'
import * as limits from './limits.ts'
import { LogError } from './log/errors.ts'
import { openLog } from './log/log.ts'
import type { Visit } from './log/reader.ts'
import { segmentName } from './log/segments/format.ts'
import type { CommitLog, LogDamage, Position, SegmentInfo } from './log/types.ts'
import { BarOutbox } from './market-data/bar-outbox.ts'
import type { BarDelivery, BarReceipt } from './market-data/bar-store.ts'
import { ProfileOutbox } from './market-data/profile-outbox.ts'
import { logFolder, stateLogPath, statePath } from './paths.ts'
import { type PeriodicJob, startPeriodic } from './periodic.ts'
import { LakeClient } from './process/client.ts'
import type { Crash } from './process/protocol.ts'
import { RecentRows, type SubmissionTable, UnflushedRows } from './rows/recent-rows.ts'
import { encodeWrite } from './rows/row-encoder.ts'
import { completeRow, recoveredFrom } from './state/recovered.ts'
import { applyCommit, type StoreState } from './state/state.ts'
import { stateFrom } from './state/state-database.ts'
import { StateRows } from './state/state-rows.ts'
import type {
  LakeLosses,
  LakeRepair,
  LakeTableStatus,
  Provenance,
  Recovered,
  Snapshot,
  Store,
  StoreLog,
  StoreStatus,
} from './types.ts'

export interface StoreOptions {
  dataDir: string
  /** How often new rows go to the lake, ms; 0: only on demand and at close. */
  lakeFlushMs: number
  /** How often small files are merged and replaced ones removed, ms; 0: only on demand. */
  lakeTidyMs?: number
  /** How long a replaced file stays for readers who have begun, ms. */
  lakeGraceMs?: number
  /** Full days before today whose rows stay in the lake, by table; a table that is not named stays for ever. */
  retainDays?: RetainedDays
  /** How long a date must have been without a new file before all of its files are made one, ms. */
  lakeQuietMs?: number
  /** Commits are refused while less of the disk is free, MB; 0: until it is full. A flush may use the rest. */
  diskReserveMb?: number
  /** The longest cooldown in use, ms: how long the start of one is remembered. */
  cooldownMs?: number
  /** Where the market data of this run comes from: written into rows, and held against what the folder holds. */
  provenance?: Provenance | null
  /** Simulated and real data may lie side by side in this folder. */
  isMixed?: boolean
  clock: Clock
  log: StoreLog
  /** How long a caller waits for its rows to be durable, ms. */
  commitTimeoutMs?: number
  /** Tests only: the lake process is killed when it gets there. */
  crash?: Crash
}

function madeFolder(dataDir: string): string {
  try {
    mkdirSync(dataDir, { recursive: true })
    return realpathSync(dataDir)
  } catch (error) {
    throw unavailable(`the data folder ${dataDir} cannot be used: ${errorMessage(error)}`)
  }
}

/**
 * Opens the store in `dataDir`: the state of the last flush, and what the log has beyond it. Rejects with `unavailable` when
 * another server holds the folder or the disk refuses, with `invalid` when the folder is not one for this run.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const dataDir = madeFolder(options.dataDir)
  const lock = lockFolder(dataDir)
  try {
    return await openLocked({ ...options, dataDir }, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

async function openLocked(options: StoreOptions, lock: FolderLock): Promise<Store> {
  const { dataDir, clock, log } = options
  const provenance = options.provenance ?? null
  const now = (): number => Math.floor(clock.now())
  const { logId } = useFolder(dataDir, { provenance, isMixed: options.isMixed ?? false, nowMs: now() })
  const cooldownKeptMs = Math.max(options.cooldownMs ?? 0, limits.COOLDOWNS_RECOVERED_MS_MIN)
  const client = new LakeClient({
    ...{ dataDir, logId, provenance, cooldownKeptMs, now, log },
    lakeGraceMs: options.lakeGraceMs ?? limits.LAKE_GRACE_MS_DEFAULT,
    retainDays: options.retainDays ?? {},
    diskReserveMb: options.diskReserveMb ?? limits.DISK_RESERVE_MB_DEFAULT,
    crash: options.crash ?? null,
  })
  const space = new DiskSpace(dataDir, options.diskReserveMb ?? limits.DISK_RESERVE_MB_DEFAULT)
  try {
    const state = stateFrom(await client.open(), { cooldownKeptMs, isSaved: false })
    const unflushed = new UnflushedRows()
    const flushed = { lsn: state.lsn, knownAtMs: state.knownAtMs }
    await space.look()
    const commits = await openLog(
      {
        ...{ folder: logFolder(dataDir), logId, clock, log, flushed },
        timeoutMs: options.commitTimeoutMs ?? limits.COMMIT_TIMEOUT_MS,
        mayWrite: (unflushedBytes) => mayCommit(unflushedBytes, space),
      },
      recoverInto(state, unflushed),
    )
    return new DurableStore({
      options,
      client,
      commits,
      lock,
      space,
      unflushed,
      recovered: recoveredFrom(state, now()),
    })
  } catch (error) {
    space.close()
    await client.close()
    throw error instanceof LogError ? unavailable(`the log cannot be opened: ${error.message}`) : error
  }
}

/** What is done with each commit of the log. Apart from those who stay: they would keep the state in memory. */
function recoverInto(state: StoreState, unflushed: UnflushedRows): Visit {
  const stateRows = new StateRows()
  return ({ lsn, knownAtMs, payload, position }) => {
    const rows = stateRows.of(payload)
    applyCommit(state, { lsn, knownAtMs, rows })
    unflushed.add(
      rows.map(([table, row]) => ({ table, id: submissionId(table, row) })),
      position,
    )
  }
}

/** Commits wait in the log until the lake has them: what it holds is bounded, and so is what it takes of the disk. */
const mayCommit = (unflushedBytes: number, space: DiskSpace): boolean =>
  unflushedBytes < limits.UNFLUSHED_BYTES_MAX && space.mayWrite(unflushedBytes)

/** The identity of a row that is looked up by it; null of any other. */
const submissionId = (table: TableName, row: Row): string | null =>
  table === 'training' || table === 'rejections' ? (row.analysis_id as string) : null

interface StoreParts {
  options: StoreOptions
  client: LakeClient
  commits: CommitLog
  lock: FolderLock
  space: DiskSpace
  unflushed: UnflushedRows
  recovered: Recovered
}

class DurableStore implements Store {
  readonly recovered: Recovered
  readonly bars: BarOutbox
  readonly profiles: ProfileOutbox
  /** Resolves when what the log had at the start is in the lake, or could not be brought there. */
  readonly caughtUp: Promise<void>
  readonly #options: StoreOptions
  readonly #client: LakeClient
  readonly #commits: CommitLog
  readonly #lock: FolderLock
  readonly #space: DiskSpace
  readonly #recent = new RecentRows()
  readonly #unflushed: UnflushedRows
  readonly #jobs: PeriodicJob[]
  readonly #damage: LogDamage[]
  readonly #faults: FaultLog
  /** One at a time: each begins with what was committed before it was asked for. */
  readonly #flushes = pLimit(1)
  #lake: LakeTableStatus[] = []
  #isChecking = false
  #closed: Promise<void> | null = null

  constructor({ options, client, commits, lock, space, unflushed, recovered }: StoreParts) {
    this.recovered = recovered
    this.#options = options
    this.#client = client
    this.#commits = commits
    this.#lock = lock
    this.#space = space
    this.#unflushed = unflushed
    this.#damage = [...commits.recovered.damage]
    this.#faults = openFaultLog(options.log, options.clock)
    this.profiles = new ProfileOutbox(client)
    this.bars = new BarOutbox({
      log: options.log,
      starts: () => client.starts,
      send: (delivery) => this.#sendBars(delivery),
    })
    this.#jobs = this.#startJobs()
    this.caughtUp = commits.status().unflushedCommits === 0 ? Promise.resolve() : this.#flushQuietly()
  }

  async commit(writes: readonly Write[]): Promise<void> {
    assert(writes.length <= limits.COMMIT_ROWS_MAX, `a commit has at most ${limits.COMMIT_ROWS_MAX} rows`)
    const provenance = this.#options.provenance ?? null
    const encoded = writes.map((write) => encodeWrite(write, provenance))
    if (this.#closed !== null) throw new StoreError('closing', 'the store is closing')
    if (encoded.length === 0) return
    const { knownAtMs, position } = await this.#commits.append(encoded).catch(refuse)
    const rows = writes.map(({ table, row }) => ({ table, id: submissionId(table, row) }))
    this.#unflushed.add(rows, position)
    rows.forEach(({ table, id }, index) => {
      if (id !== null)
        this.#recent.add(id, { table: table as SubmissionTable, knownAtMs, json: encoded[index].json })
    })
  }

  async analysis(analysisId: string): Promise<SubmissionRow | null> {
    const recent = this.#recent.find(analysisId)
    if (recent !== null) return completeRow(recent.table, JSON.parse(recent.json), recent.knownAtMs)
    for (const position of this.#unflushed.find(analysisId)) {
      const logged = await this.#readBack(position, analysisId)
      if (logged !== null) return logged
    }
    return this.#client.askPatiently('find', { analysisId, nowMs: this.#nowMs() }, limits.LOOKUP_TIMEOUT_MS)
  }

  /** Everything committed and told so far is in the lake once this resolves. */
  flushLake(): Promise<void> {
    return this.#flushes(() =>
      this.#watched('the lake could not be written; trying again', () => this.#flush()),
    )
  }

  compactLake(): Promise<{ merged: number; removed: number }> {
    const { clock, lakeQuietMs: quietMs = limits.DATE_QUIET_MS } = this.#options
    const ask = { now: readClock(clock), quietMs }
    return this.#watched('files of the lake could not be merged; trying again', () =>
      this.#client.ask('compact', ask, limits.HOUSEKEEPING_TIMEOUT_MS),
    )
  }

  repairLake(): Promise<LakeRepair> {
    return this.#client.ask('repair', { nowMs: this.#nowMs(), settles: true }, limits.HOUSEKEEPING_TIMEOUT_MS)
  }

  /** Bound: it is handed to those who meet a file that cannot be read. */
  readonly checkLake = (): void => {
    if (this.#isChecking) return
    this.#isChecking = true
    const look = this.#watched('the lake could not be looked through', () =>
      this.#client.ask('repair', { nowMs: this.#nowMs(), settles: false }, limits.HOUSEKEEPING_TIMEOUT_MS),
    )
    // A failure is told of where it happens.
    void look
      .catch(() => undefined)
      .then(() => {
        this.#isChecking = false
      })
  }

  retireLake(): Promise<{ files: number }> {
    return this.#client.ask('retire', { now: readClock(this.#options.clock) }, limits.HOUSEKEEPING_TIMEOUT_MS)
  }

  snapshot(folder: string): Promise<Snapshot> {
    return this.#flushes(async () => {
      // Market data that waits is in it where the lake can be written; commits are in any case.
      await this.#flush().catch(() => undefined)
      await this.#commits.seal()
      const segments = this.#commits.segments()
      const copied = await makeSnapshot(this.#options.dataDir, resolve(folder), segments, (to) =>
        this.#client.ask('snapshot', { to }, limits.HOUSEKEEPING_TIMEOUT_MS),
      )
      return { ...copied, lsn: Math.max(copied.lsn, segments.at(-1)?.lastLsn ?? 0) }
    })
  }

  lakeLosses(): LakeLosses {
    const { setAside } = this.#client.trouble
    const rowsLost = setAside.reduce((sum, file) => sum + file.rowsLost, 0)
    return { files: setAside.length, rowsLost, first: setAside.slice(0, limits.SET_ASIDE_TOLD_MAX) }
  }

  async status(): Promise<StoreStatus> {
    try {
      this.#lake = (await this.#client.ask('status', {}, limits.STATUS_TIMEOUT_MS)).lake
    } catch {
      // Health is asked for when things go wrong: the last figures stand, and the rest says how far to trust them.
    }
    const { dataDir } = this.#options
    const log = this.#commits.status()
    const isWritable =
      this.#closed === null && log.state === 'ready' && mayCommit(log.unflushedBytes, this.#space)
    return {
      healthy: isWritable && this.#client.isRunning && this.#faults.current.length === 0,
      isWritable,
      reasons: this.#reasons(),
      lake: this.#lake.map((each) => ({
        ...each,
        backlog: each.backlog + this.#unflushed.count(each.table),
      })),
      log: {
        state: log.state,
        unflushedCommits: log.unflushedCommits,
        unflushedBytes: log.unflushedBytes,
        damage: this.#damage.length,
      },
      lakeProcess: { isRunning: this.#client.isRunning, starts: this.#client.starts },
      freeBytes: this.#space.freeBytes,
      databaseBytes: fileBytes(statePath(dataDir)) + fileBytes(stateLogPath(dataDir)),
      setAside: this.lakeLosses(),
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  #nowMs(): number {
    return Math.floor(this.#options.clock.now())
  }

  #startJobs(): PeriodicJob[] {
    const { lakeFlushMs, lakeTidyMs = 0 } = this.#options
    // A failure is told of where it happens.
    const isTold = (): void => {}
    return [
      startPeriodic(() => this.flushLake(), lakeFlushMs, isTold),
      startPeriodic(async () => void (await this.compactLake()), lakeTidyMs, isTold),
    ]
  }

  /** Does something that is tried again and again: its failures are told of while they last. */
  async #watched<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      this.#faults.clear(what)
      return result
    } catch (error) {
      this.#faults.report(what, error)
      throw error
    }
  }

  /** Plain words on whatever keeps the store from its work. */
  #reasons(): string[] {
    const { state, unflushedBytes } = this.#commits.status()
    const reasons: string[] = []
    if (state === 'hanging') reasons.push('the disk does not answer')
    if (state === 'recovering') reasons.push('a write to the log failed; it is being begun anew')
    if (unflushedBytes >= limits.UNFLUSHED_BYTES_MAX)
      reasons.push('the log is full: the lake could not be written for long')
    if (!this.#space.mayWrite(unflushedBytes))
      reasons.push('the disk is nearly full: commits are refused until there is room')
    if (!this.#client.isRunning) reasons.push(`the lake process does not run: ${this.#client.lastFailure}`)
    if (this.#damage.length > 0) reasons.push('damage was found in the log; see mintlake lake verify')
    const { retentionHeld, setAside, stateRebuiltAtMs } = this.#client.trouble
    reasons.push(...this.#faults.current)
    if (retentionHeld !== null) reasons.push(retentionHeld)
    if (stateRebuiltAtMs !== null)
      reasons.push(
        `the state database was lost and taken from the lake (${new Date(stateRebuiltAtMs).toISOString()}): agents, keys and bans of before are gone unless state.duckdb comes back from a backup; mintlake lake repair settles this`,
      )
    if (setAside.length > 0)
      reasons.push(`files of the lake that are lost or damaged: ${setAside.length}; see mintlake lake repair`)
    return reasons
  }

  async #flush(): Promise<void> {
    await this.bars.flush()
    await this.profiles.deliver()
    await this.#commits.seal()
    const segments = this.#commits.segments()
    do {
      await this.#flushSegments(takeRound(segments))
    } while (segments.length > 0)
  }

  /** One round: what these segments hold, and the market data that waits, is in the lake; then the segments go. */
  async #flushSegments(round: readonly SegmentInfo[]): Promise<void> {
    const ask = { nowMs: this.#nowMs(), throughLsn: round.at(-1)?.lastLsn ?? 0 }
    const { damage, deadRows } = await this.#client.ask('flush', ask, limits.FLUSH_TIMEOUT_MS)
    if (damage.length > 0) this.#report(damage)
    if (deadRows > 0)
      this.#options.log.error({ rows: deadRows }, 'rows fit no table of the lake and were set aside')
    const damaged = new Set(damage.map(({ file }) => file))
    for (const { firstLsn } of round) {
      if (damaged.has(segmentName(firstLsn))) await this.#commits.setAside(firstLsn)
      else await this.#commits.remove(firstLsn)
      this.#unflushed.forget(firstLsn)
    }
  }

  /** What the start has found of it is known. */
  #report(damage: readonly LogDamage[]): void {
    for (const each of damage) {
      if (this.#damage.some(({ file, fromByte }) => file === each.file && fromByte === each.fromByte))
        continue
      this.#damage.push(each)
      this.#options.log.error({ ...each }, 'a part of the log is damaged')
    }
  }

  async #sendBars(delivery: BarDelivery): Promise<BarReceipt> {
    const { held, ...receipt } = await this.#client.ask('bars', delivery, limits.BARS_TIMEOUT_MS)
    // Bars may come faster than the lake is written: they must not pile up in memory.
    if (held >= limits.BARS_FLUSH_ROWS && this.#flushes.activeCount === 0) void this.#flushQuietly()
    return receipt
  }

  async #flushQuietly(): Promise<void> {
    // A failure is told of where it happens.
    await this.flushLake().catch(() => undefined)
  }

  /** The row as the log has it; null where its record has no such row, or has gone meanwhile: then the lake has it. */
  async #readBack(position: Position, analysisId: string): Promise<SubmissionRow | null> {
    try {
      const record = await this.#commits.read(position)
      for (const [table, row] of record.rows())
        if ((table === 'training' || table === 'rejections') && row.analysis_id === analysisId)
          return completeRow(table, row, record.knownAtMs)
      return null
    } catch (error) {
      if (error instanceof LogError && error.code === 'segment_removed') return null
      throw unavailable(`the log cannot be read: ${errorMessage(error)}`)
    }
  }

  async #close(): Promise<void> {
    for (const job of this.#jobs) job.stop()
    const isFlushed = await within(limits.CLOSE_FLUSH_MS, this.#lastFlush())
    if (!isFlushed)
      this.#options.log.warn({}, 'the last flush took too long; the next start brings the rest to the lake')
    await Promise.all([this.#commits.close(), this.#client.close(isFlushed)])
    this.#space.close()
    this.#lock.release()
  }

  async #lastFlush(): Promise<void> {
    await this.bars.close()
    await this.#flushQuietly()
  }
}

const fileBytes = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Takes from the front what one round writes: at least one segment, and no more than its bound of bytes. */
function takeRound(segments: SegmentInfo[]): SegmentInfo[] {
  let [count, bytes] = [0, 0]
  while (count < segments.length && (count === 0 || bytes + segments[count].bytes <= limits.FLUSH_BYTES_MAX))
    bytes += segments[count++].bytes
  return segments.splice(0, count)
}

/** @returns whether `work` was done in time. */
async function within(timeMs: number, work: Promise<void>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, timeMs, false)
  try {
    return await Promise.race([work.then(() => true), promise])
  } finally {
    clearTimeout(timer)
  }
}

/** What the log refused, in the store's own words. */
function refuse(error: unknown): never {
  if (!(error instanceof LogError)) throw error
  if (error.code === 'closed') throw new StoreError('closing', error.message)
  throw unavailable(error.message, { mayBeStored: error.mayBeStored, cause: error })
}
