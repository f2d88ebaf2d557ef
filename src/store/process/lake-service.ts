// Answers the requests of the server in the lake process. A failure of the disk or of DuckDB that leaves the database in
// doubt ends the process; the server starts another, so that there is one way to recover.
import { access, constants } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { assert } from '../../lib/assert.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { isFatalError, isOpenedReadOnly } from '../duckdb/database.ts'
import { closeScratchDatabases } from '../duckdb/scratch-database.ts'
import { StoreError, unavailable } from '../errors.ts'
import { copyLake } from '../lake/lake-snapshot.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { readAgentHits, readAgentRecord } from '../query/agent-record.ts'
import { readCalibration } from '../query/calibration.ts'
import { listSubmissions } from '../query/lake-lists.ts'
import { findSubmission } from '../query/lake-lookup.ts'
import { type LakeStore, type OpenContext, openLakeStore } from './open-lake-store.ts'
import type { Reply, Request, RequestKind, Requests } from './protocol.ts'

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

type Handlers = { [K in RequestKind]: (ask: Requests[K]['ask']) => Promise<Requests[K]['answer']> }

export interface LakeServiceContext extends OpenContext {
  post(reply: Reply): void
  /** Called when the lake is open, before the reply is sent. */
  onOpened(): void
  /** Called when the database is closed and the reply was sent. */
  onClosed(): void
  /** Ends the process. */
  exit(): void
}

export class LakeService {
  readonly #context: LakeServiceContext
  #store: LakeStore | null = null
  #isFailing = false
  #isClosed = false
  /** Requests being answered. They must end before the database is closed. */
  readonly #active = new Set<Promise<unknown>>()

  constructor(context: LakeServiceContext) {
    this.#context = context
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Sends a reply, unless the process fails meanwhile: the server rejects open requests when it sees the process end. */
  async answer({ id, kind, ask }: Request): Promise<void> {
    const { onClosed, post } = this.#context
    try {
      if (this.#isFailing) return
      post({ id, ok: true, answer: await this.#handle(kind, ask) })
      if (kind === 'close') onClosed()
    } catch (error) {
      if (this.#isFailing) return
      const code = error instanceof StoreError ? error.code : 'unavailable'
      post({ id, ok: false, code, message: errorMessage(error) })
      // Other failures left the database as it was, and the server tries again. One that was opened on a read-only disk is opened
      // anew once that can be written.
      const isToBeOpened = isOpenedReadOnly(error) && (await isWritable(this.#context.options.dataDir))
      if (isFatalError(error) || isToBeOpened) await this.#fail(error)
    }
  }

  #handle<K extends RequestKind>(kind: K, ask: Requests[K]['ask']): Promise<Requests[K]['answer']> {
    const handling = this.#handlers[kind](ask)
    if (kind === 'close') return handling
    this.#active.add(handling)
    const remove = () => void this.#active.delete(handling)
    handling.then(remove, remove)
    return handling
  }

  #opened(): LakeStore {
    if (this.#store === null) throw unavailable('the lake is not open')
    return this.#store
  }

  /** Reads the lake on a connection of its own. */
  async #read<Ask, Result>(
    queue: 'lists' | 'lookups',
    read: (connection: DuckDBConnection, reader: LiveFileReader, ask: Ask) => Promise<Result>,
    ask: Ask,
  ): Promise<Result> {
    const { database, lake } = this.#opened()
    try {
      return await database[queue].run((connection) => read(connection, lake.reader, ask))
    } catch (error) {
      // What the store says itself is for the client as it is.
      if (error instanceof StoreError) throw error
      // Wrapped, so that the error of an unreadable file is not taken for a fatal one of the store's database.
      throw unavailable(`the lake cannot be read: ${String(error)}`)
    }
  }

  readonly #handlers: Handlers = {
    open: async ({ nowMs }) => {
      assert(this.#store === null, 'the lake is opened once')
      const { store, ...opened } = await openLakeStore(this.#context, nowMs)
      this.#store = store
      this.#context.onOpened()
      return opened
    },
    state: async () => {
      const { database, savedState } = this.#opened()
      return { piece: (await database.maintenance.run(() => savedState.next())).value ?? null }
    },
    flush: (ask) => this.#opened().flusher.flush(ask),
    events: (ask) => this.#opened().events.flush(ask),
    bars: async (delivery) => {
      const { bars } = this.#opened()
      return { taken: bars.take(delivery), inLakeBars: bars.inLakeBars, held: bars.held }
    },
    tokens: async (delivery) => {
      const { tokens } = this.#opened()
      return { taken: tokens.take(delivery), inLake: tokens.inLake }
    },
    find: (ask) => this.#read('lookups', findSubmission, ask),
    list: (ask) => this.#read('lists', listSubmissions, ask),
    calibration: (ask) => this.#read('lists', readCalibration, ask),
    agentRecord: (ask) => this.#read('lists', readAgentRecord, ask),
    agentHits: (ask) => this.#read('lists', readAgentHits, ask),
    compact: ({ now, quietMs }) => this.#opened().compactor.compact(now, quietMs),
    repair: ({ nowMs, settles }) => this.#opened().compactor.repair(nowMs, settles),
    retire: async ({ now }) => ({ files: await this.#opened().compactor.retire(now) }),
    files: () => this.#opened().lake.listFilesForReaders(),
    snapshot: ({ to, nowMs }) => copyLake(this.#opened().lake, to, nowMs),
    status: () => {
      const { bars, lake, tokens } = this.#opened()
      return lake.status({ bars: bars.held, tokens: tokens.held })
    },
    close: () => this.#close(),
  }

  async #close(): Promise<null> {
    const { compactor, database } = this.#opened()
    await compactor.close()
    await Promise.allSettled(this.#active)
    await closeScratchDatabases()
    await database.maintenance.run(async (connection) => void (await connection.run('CHECKPOINT')))
    await database.close()
    this.#store = null
    this.#isClosed = true
    return null
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#isFailing) return
    this.#isFailing = true
    const fields = { error: errorMessage(error) }
    this.#context.log({ level: 'error', message: 'the lake process failed and ends', fields })
    try {
      await this.#store?.compactor.close()
      await closeScratchDatabases()
      await this.#store?.database.close()
    } finally {
      this.#context.exit()
    }
  }
}
