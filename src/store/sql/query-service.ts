// Runs SQL of HTTP clients on the lake: QUERIES_AT_ONCE at once, the others wait their turn.

import { assert } from '../../lib/assert.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import { StoreError, unavailable } from '../errors.ts'
import { closing, type JobServiceOptions, RunningJobs } from '../lake-jobs.ts'
import {
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
import type { LakeQueries, QueryAnswer, QueryRequest, QueryRun } from '../types.ts'
import { ProcessRun } from './process-run.ts'

export interface QueryServiceOptions extends JobServiceOptions {
  /** How long a query may wait, ms. */
  waitMsMax?: number
  /** How long a query may run before the log tells of it, ms. */
  slowMs?: number
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
export const openQueryService = (options: QueryServiceOptions): QueryService => new QueryService(options)

export class QueryService implements LakeQueries {
  readonly #options: QueryServiceOptions
  readonly #running: RunningJobs<PendingQuery>
  readonly #waiting = new Set<PendingQuery>()
  readonly #outcomes = new Map<QueryOutcome, number>(
    (['answered', 'query_failed', 'query_too_costly', 'overloaded', 'unavailable'] as const).map((name) => [
      name,
      0,
    ]),
  )

  constructor(options: QueryServiceOptions) {
    this.#options = options
    this.#running = new RunningJobs(queryFolder(options.dataDir))
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
    this.#running.requireOpen()
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
    const drained = this.#running.close(this.#options.drainMs ?? QUERY_DRAIN_MS)
    for (const query of this.#waiting) query.giveUp(closing())
    await drained
    this.#running.removeFolder()
  }

  /** @throws StoreError `overloaded` where all places, or all that one client may have, are taken. */
  #requirePlace(owner: string): void {
    const all = [...this.#running.all, ...this.#waiting]
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
    const { sql, format, rowsMax } = query.request
    return new ProcessRun({
      task: { ...this.#running.nextTask(this.#options), sql, format, rowsMax },
      msMax: this.#options.msMax ?? QUERY_MS_MAX,
      service: this.#options,
      onEnd: () => this.#onEnd(query),
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
  }

  #countOutcome(error: unknown): void {
    const code = error instanceof StoreError ? error.code : 'unavailable'
    const outcome = [...this.#outcomes.keys()].find((name) => name === (error === null ? 'answered' : code))
    const counted = outcome ?? 'unavailable'
    this.#outcomes.set(counted, (this.#outcomes.get(counted) ?? 0) + 1)
  }
}
