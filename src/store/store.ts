// In: a data folder and rows to keep. Out: the store's door (types.ts): durable commits, look-ups, the Parquet lake.
// Never touches DuckDB itself: a worker thread does (worker.ts). Never acknowledges a row that is not durable.
import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { assert } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import type { Write } from '../schema/tables.ts'
import { openBarLane } from './bar-lane.ts'
import { type Cellar, openCellar } from './cellar.ts'
import { encodeWrite } from './cells.ts'
import { openFaults } from './faults.ts'
import { type Gatherer, gatherer } from './gather.ts'
import {
  BARS_FLUSH_ROWS,
  BARS_TIMEOUT_MS,
  CHECKPOINT_LOG_BYTES,
  COMMIT_ROWS_MAX,
  COMMIT_TIMEOUT_MS,
  COOLDOWNS_RECOVERED_MS_MIN,
  DATE_QUIET_MS,
  DISK_RESERVE_MB_DEFAULT,
  FLUSH_TIMEOUT_MS,
  GATHER_MS,
  HOUSEKEEPING_TIMEOUT_MS,
  KEPT_SEQS_DEFAULT,
  LAKE_GRACE_MS_DEFAULT,
  PRUNE_EVERY_MS,
  SET_ASIDE_TOLD_MAX,
  STATUS_TIMEOUT_MS,
} from './limits.ts'
import type { CrashPoint } from './messages.ts'
import { databaseLogPath, databasePath, journalLogPath, journalPath } from './paths.ts'
import { type Repeating, repeating } from './repeating.ts'
import type { RetainedDays } from './retention.ts'
import type { LakeLosses, LakeTableStatus, StoreDoor, StoreLog } from './types.ts'
import { unavailable } from './worker-link.ts'

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
  /** Row numbers, counted back from the youngest, whose rows stay in the store though the lake has them too. */
  keptSeqs?: number
  /** How long a submission keeps its agent from the same mint, ms: so long a restart is told of it. */
  cooldownMs?: number
  /** How long a date must have been without a new file before all of its files are made one, ms. */
  lakeQuietMs?: number
  /** Nothing is written while less of the disk is free, MB; 0: until it is full. */
  diskReserveMb?: number
  /** A log of a database file that is so long is written into the file. */
  checkpointLogBytes?: number
  clock: Clock
  log: StoreLog
  /** How long the first caller of a batch waits for others, ms. */
  gatherMs?: number
  /** How long a caller waits for its rows to be durable, ms. */
  commitTimeoutMs?: number
  /** Tests only: the process is killed when a flush gets here. */
  crashAt?: CrashPoint
}

/** Opened here, by real path: DuckDB's own lock keeps out other processes, not a second opening in this one. */
const openFolders = new Set<string>()

function madeFolder(dataDir: string): string {
  try {
    mkdirSync(dataDir, { recursive: true })
    return realpathSync(dataDir)
  } catch (error) {
    throw unavailable(`the data folder ${dataDir} cannot be used: ${(error as Error).message}`)
  }
}

