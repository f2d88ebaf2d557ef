// In: requests from the store's door, as messages. Out: a reply to each. The worker thread: DuckDB's synchronous calls
// must not stall the streams. Never survives a failure of the disk or of DuckDB: it answers, closes the database and
// ends, and the door starts a new one, so that there is one way to heal.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../lib/assert.ts'
import { messageOf } from '../lib/messages.ts'
import { ServiceError } from '../schema/errors.ts'
import { type Archive, openArchive } from './archive.ts'
import { type Bars, openBars } from './bars.ts'
import { rowsOf } from './cells.ts'
import { type Committer, openCommitter } from './committer.ts'
import { type Database, isFatalError, isFullError, isWorldError, openDatabase } from './database.ts'
import { type Journal, openJournal } from './journal.ts'
import { type Lake, openLake } from './lake.ts'
import { JOURNAL_ROWS_SPREAD } from './limits.ts'
import type {
  CrashPoint,
  FromWorker,
  LogLine,
  Request,
  RequestKind,
  Requests,
  WorkerOptions,
} from './messages.ts'
import { type Outcomes, openOutcomes } from './outcomes.ts'
import { endOwnDatabases } from './own-database.ts'
import { lakeFolder, spillFolder } from './paths.ts'
import { prune } from './prune.ts'
import { findAnalysis, recover } from './recovery.ts'
import { openRoom } from './room.ts'
import { thin } from './thinning.ts'

interface Cellar {
  archive: Archive
  bars: Bars
  database: Database
  committer: Committer
  journal: Journal
  lake: Lake
  outcomes: Outcomes
}

type Handlers = { [K in RequestKind]: (ask: Requests[K]['ask']) => Promise<Requests[K]['answer']> }

const EXIT_FAILED = 70

assert(parentPort !== null, 'the store’s worker runs in a worker thread')
const port = parentPort
const options = workerData as WorkerOptions
let cellar: Cellar | null = null
let failing = false
const room = openRoom(options.dataDir, options.diskReserveMb)
/** Requests being answered: what they have begun must end before the database is closed. */
const underWay = new Set<Promise<unknown>>()
/** The last write found no room. */
let foundFull = false

const post = (message: FromWorker): void => port.postMessage(message)
const log = (line: LogLine): void => post({ log: line })

function reach(point: CrashPoint): void {
  if (point === options.crashAt) process.kill(process.pid, 'SIGKILL')
}

function opened(): Cellar {
  if (cellar === null) throw new ServiceError('store_unavailable', 'the store is not open')
  return cellar
}

/** What a crash left of a flush is finished, and rows that no file holds yet are written, before anybody reads. */
async function catchUp(lake: Lake, ackedSeq: number, nowMs: number): Promise<void> {
  try {
    await lake.settle(nowMs)
    const { files, rows } = await lake.flush(ackedSeq, nowMs)
    if (rows > 0)
      log({ level: 'info', message: 'rows of the last run are in the lake', fields: { files, rows } })
  } catch (error) {
    // The rows are safe in the store; the next flush tries again.
    log({ level: 'error', message: 'the lake cannot be written', fields: { error: String(error) } })
  }
}

/** What is left of refused rows goes, and the journal is moved; on a full disk both wait, and reading goes on. */
async function tidyUp(committer: Committer, journal: Journal, ackedSeq: number | null): Promise<void> {
  try {
    if (ackedSeq !== null) await committer.retract(ackedSeq)
    await journal.spread(ackedSeq ?? committer.lastSeq)
  } catch (error) {
    // At a start what is known is read from the tables: rows of the journal must be in them.
    if (ackedSeq === null || !isFullError(error)) throw error
    foundFull = true
    log({ level: 'warn', message: 'the disk is full: the store is open for reading', fields: {} })
  }
}

/** Under load the journal is moved before the next flush, so that a flush never has much to move. */
let journalRows = 0
function spreadWhenMany(journal: Journal, ackedSeq: number, addedRows: number): void {
  journalRows += addedRows
  if (journalRows < JOURNAL_ROWS_SPREAD) return
  journalRows = 0
  journal.spread(ackedSeq).catch((error: unknown) => {
    if (isWorldError(error) && !isFullError(error)) return fail(error)
    log({ level: 'error', message: 'the journal cannot be moved', fields: { error: String(error) } })
  })
}

/** What has become of submissions goes to the lake with the next flush. A failure is no reason to fail this one. */
async function label(nowMs: number): Promise<void> {
  const { bars, outcomes } = opened()
  try {
    await outcomes.advance(bars.inLakeToMs, nowMs)
  } catch (error) {
    if (isFatalError(error)) throw error
    const fields = { error: String(error) }
    log({ level: 'error', message: 'outcomes could not be computed; trying again', fields })
  }
}

