// Runs SQL of HTTP clients on the lake: QUERIES_AT_ONCE at once, the others wait their turn.

import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { assert } from '../../lib/assert.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import { within } from '../../lib/wait.ts'
import { StoreError, unavailable } from '../errors.ts'
import {
  DISK_RESERVE_MB_DEFAULT,
  QUERIES_AT_ONCE,
  QUERIES_PER_KEY_MAX,
  QUERIES_WAITING_MAX,
  QUERY_DRAIN_MS,
  QUERY_LOGGED_CHARACTERS,
  QUERY_MS_MAX,
  QUERY_RETRY_AFTER_S,
  QUERY_SLOW_MS,
  QUERY_WAIT_MS_MAX,
} from '../limits.ts'
import { queryFolder } from '../paths.ts'
import type { LakeQueries, QueryAnswer, QueryRequest, QueryRun, StoreLog } from '../types.ts'
import { ProcessRun } from './process-run.ts'

export interface QueryServiceOptions {
  dataDir: string
  log: StoreLog
  /** Disk space that spilled data leaves to the store, MB. */
  diskReserveMb?: number
  /** Called when the lake could not be read: a file may be damaged. */
  onUnreadable?(): void
  /** How long a query may wait, and run, ms. */
  waitMsMax?: number
  msMax?: number
  /** How long a query may run before the log tells of it, ms. */
  slowMs?: number
  /** How long running queries may go on after `close`, ms. */
  drainMs?: number
}

/** What became of queries: `answered`, or the code of an error. */
export type QueryOutcome = 'answered' | 'query_failed' | 'query_too_costly' | 'overloaded' | 'unavailable'

const overloaded = (sentence: string): StoreError =>
  new StoreError('overloaded', sentence, { retryAfterMs: QUERY_RETRY_AFTER_S * 1_000 })

/** A query from its arrival to its end. */
class PendingQuery implements QueryRun {
  readonly request: QueryRequest
  readonly answer: Promise<QueryAnswer>
  #run: ProcessRun | null = null
  #resolve: (answer: QueryAnswer | Promise<QueryAnswer>) => void = () => {}
  #reject: (error: Error) => void = () => {}
  readonly #waiting: NodeJS.Timeout
  readonly #onGivenUp: () => void

  /** @param onGivenUp called where it ends before it was started. */
  constructor(request: QueryRequest, waitMsMax: number, onGivenUp: () => void) {
    this.request = request
    this.#onGivenUp = onGivenUp
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.answer.catch(() => {})
    const sentence = `the query waited for ${waitMsMax / 1_000} s while others ran; try again later`
    this.#waiting = setTimeout(() => this.giveUp(overloaded(sentence)), waitMsMax)
  }

