// In: requests from the server, as messages. Out: a reply to each. The lake process: the one place where the lake is written
// and DuckDB works on it, of low priority, apart from the server, so that its failures, pauses and memory are its own.
// Never survives a failure of the disk or of DuckDB that leaves its database in doubt: it ends, and the server starts
// another, so that there is one way to heal. Never outlives the server.
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { assert } from '../../lib/assert.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { Compactor } from '../compaction/compactor.ts'
import { isV1, keepOlderVersionsOut } from '../data-folder/older-versions.ts'
import {
  type Database,
  isFatalError,
  isFullError,
  isOpenedReadOnly,
  isReadOnlyError,
  openDatabase,
  transaction,
} from '../duckdb/database.ts'
import { closeScratchDatabases } from '../duckdb/scratch-database.ts'
import { StoreError } from '../errors.ts'
import { Flusher } from '../flush/flusher.ts'
import { type Lake, openLake } from '../lake/lake.ts'
import { copyLake } from '../lake/lake-snapshot.ts'
import { listAllLiveFiles } from '../lake/manifest.ts'
import { LAKE_PROCESS_NICENESS } from '../limits.ts'
import { type BarStore, openBarStore } from '../market-data/bar-store.ts'
import { ProfileBuffer } from '../market-data/profile-buffer.ts'
import { OutcomeLabeler } from '../outcomes/outcome-labeler.ts'
import { flushFolder, lakeFolder, spillFolder } from '../paths.ts'
import { LakeLookup } from '../query/lake-lookup.ts'
import { importV1 } from '../state/import-v1.ts'
import { rebuiltState, reopenOutcomesOf } from '../state/rebuild.ts'
import {
  beginState,
  isStateBegun,
  loadPosition,
  loadState,
  noteStateRebuilt,
  saveState,
  stateRebuiltAt,
} from '../state/state-database.ts'
import type {
  CrashPoint,
  FromLakeProcess,
  LakeProcessOptions,
  LogLine,
  Request,
  RequestKind,
  Requests,
} from './protocol.ts'

interface Opened {
  lookup: LakeLookup
  compactor: Compactor
  bars: BarStore
  database: Database
  flusher: Flusher
  lake: Lake
  tokens: ProfileBuffer
}

type Handlers = { [K in RequestKind]: (ask: Requests[K]['ask']) => Promise<Requests[K]['answer']> }

const EXIT_FAILED = 70
/** Linux lists the threads of a process there. */
const OWN_THREADS = '/proc/self/task'
const STATE_REBUILT =
  'the state database is gone: sums were taken from the lake; agents, keys and bans come from a backup alone'

const options = JSON.parse(process.argv[2]) as LakeProcessOptions
let store: Opened | null = null
let isFailing = false
let isClosed = false
/** Requests being answered: what they have begun must end before the database is closed. */
const underWay = new Set<Promise<unknown>>()

function post(message: FromLakeProcess): void {
  if (process.connected) process.send?.(message)
}

const log = (line: LogLine): void => post({ log: line })

function failpoint(point: CrashPoint): void {
  if (point !== options.crash?.at) return
  if (options.crash.withServer) process.kill(process.ppid, 'SIGKILL')
  process.kill(process.pid, 'SIGKILL')
}

function opened(): Opened {
  if (store === null) throw new StoreError('unavailable', 'the lake is not open')
  return store
}

const handlers: Handlers = {
  async open({ nowMs }) {
    assert(store === null, 'the lake is opened once')
    const { dataDir, provenance } = options
    mkdirSync(lakeFolder(dataDir), { recursive: true })
    const database = await openDatabase(dataDir)
    const isNew = !(await isReady(database))
    const lake = await openLake(database, {
      dataDir,
      failpoint,
      log,
      onTrouble: (trouble) => post({ trouble }),
    })
    const { lsn } = await database.maintenance.run(loadPosition)
    // A lake whose list is gone is listed again.
    await lake.recover(lsn, isNew, nowMs).catch((error: unknown) => {
      if (isNew || !(isFullError(error) || isReadOnlyError(error))) throw error
      // What there is can be read; what waits comes to the lake when there is room.
      log({
        level: 'error',
        message: 'the disk takes no writes: the lake is as it was',
        fields: { error: errorMessage(error) },
      })
    })
    if (isNew) {
      await rebuild(database, lake, nowMs)
      await database.syncFolder()
    }
    barOlderVersions(dataDir)
    lake.publishTrouble({ stateRebuiltAtMs: await database.maintenance.run(stateRebuiltAt) })
    const saved = await database.maintenance.run(loadState)
    const bars = await openBarStore(database, lake.reader, provenance, nowMs)
    const tokens = new ProfileBuffer()
    const spillDir = join(spillFolder(dataDir), 'outcomes')
    const outcomes = new OutcomeLabeler({ database, reader: lake.reader, spillDir, failpoint })
    store = {
      lookup: new LakeLookup(database.lookups, lake.reader),
      compactor: new Compactor(lake, { ...options, failpoint, log }),
      flusher: new Flusher({ ...options, database, lake, bars, tokens, outcomes, failpoint, log }),
      ...{ bars, database, lake, tokens },
    }
    // The server waits for what was done so far, and is not to wait for the lake from here on.
    stepBack()
    return { saved }
  },
  flush: (ask) => opened().flusher.flush(ask),
  async bars(delivery) {
    const { bars } = opened()
    return { taken: bars.take(delivery), inLakeBars: bars.inLakeBars, held: bars.held }
  },
  async tokens(delivery) {
    const { tokens } = opened()
    return { taken: tokens.take(delivery), inLake: tokens.inLake }
  },
  find: ({ analysisId, nowMs }) => opened().lookup.find(analysisId, nowMs),
  compact: ({ now, quietMs }) => opened().compactor.compact(now, quietMs),
  repair: ({ nowMs, settles }) => opened().compactor.repair(nowMs, settles),
  async retire({ now }) {
    return { files: await opened().compactor.retire(now) }
  },
  async snapshot({ to }) {
    const { database, lake } = opened()
    return copyLake(database, lake, to)
  },
  async status() {
    const { bars, lake, tokens } = opened()
    return { lake: await lake.status({ bars: bars.held, tokens: tokens.held }) }
  },
  async close() {
    const { compactor, database } = opened()
    await compactor.close()
    await Promise.allSettled(underWay)
    await closeScratchDatabases()
    await database.maintenance.run(async (connection) => void (await connection.run('CHECKPOINT')))
    await database.close()
    store = null
    isClosed = true
    return null
  },
}