const handlers: Handlers = {
  async open({ nowMs, ackedSeq }) {
    mkdirSync(lakeFolder(options.dataDir), { recursive: true })
    const database = await openDatabase(options.dataDir)
    const committer = await openCommitter(database, (error) => setImmediate(() => void fail(error)))
    const journal = openJournal(database, { log, reach, checkpointLogBytes: options.checkpointLogBytes })
    await tidyUp(committer, journal, ackedSeq)
    const { dataDir, lakeGraceMs, retainDays, diskReserveMb } = options
    const lake = await openLake(database, {
      ...{ dataDir, graceMs: lakeGraceMs, retainDays, diskReserveMb, reach, log },
      onTrouble: (trouble) => post({ trouble }),
    })
    const archive = openArchive(database.archive, lake.files)
    await catchUp(lake, ackedSeq ?? committer.lastSeq, nowMs)
    await committer.renumber()
    const bars = await openBars(database, lake.files, nowMs)
    const outcomes = openOutcomes(database, {
      files: lake.files,
      spillDir: join(spillFolder(dataDir), 'outcomes'),
      reach,
    })
    cellar = { archive, bars, database, committer, journal, lake, outcomes }
    const recovered = await database.reader.run((connection) =>
      recover(connection, nowMs, options.cooldownMs),
    )
    return { recovered, ackedSeq: ackedSeq ?? committer.lastSeq }
  },
  async commit(ask) {
    const { committer, journal } = opened()
    room.require()
    const ackedSeq = await committer.commit(ask)
    foundFull = false
    spreadWhenMany(journal, ask.ackedSeq, rowsOf(ask.entries))
    return { ackedSeq }
  },
  async analysis({ analysisId, nowMs }) {
    const { archive, database } = opened()
    const stored = await database.reader.run((connection) => findAnalysis(connection, analysisId))
    return stored ?? archive.find(analysisId, nowMs)
  },
  async bars(delivery) {
    const { bars } = opened()
    return { taken: bars.take(delivery), inLakeBars: bars.inLakeBars, held: bars.held }
  },
  async flush({ ackedSeq, nowMs }) {
    const { bars, database, journal, lake } = opened()
    room.require()
    await journal.spread(ackedSeq)
    const staged = await bars.stage(nowMs)
    const flushed = await lake.flush(ackedSeq, nowMs)
    await bars.release(staged)
    await label(nowMs)
    const { keptSeqs, cooldownMs } = options
    await database.maintenance.run((connection) =>
      thin(connection, ackedSeq, nowMs, { keptSeqs, cooldownMs, reach }),
    )
    return flushed
  },
  tidy: ({ nowMs, monotonicMs, quietMs }) => opened().lake.tidy({ wallMs: nowMs, monotonicMs }, quietMs),
  repair: ({ nowMs, settles }) => opened().lake.repair(nowMs, settles),
  async retire({ nowMs, monotonicMs }) {
    return { files: await opened().lake.retire({ wallMs: nowMs, monotonicMs }) }
  },
  async prune({ nowMs }) {
    await opened().database.maintenance.run((connection) => prune(connection, nowMs, options.cooldownMs))
    return null
  },
  async status({ ackedSeq }) {
    if (foundFull || !room.isThere()) foundFull = !(await room.tryToWrite())
    const { bars, lake } = opened()
    const tables = await lake.status(ackedSeq)
    const withBars = tables.map((each) => (each.table === 'bars' ? { ...each, backlog: bars.held } : each))
    return { lake: withBars, noRoom: foundFull ? room.reason() : null }
  },
  async close({ nowMs, ackedSeq }) {
    const { bars, database, committer, journal, lake } = opened()
    await lake.close()
    await Promise.allSettled(underWay)
    await committer.retract(ackedSeq)
    await journal.spread(ackedSeq)
    await bars.stage(nowMs)
    await lake.flush(ackedSeq, nowMs).catch((error: unknown) => {
      log({ level: 'error', message: 'the last flush failed', fields: { error: String(error) } })
    })
    await endOwnDatabases()
    await database.writer.run(async (connection) => void (await connection.run('CHECKPOINT')))
    await database.close()
    cellar = null
    return null
  },
}

/** Closes what is open and ends the thread. Callers still waiting are answered by the door when it sees the end. */
async function fail(error: unknown): Promise<void> {
  if (failing) return
  failing = true
  log({
    level: 'error',
    message: 'the store failed and will be opened anew',
    fields: { error: String(error) },
  })
  try {
    await cellar?.lake.close()
    await endOwnDatabases()
    await cellar?.database.close()
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

async function answer({ id, kind, ask }: Request): Promise<void> {
  try {
    if (failing) return
    post({ id, ok: true, answer: await handle(kind, ask) })
    // With nothing left to do the thread ends by itself: ended from outside, it might be within a call of DuckDB's.
    if (kind === 'close') port.close()
  } catch (error) {
    // Work that a failure interrupts is answered by the door when it sees the end.
    if (failing) return
    const message = messageOf(error)
    const code = error instanceof ServiceError ? error.code : 'store_unavailable'
    // Only what callers wait for says so: the lake may lie on a disk of its own.
    if (kind === 'commit' && isFullError(error)) foundFull = true
    post({ id, ok: false, code, message })
    // A lake that cannot be written leaves the database as it was: the next flush tries again. So does a full disk.
    const isHarmless = kind === 'flush' || kind === 'tidy' || kind === 'repair' || isFullError(error)
    if (isHarmless ? isFatalError(error) : isWorldError(error)) await fail(error)
  }
}

port.on('message', (request: Request) => void answer(request))
