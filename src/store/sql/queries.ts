// SQL of HTTP clients on the lake, each query a job: QUERIES_AT_ONCE at once, while others wait their turn.
import { programPath } from '../../lib/process/program-path.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import { StoreError } from '../errors.ts'
import { type LakeJob, type LakeJobBounds, type LakeJobsOptions, LakeProgram } from '../lake-program.ts'
import {
  QUERIES_AT_ONCE,
  QUERIES_PER_KEY_MAX,
  QUERIES_WAITING_MAX,
  QUERY_DRAIN_MS,
  QUERY_HEAP_MB,
  QUERY_LOGGED_CHARACTERS,
  QUERY_MS_MAX,
  QUERY_PROCESS_MB_MAX,
  QUERY_RETRY_AFTER_S,
  QUERY_SLOW_MS,
  QUERY_WAIT_MS_MAX,
} from '../limits.ts'
import { queryFolder } from '../paths.ts'
import type { QueryAnswer, QueryFormat, QueryRequest, QueryRun, StoreLog } from '../types.ts'

/** What the process of a query is told. */
export interface QueryTask {
  sql: string
  format: QueryFormat
  rowsMax: number
}

export interface QueryBounds extends LakeJobBounds {
  /** How long a query may run before the log tells of it, ms. */
  slowMs?: number
}

const OUTCOMES = ['answered', 'query_failed', 'query_too_costly', 'overloaded', 'unavailable'] as const
/** What became of queries: `answered`, or the code of an error. */
export type QueryOutcome = (typeof OUTCOMES)[number]

const overloaded = (sentence: string): StoreError =>
  new StoreError('overloaded', sentence, { retryAfterMs: QUERY_RETRY_AFTER_S * 1_000 })
const tooCostly = (sentence: string): StoreError => new StoreError('query_too_costly', sentence)

/** Runs SQL of HTTP clients on the lake, read-only and within bounds. */
export class Queries {
  readonly #log: StoreLog
  readonly #slowMs: number
  readonly #program: LakeProgram<QueryTask, QueryAnswer>
  /** Whose queries run and wait. */
  readonly #owners = new Map<LakeJob<QueryTask, QueryAnswer>, string>()
  readonly #outcomes = new Map<QueryOutcome, number>(OUTCOMES.map((name) => [name, 0]))

  constructor(lake: LakeJobsOptions, bounds: QueryBounds = {}) {
    const { msMax = QUERY_MS_MAX, waitMsMax = QUERY_WAIT_MS_MAX, drainMs = QUERY_DRAIN_MS } = bounds
    this.#log = lake.log
    this.#slowMs = bounds.slowMs ?? QUERY_SLOW_MS
    this.#program = new LakeProgram(lake, {
      kind: 'query',
      folder: queryFolder(lake.dataDir),
      program: programPath('./query-process', import.meta.url),
      heapMb: QUERY_HEAP_MB,
      confinedToMb: QUERY_PROCESS_MB_MAX,
      atOnce: QUERIES_AT_ONCE,
      msMax,
      waitMsMax,
      drainMs,
      beyond: {
        waited: () =>
          overloaded(`the query waited for ${waitMsMax / 1_000} s while others ran; try again later`),
        late: () =>
          tooCostly(
            `the query took longer than ${msMax / 1_000} s: read fewer rows, for example of one mint or of a short time`,
          ),
        ended: () => tooCostly('the process of the query ended, most likely since it needed too much memory'),
      },
    })
  }

  /** Queries whose process runs, and those that wait. */
  get running(): number {
    return this.#program.jobs.running.length
  }

  get waiting(): number {
    return this.#program.jobs.waiting
  }

  /** Queries so far by what became of them. */
  get outcomes(): ReadonlyMap<QueryOutcome, number> {
    return this.#outcomes
  }

  /** Throws `overloaded` where too many run or wait. */
  begin({ owner, ...task }: QueryRequest): QueryRun {
    this.#requirePlace(owner)
    const job = this.#program.start(task)
    this.#owners.set(job, owner)
    void job.ended.then(() => this.#owners.delete(job))
    const tellSlow = (): void => this.#tellSlow(task.sql, job.beganMs)
    job.result
      .then(
        () => this.#count('answered'),
        (error) => this.#count(error.code),
      )
      .finally(tellSlow)
    return { answer: job.result, stop: () => job.stop() }
  }

  /** Refuses further queries and those that wait, lets the running ones go on for a while, then cancels them. */
  close(): Promise<void> {
    return this.#program.close()
  }

  /** @throws StoreError `overloaded` where all places, or all that one client may have, are taken. */
  #requirePlace(owner: string): void {
    const owners = [...this.#owners.values()]
    const own = owners.filter((each) => each === owner).length
    const isFull = owners.length >= QUERIES_AT_ONCE + QUERIES_WAITING_MAX
    if (own < QUERIES_PER_KEY_MAX && !isFull) return
    this.#count('overloaded')
    throw overloaded(
      own >= QUERIES_PER_KEY_MAX
        ? `${own} queries of this key run or wait; that is as many as it may have.`
        : `${owners.length} queries run or wait; try again later.`,
    )
  }

  /** As many lines as queries run: QUERIES_AT_ONCE in QUERY_SLOW_MS at most. */
  #tellSlow(sql: string, beganMs: number | null): void {
    const ms = performance.now() - (beganMs ?? Infinity)
    if (ms < this.#slowMs) return
    const text = truncateText(sql.replace(/\s+/g, ' ').trim(), QUERY_LOGGED_CHARACTERS)
    this.#log.warn({ ms: Math.round(ms), sql: text }, 'a query took long')
  }

  #count(code: string): void {
    const outcome = OUTCOMES.find((name) => name === code) ?? 'unavailable'
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1)
  }
}
