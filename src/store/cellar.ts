// In: requests to the worker. Out: their answers, from the worker there is now. Starts a new worker when the old one
// ended, until one works. Never acknowledges rows that are not durable, and has rows taken back that were refused: a
// worker is always told the highest row number that a caller was told of.
import type { Clock } from '../lib/clock.ts'
import type { Row } from '../schema/tables.ts'
import { type EncodedWrite, journalEntries } from './cells.ts'
import { openFaults } from './faults.ts'
import {
  CLOSE_TIMEOUT_MS,
  LOOKUP_TIMEOUT_MS,
  LOOKUPS_WAITING_MAX,
  OPEN_TIMEOUT_MS,
  REOPEN_DELAY_MS,
  WORKER_END_MS,
} from './limits.ts'
import type { LogLine, RequestKind, Requests, WorkerOptions } from './messages.ts'
import type { LakeTrouble, Recovered, StoreLog } from './types.ts'
import { startWorker, unavailable, type WorkerLink } from './worker-link.ts'

export interface CellarOptions extends WorkerOptions {
  clock: Clock
  log: StoreLog
  commitTimeoutMs: number
}

/** What a caller says itself; the rest of a request is added here. */
type Said<K extends RequestKind> = Omit<Requests[K]['ask'], 'nowMs' | 'monotonicMs' | 'ackedSeq'>

export interface Cellar {
  readonly recovered: Recovered
  /** False while the store is opened anew or a commit is overdue. */
  readonly writable: boolean
  ask<K extends RequestKind>(kind: K, said: Said<K>, timeoutMs: number): Promise<Requests[K]['answer']>
  /** Reading goes on while the store is opened anew: a look-up waits for it, up to its own time limit. */
  find(analysisId: string): Promise<Row | null>
  /** Why nothing can be written just now; null: it can. */
  readonly trouble: string | null
  readonly lakeTrouble: LakeTrouble
  /** Counts the workers there have been. */
  readonly workers: number
  /** One transaction. */
  commit(writes: EncodedWrite[]): Promise<void>
  /** Flushes, checkpoints, closes and ends the worker. */
  close(): Promise<void>
}

const NOT_OPEN = 'the store cannot be opened yet'

/** Opens the store in a first worker. Rejects when that fails; later failures are healed in the background. */
export async function openCellar(options: CellarOptions): Promise<Cellar> {
  const { clock, log, commitTimeoutMs, ...settings } = options
  const faults = openFaults(log, clock)
  let link: WorkerLink | null = null
  let ackedSeq: number | null = null
  let closing = false
  let workers = 0
  let reopening: NodeJS.Timeout | null = null

  let lakeTrouble: LakeTrouble = { setAside: [], retentionHeld: null }
  const onTrouble = (found: LakeTrouble): void => {
    lakeTrouble = found
  }
  const writeLog = ({ level, message, fields }: LogLine): void => log[level](fields, message)

  /** Look-ups that wait for the store to be open again. */
  const waiting = new Set<() => void>()

  /** Resolves when the store is open or the time is over. */
  function opened(timeoutMs: number): Promise<void> {
    if (link !== null || closing) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, timeoutMs)
      waiting.add(done)
    })
  }

  async function find(analysisId: string): Promise<Row | null> {
    const until = performance.now() + LOOKUP_TIMEOUT_MS
    for (;;) {
      const leftMs = until - performance.now()
      if (waiting.size < LOOKUPS_WAITING_MAX) await opened(leftMs)
      const asked = link
      try {
        return await ask('analysis', { analysisId }, Math.max(1, until - performance.now()))
      } catch (error) {
        // Asked of a worker that ended meanwhile: the next one knows.
        if (asked === null || asked === link || performance.now() >= until) throw error
      }
    }
  }

  /** A request as the worker wants it: with the time, and with how far callers were answered. */
  function ask<K extends RequestKind>(kind: K, said: Said<K>, timeoutMs: number) {
    if (link === null) return Promise.reject(unavailable('the store is being opened anew'))
    return request(link, kind, said, timeoutMs)
  }

  function request<K extends RequestKind>(to: WorkerLink, kind: K, said: Said<K>, timeoutMs: number) {
    const times = { nowMs: Math.floor(clock.now()), monotonicMs: clock.monotonicMs() }
    const complete = { ...said, ...times, ackedSeq } as unknown as Requests[K]['ask']
    return to.request(kind, complete, timeoutMs)
  }

  async function start(): Promise<Recovered> {
    const started = startWorker(settings, { log: writeLog, onTrouble }, () => onExit(started))
    try {
      const opened = await request(started, 'open', {}, OPEN_TIMEOUT_MS)
      ackedSeq = opened.ackedSeq
      link = started
      workers++
      for (const done of waiting) done()
      return opened.recovered
    } catch (error) {
      await started.end(0)
      throw error
    }
  }

  function onExit(ended: WorkerLink): void {
    if (link !== ended) return
    link = null
    scheduleReopen()
  }

  function scheduleReopen(): void {
    if (!closing) reopening = setTimeout(() => void reopen(), REOPEN_DELAY_MS)
  }

  async function reopen(): Promise<void> {
    try {
      await start()
      if (closing) return await link!.end(0)
      log.info({}, 'the store is open again')
      faults.clear(NOT_OPEN)
    } catch (error) {
      faults.report(NOT_OPEN, error)
      scheduleReopen()
    }
  }

  async function commit(writes: EncodedWrite[]): Promise<void> {
    if (link?.overdue) throw unavailable('the disk does not answer')
    ackedSeq = (await ask('commit', { entries: journalEntries(writes) }, commitTimeoutMs)).ackedSeq
  }

  async function close(): Promise<void> {
    closing = true
    for (const done of waiting) done()
    if (reopening !== null) clearTimeout(reopening)
    const last = link
    link = null
    if (last === null) return
    try {
      await request(last, 'close', {}, CLOSE_TIMEOUT_MS)
      await last.end(WORKER_END_MS)
    } catch (error) {
      log.error({ error: String(error) }, 'the store did not close in order; nothing acknowledged is lost')
      await last.end(0)
    }
  }

  const recovered = await start()
  return {
    recovered,
    get workers() {
      return workers
    },
    get trouble() {
      if (link === null) return faults.current[0] ?? 'the store is being opened anew'
      return link.overdue ? 'the disk does not answer' : null
    },
    get lakeTrouble() {
      return lakeTrouble
    },
    get writable() {
      return link !== null && !link.overdue
    },
    ask,
    find,
    commit,
    close,
  }
}