/** Closes what is open and ends the process. Callers still waiting are answered by the server when it sees the end. */
async function fail(error: unknown): Promise<void> {
  if (isFailing) return
  isFailing = true
  log({ level: 'error', message: 'the lake process failed and ends', fields: { error: errorMessage(error) } })
  try {
    await store?.compactor.close()
    await closeScratchDatabases()
    await store?.database.close()
  } finally {
    process.exit(EXIT_FAILED)
  }
}

function handle<K extends RequestKind>(kind: K, ask: Requests[K]['ask']): Promise<Requests[K]['answer']> {
  const handling = handlers[kind](ask)
  if (kind === 'close') return handling
  underWay.add(handling)
  const done = () => void underWay.delete(handling)
  handling.then(done, done)
  return handling
}

/** Whether the state can be gone on from: where the folder is of a store of format 1 it is taken from that. */
async function isReady(database: Database): Promise<boolean> {
  const { dataDir } = options
  return database.maintenance.run(async (connection) => {
    if (await isStateBegun(connection)) return true
    if (!isV1(dataDir)) return false
    await importV1(connection, dataDir, options, flushFolder(dataDir))
    return true
  })
}

/** A disk that takes nothing keeps nobody from reading: the next start tries again. */
function barOlderVersions(dataDir: string): void {
  try {
    keepOlderVersionsOut(dataDir)
  } catch (error) {
    const fields = { error: errorMessage(error) }
    log({
      level: 'warn',
      message: 'an older version could still be started on this folder; it must not be',
      fields,
    })
  }
}

/** A new state beside a lake that may have files: what they tell of it is noted. */
async function rebuild(database: Database, lake: Lake, nowMs: number): Promise<void> {
  await database.maintenance.run(async (connection) => {
    const state = await rebuiltState(connection, lake, options)
    const isLost = (await listAllLiveFiles(connection)).length > 0
    await transaction(connection, async () => {
      await saveState(connection, state, flushFolder(options.dataDir))
      if (isLost) {
        await reopenOutcomesOf(connection, lake)
        await noteStateRebuilt(connection, nowMs)
      }
      await beginState(connection)
    })
    if (isLost) log({ level: 'error', message: STATE_REBUILT, fields: { lsn: state.lsn } })
  })
}

/** Lowers the priority of every thread there is; those that begin later inherit it. The system counts it by thread. */
function stepBack(): void {
  const threads = existsSync(OWN_THREADS) ? readdirSync(OWN_THREADS).map(Number) : [0]
  for (const thread of threads) {
    try {
      setPriority(thread, LAKE_PROCESS_NICENESS)
    } catch {
      // It has ended meanwhile.
    }
  }
}

async function answer({ id, kind, ask }: Request): Promise<void> {
  try {
    if (isFailing) return
    post({ id, ok: true, answer: await handle(kind, ask) })
    if (kind === 'close') process.disconnect()
  } catch (error) {
    // Work that a failure interrupts is answered by the server when it sees the end.
    if (isFailing) return
    const code = error instanceof StoreError ? error.code : 'unavailable'
    post({ id, ok: false, code, message: errorMessage(error) })
    // What failed left the database as it was, and is tried again; unless DuckDB will not answer any more.
    if (isFatalError(error) || isOpenedReadOnly(error)) await fail(error)
  }
}

// The server is gone. DuckDB may be at work in a thread, so nothing gentler is sure to end this; nothing is lost by it.
process.once('disconnect', () => {
  if (!isClosed) process.kill(process.pid, 'SIGKILL')
})
// Whoever stops the server by its terminal means it alone: it tells this process when to end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.on('message', (request: Request) => void answer(request))