function claimFolder(dataDir: string): string {
  const folder = madeFolder(dataDir)
  if (openFolders.has(folder)) throw unavailable(`the data folder ${dataDir} is in use by this very process`)
  openFolders.add(folder)
  return folder
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/**
 * Opens the store in `dataDir`, finishes what a crash left, and says what the house must know again. Rejects with
 * `store_unavailable` when another server holds the folder or the disk refuses.
 */
export async function openStore(options: StoreOptions): Promise<StoreDoor> {
  const dataDir = claimFolder(options.dataDir)
  try {
    const cellar = await openCellar({
      dataDir,
      clock: options.clock,
      log: options.log,
      commitTimeoutMs: options.commitTimeoutMs ?? COMMIT_TIMEOUT_MS,
      lakeGraceMs: options.lakeGraceMs ?? LAKE_GRACE_MS_DEFAULT,
      retainDays: options.retainDays ?? {},
      checkpointLogBytes: options.checkpointLogBytes ?? CHECKPOINT_LOG_BYTES,
      keptSeqs: options.keptSeqs ?? KEPT_SEQS_DEFAULT,
      // A cooldown that is set longer at the next start finds at least so much.
      cooldownMs: Math.max(options.cooldownMs ?? 0, COOLDOWNS_RECOVERED_MS_MIN),
      diskReserveMb: options.diskReserveMb ?? DISK_RESERVE_MB_DEFAULT,
      crashAt: options.crashAt ?? null,
    })
    return door(cellar, dataDir, options)
  } catch (error) {
    openFolders.delete(dataDir)
    throw error
  }
}

function door(cellar: Cellar, dataDir: string, options: StoreOptions): StoreDoor {
  const queue: Gatherer = gatherer(cellar.commit, options.gatherMs ?? GATHER_MS)
  let lastLake: LakeTableStatus[] = []
  let noRoom: string | null = null
  let closed: Promise<void> | null = null

  const faults = openFaults(options.log, options.clock)

  /** A chore that is told of when it fails and when it works again. */
  function watched<Result>(what: string, chore: () => Promise<Result>): () => Promise<Result> {
    return async () => {
      try {
        const result = await chore()
        faults.clear(what)
        return result
      } catch (error) {
        faults.report(what, error)
        throw error
      }
    }
  }

  const flushLake = watched('the lake could not be written; trying again', async () => {
    await cellar.ask('flush', {}, FLUSH_TIMEOUT_MS)
  })
  const tidyLake = watched('the lake could not be tidied; trying again', () =>
    cellar.ask('tidy', { quietMs: options.lakeQuietMs ?? DATE_QUIET_MS }, HOUSEKEEPING_TIMEOUT_MS),
  )
  const bars = openBarLane({
    log: options.log,
    workers: () => cellar.workers,
    async send(delivery) {
      const { held, ...receipt } = await cellar.ask('bars', delivery, BARS_TIMEOUT_MS)
      if (held >= BARS_FLUSH_ROWS) void flushForBars()
      return receipt
    },
  })
  const prune = watched('old rows could not be pruned; trying again', async () => {
    await cellar.ask('prune', {}, FLUSH_TIMEOUT_MS)
  })
  // A failure is told of where it happens.
  const isTold = (): void => {}
  const chores: Repeating[] = [
    repeating(flushLake, options.lakeFlushMs, isTold),
    repeating(async () => void (await tidyLake()), options.lakeTidyMs ?? 0, isTold),
    repeating(prune, PRUNE_EVERY_MS, isTold),
  ]

  /** Bars may come faster than the lake is written: they must not pile up in memory. */
  let isFlushing = false
  async function flushForBars(): Promise<void> {
    if (isFlushing) return
    isFlushing = true
    await flushLake().catch(isTold)
    isFlushing = false
  }

  async function commit(writes: readonly Write[]): Promise<void> {
    assert(writes.length <= COMMIT_ROWS_MAX, `a commit has at most ${COMMIT_ROWS_MAX} rows`)
    const encoded = writes.map(encodeWrite)
    if (closed !== null) throw unavailable('the store is closing')
    if (!cellar.writable) throw unavailable('the store cannot write just now')
    if (encoded.length > 0) await queue.add(encoded)
  }

  let isChecking = false
  function checkLake(): void {
    if (isChecking) return
    isChecking = true
    const look = watched('the lake could not be looked through', () =>
      cellar.ask('repair', { settles: false }, HOUSEKEEPING_TIMEOUT_MS),
    )
    void look()
      .catch(isTold)
      .then(() => {
        isChecking = false
      })
  }

  /** Why the store does less than it should; empty: it does not. */
  function reasons(): string[] {
    const { setAside, retentionHeld } = cellar.lakeTrouble
    return [
      ...(cellar.trouble === null ? [] : [cellar.trouble]),
      ...(noRoom === null ? [] : [noRoom]),
      ...faults.current,
      ...(retentionHeld === null ? [] : [retentionHeld]),
      ...(setAside.length === 0
        ? []
        : [`files of the lake that are lost or damaged: ${setAside.length}; see mintlake lake repair`]),
    ]
  }

  function lakeLosses(): LakeLosses {
    const { setAside } = cellar.lakeTrouble
    const rowsLost = setAside.reduce((sum, file) => sum + file.rowsLost, 0)
    return { files: setAside.length, rowsLost, first: setAside.slice(0, SET_ASIDE_TOLD_MAX) }
  }

  async function status() {
    try {
      const answer = await cellar.ask('status', {}, STATUS_TIMEOUT_MS)
      lastLake = answer.lake
      noRoom = answer.noRoom
    } catch {
      // Health is asked for when things go wrong: the last figures stand, and `healthy` says how far to trust them.
    }
    const paths = [databasePath, databaseLogPath, journalPath, journalLogPath].map((path) => path(dataDir))
    const databaseBytes = paths.reduce((bytes, path) => bytes + sizeOf(path), 0)
    const healthy = cellar.writable && noRoom === null
    return { healthy, reasons: reasons(), lake: lastLake, databaseBytes, setAside: lakeLosses() }
  }

  async function shut(): Promise<void> {
    for (const chore of chores) chore.stop()
    await bars.close()
    await queue.idle()
    await cellar.close()
    openFolders.delete(dataDir)
  }

  return {
    recovered: cellar.recovered,
    commit,
    bars,
    analysis: (analysisId) => cellar.find(analysisId),
    flushLake,
    tidyLake,
    retireLake: () => cellar.ask('retire', {}, HOUSEKEEPING_TIMEOUT_MS),
    repairLake: () => cellar.ask('repair', { settles: true }, HOUSEKEEPING_TIMEOUT_MS),
    checkLake,
    lakeLosses,
    status,
    close() {
      closed ??= shut()
      return closed
    },
  }
}
