// In: requests. Out: the worker's replies, each within a time limit. Never leaves a caller waiting: a late reply, a
// dead worker and a full disk are all answers.
import { Worker } from 'node:worker_threads'
import { type ErrorExtra, ServiceError } from '../schema/errors.ts'
import { RETRY_AFTER_S } from './limits.ts'
import type { FromWorker, LogLine, Reply, RequestKind, Requests, WorkerOptions } from './messages.ts'
import type { LakeTrouble } from './types.ts'

export interface WorkerLink {
  request<K extends RequestKind>(
    kind: K,
    ask: Requests[K]['ask'],
    timeoutMs: number,
  ): Promise<Requests[K]['answer']>
  /** True while the worker still works on a commit whose caller was told that it timed out. */
  readonly overdue: boolean
  /** Resolves when the thread has ended: of itself, or after `timeoutMs` whatever it is doing. */
  end(timeoutMs: number): Promise<void>
}

interface Pending {
  kind: RequestKind
  resolve(answer: unknown): void
  reject(error: ServiceError): void
  timer: NodeJS.Timeout
}

export const unavailable = (sentence: string, extra: ErrorExtra = {}): ServiceError =>
  new ServiceError('store_unavailable', sentence, extra, { 'Retry-After': String(RETRY_AFTER_S) })

/**
 * Of a commit whose end nobody saw: its rows are taken back before the next one, but stay if the process dies before. A
 * retry under the same Idempotency-Key is safe either way.
 */
const endUnseen = (kind: RequestKind): ErrorExtra => (kind === 'commit' ? { mayBeStored: true } : {})

/** Starts the worker. `onExit` is called once, when it has ended for any reason. */
export function startWorker(
  options: WorkerOptions,
  told: { log(line: LogLine): void; onTrouble(trouble: LakeTrouble): void },
  onExit: () => void,
): WorkerLink {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: options, execArgv: [] })
  const pending = new Map<number, Pending>()
  const overdue = new Set<number>()
  let lastId = 0
  let ended = false

  function settle(reply: Reply): void {
    overdue.delete(reply.id)
    const waiting = pending.get(reply.id)
    if (waiting === undefined) return
    pending.delete(reply.id)
    clearTimeout(waiting.timer)
    if (reply.ok) waiting.resolve(reply.answer)
    else if (reply.code === 'store_unavailable') waiting.reject(unavailable(reply.message))
    else waiting.reject(new ServiceError(reply.code, reply.message))
  }

  function onEnd(): void {
    ended = true
    for (const [id, { kind, reject, timer }] of pending) {
      clearTimeout(timer)
      pending.delete(id)
      reject(unavailable('the store’s worker ended before it answered', endUnseen(kind)))
    }
    overdue.clear()
    onExit()
  }

  worker.on('message', (message: FromWorker) => {
    if ('log' in message) told.log(message.log)
    else if ('trouble' in message) told.onTrouble(message.trouble)
    else settle(message)
  })
  worker.on('error', (error) => {
    told.log({ level: 'error', message: 'the store’s worker crashed', fields: { error: String(error) } })
  })
  const exited = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      onEnd()
      resolve()
    })
  })

  function expire(id: number, kind: RequestKind, timeoutMs: number): void {
    const waiting = pending.get(id)
    pending.delete(id)
    if (kind === 'commit') overdue.add(id)
    const sentence = `the store did not answer a ${kind} within ${timeoutMs} ms`
    waiting?.reject(unavailable(sentence, endUnseen(kind)))
  }

  return {
    request(kind, ask, timeoutMs) {
      if (ended) return Promise.reject(unavailable('the store is being opened anew'))
      const id = ++lastId
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => expire(id, kind, timeoutMs), timeoutMs)
        pending.set(id, { kind, resolve: resolve as (answer: unknown) => void, reject, timer })
        worker.postMessage({ id, kind, ask })
      })
    },
    get overdue() {
      return overdue.size > 0
    },
    async end(timeoutMs) {
      const timer = setTimeout(() => void worker.terminate(), timeoutMs)
      await exited
      clearTimeout(timer)
    },
  }
}
