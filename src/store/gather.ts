// In: commits of many callers. Out: batches, one at a time, each durable or refused as a whole. Holds at most
// QUEUE_ROWS_MAX rows: beyond that a caller is refused at once. Never splits a commit, never reorders.
import type { EncodedWrite } from './cells.ts'
import { BATCH_ROWS_MAX, QUEUE_ROWS_MAX } from './limits.ts'
import { unavailable } from './worker-link.ts'

export interface Gatherer {
  /** Resolves when the rows are durable. */
  add(writes: EncodedWrite[]): Promise<void>
  /** Resolves when nothing waits and nothing is on its way. */
  idle(): Promise<void>
}

/** Writes one batch. A rejection refuses all of it. */
export type Send = (writes: EncodedWrite[]) => Promise<void>

interface Waiting {
  writes: EncodedWrite[]
  resolve(): void
  reject(error: Error): void
}

export function gatherer(send: Send, gatherMs: number): Gatherer {
  const queue: Waiting[] = []
  let queuedRows = 0
  let timer: NodeJS.Timeout | null = null
  let sending: Promise<void> | null = null

  function takeBatch(): Waiting[] {
    let rows = 0
    let count = 0
    while (count < queue.length && (count === 0 || rows + queue[count].writes.length <= BATCH_ROWS_MAX)) {
      rows += queue[count++].writes.length
    }
    queuedRows -= rows
    return queue.splice(0, count)
  }

  async function sendBatch(batch: Waiting[]): Promise<void> {
    try {
      await send(batch.flatMap(({ writes }) => writes))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error as Error)
    }
  }

  /**
   * Resolves once a turn of the event loop has brought nobody, or enough have waited long enough. Callers who were just
   * answered come back with their next rows: sent at once, a batch would miss them, and two halves would take turns.
   */
  async function gathered(): Promise<void> {
    const untilMs = performance.now() + gatherMs
    for (let rows = 0; rows < queuedRows && performance.now() < untilMs; ) {
      rows = queuedRows
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      await gathered()
      await sendBatch(takeBatch())
    }
    sending = null
  }

  function schedule(): void {
    if (timer !== null || sending !== null) return
    timer = setTimeout(() => {
      timer = null
      sending ??= drain()
    }, gatherMs)
  }

  return {
    add(writes) {
      if (queuedRows + writes.length > QUEUE_ROWS_MAX) {
        return Promise.reject(unavailable('too many rows are waiting to be stored'))
      }
      return new Promise((resolve, reject) => {
        queue.push({ writes, resolve, reject })
        queuedRows += writes.length
        schedule()
      })
    },
    async idle() {
      while (timer !== null || sending !== null) {
        if (sending !== null) await sending
        else await new Promise((resolve) => setTimeout(resolve, gatherMs))
      }
    },
  }
}