  start(run: ProcessRun): void {
    clearTimeout(this.#waiting)
    this.#run = run
    this.#resolve(run.answer)
  }

  /** Ends a query that waits. */
  giveUp(error: Error): void {
    if (this.#run !== null) return
    clearTimeout(this.#waiting)
    this.#reject(error)
    this.#onGivenUp()
  }

  stop(): void {
    if (this.#run === null) this.giveUp(unavailable('the query was canceled'))
    else this.#run.stop()
  }
}

/** Opens the service of a data folder, and deletes what a crash left of earlier queries. */
export function openQueryService(options: QueryServiceOptions): QueryService {
  rmSync(queryFolder(options.dataDir), { recursive: true, force: true })
  return new QueryService(options)
}

export class QueryService implements LakeQueries {
  readonly #options: QueryServiceOptions
  readonly #running = new Set<PendingQuery>()
  readonly #waiting = new Set<PendingQuery>()
  readonly #outcomes = new Map<QueryOutcome, number>(
    (['answered', 'query_failed', 'query_too_costly', 'overloaded', 'unavailable'] as const).map((name) => [
      name,
      0,
    ]),
  )
  #onLastDone: () => void = () => {}
  /** Queries begun so far: names their folders. */
  #count = 0
  #isClosed = false

  constructor(options: QueryServiceOptions) {
    this.#options = options
  }

  /** Queries whose process runs, and those that wait. */
  get running(): number {
    return this.#running.size
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Queries so far by what became of them. */
  get outcomes(): ReadonlyMap<QueryOutcome, number> {
    return this.#outcomes
  }

  begin(request: QueryRequest): QueryRun {
    if (this.#isClosed) throw new StoreError('closing', 'The server is shutting down.')
    try {
      this.#requirePlace(request.owner)
    } catch (error) {
      this.#countOutcome(error)
      throw error
    }
    const { waitMsMax = QUERY_WAIT_MS_MAX } = this.#options
    const query = new PendingQuery(request, waitMsMax, () => this.#waiting.delete(query))
    query.answer.then(
      () => this.#countOutcome(null),
      (error) => this.#countOutcome(error),
    )
    this.#waiting.add(query)
    this.#startNext()
    return query
  }

  /** Refuses further queries and those that wait, lets the running ones go on for `drainMs`, then cancels them. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const query of this.#waiting) query.giveUp(new StoreError('closing', 'The server is shutting down.'))
    const { promise: lastDone, resolve } = Promise.withResolvers<void>()
    this.#onLastDone = resolve
    if (this.#running.size === 0) resolve()
    if (!(await within(this.#options.drainMs ?? QUERY_DRAIN_MS, lastDone))) {
      for (const query of this.#running) query.stop()
      await lastDone
    }
    await rm(queryFolder(this.#options.dataDir), { recursive: true, force: true })
  }

  /** @throws StoreError `overloaded` where all places, or all that one client may have, are taken. */
  #requirePlace(owner: string): void {
    const all = [...this.#running, ...this.#waiting]
    const own = all.filter(({ request }) => request.owner === owner).length
    if (own >= QUERIES_PER_KEY_MAX)
      throw overloaded(`${own} queries of this key run or wait; that is as many as it may have.`)
    if (all.length >= QUERIES_AT_ONCE + QUERIES_WAITING_MAX)
      throw overloaded(`${all.length} queries run or wait; try again later.`)
  }

  #startNext(): void {
    const [query] = this.#waiting
    if (query === undefined || this.#running.size >= QUERIES_AT_ONCE) return
    this.#waiting.delete(query)
    this.#running.add(query)
    const startedMs = performance.now()
    query.start(this.#startProcess(query))
    query.answer.finally(() => this.#tellSlow(query.request, performance.now() - startedMs)).catch(() => {})
  }

  #startProcess(query: PendingQuery): ProcessRun {
    const {
      dataDir,
      diskReserveMb = DISK_RESERVE_MB_DEFAULT,
      log,
      msMax = QUERY_MS_MAX,
      onUnreadable,
    } = this.#options
    const { sql, format, rowsMax } = query.request
    const folder = join(queryFolder(dataDir), `${this.#count++}`)
    return new ProcessRun({
      task: { dataDir, folder, sql, format, rowsMax, diskReserveMb },
      msMax,
      log,
      onEnd: () => this.#onEnd(query),
      onUnreadable: () => onUnreadable?.(),
    })
  }

  /** As many lines as queries run: QUERIES_AT_ONCE in QUERY_SLOW_MS at most. */
  #tellSlow({ sql }: QueryRequest, ms: number): void {
    if (ms < (this.#options.slowMs ?? QUERY_SLOW_MS)) return
    const text = truncateText(sql.replace(/\s+/g, ' ').trim(), QUERY_LOGGED_CHARACTERS)
    this.#options.log.warn({ ms: Math.round(ms), sql: text }, 'a query took long')
  }

  #onEnd(query: PendingQuery): void {
    assert(this.#running.delete(query), 'a query ends once')
    this.#startNext()
    if (this.#running.size === 0) this.#onLastDone()
  }

  #countOutcome(error: unknown): void {
    const code = error instanceof StoreError ? error.code : 'unavailable'
    const outcome = [...this.#outcomes.keys()].find((name) => name === (error === null ? 'answered' : code))
    const counted = outcome ?? 'unavailable'
    this.#outcomes.set(counted, (this.#outcomes.get(counted) ?? 0) + 1)
  }
}
