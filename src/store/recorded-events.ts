// Brings recorded events from the journal to the lake: at an interval, on demand, and when the store is closed. It runs beside the
// flushes of the log, which never wait for it.

import pLimit from 'p-limit'
import type { SegmentDamage } from '../lib/segments/types.ts'
import { within } from '../lib/wait.ts'
import { unavailable } from './errors.ts'
import { CLOSE_FLUSH_MS, EVENTS_TIMEOUT_MS } from './limits.ts'
import { addNew } from './log-losses.ts'
import { PeriodicJob } from './periodic.ts'
import type { StoreParts } from './store-parts.ts'
import type { EventProgress, EventSource } from './types.ts'

const NOT_WRITTEN = 'recorded events could not be brought to the lake; trying again'

export class EventFlushes {
  /** All damage found in the journal so far. */
  readonly damage: SegmentDamage[] = []
  readonly #parts: StoreParts
  readonly #everyMs: number
  /** One flush at a time. */
  readonly #turns = pLimit(1)
  #source: EventSource | null = null
  #onProgress: (progress: EventProgress) => void = () => {}
  #job: PeriodicJob | null = null
  #progress: EventProgress

  /** @param everyMs interval of flushes; 0: only on demand and at close. @param eventNo the last event that the lake has */
  constructor(parts: StoreParts, everyMs: number, eventNo: number) {
    this.#parts = parts
    this.#everyMs = everyMs
    this.#progress = { eventNo, retainedFrom: 1 }
  }

  get progress(): EventProgress {
    return this.#progress
  }

  /** Events that are recorded and not in the lake yet. */
  get waiting(): number {
    return this.#source === null ? 0 : this.#source.lastEventNo - this.#progress.eventNo
  }

  /** From now on brings the events of a journal to the lake. `onProgress` is called after each step. Called once. */
  follow(source: EventSource, onProgress: (progress: EventProgress) => void): void {
    this.#source = source
    this.#onProgress = onProgress
    this.#job = new PeriodicJob(
      () => (this.waiting > 0 ? this.#flushQuietly() : Promise.resolve()),
      this.#everyMs,
    )
  }

  /** Resolves when everything recorded before this call is in the lake. */
  flush(): Promise<void> {
    const source = this.#source
    if (source === null) return Promise.resolve()
    return this.#turns(() => this.#parts.faults.watch(NOT_WRITTEN, () => this.#flushNow(source)))
  }

  /** Runs `copy` while no events are brought to the lake. */
  pauseFor<Copied>(copy: () => Promise<Copied>): Promise<Copied> {
    return this.#turns(copy)
  }

  stop(): void {
    this.#job?.stop()
  }

  /** Flushes once more, for at most CLOSE_FLUSH_MS: the journal keeps the rest. @returns whether that ended in time */
  async close(): Promise<boolean> {
    if (this.#source === null) return true
    const isDone = await within(CLOSE_FLUSH_MS, this.#flushQuietly())
    if (!isDone)
      this.#parts.log.warn({}, 'the last recorded events are not in the lake yet; the next start brings them')
    return isDone
  }

  async #flushQuietly(): Promise<void> {
    await this.flush().catch(() => undefined)
  }

  async #flushNow(source: EventSource): Promise<void> {
    const { client, nowMs } = this.#parts
    const { throughEventNo } = await source.seal()
    for (let isDone = false; !isDone; ) {
      const ask = { nowMs: nowMs(), throughEventNo }
      const { damage, eventNo, retainedFrom } = await client.ask('events', ask, EVENTS_TIMEOUT_MS)
      for (const found of addNew(this.damage, damage))
        this.#parts.log.error({ ...found }, 'a part of the journal is damaged')
      const isFurther = eventNo > this.#progress.eventNo
      this.#progress = { eventNo, retainedFrom }
      this.#onProgress(this.#progress)
      isDone = eventNo >= throughEventNo
      if (!isDone && !isFurther)
        throw unavailable(`the journal lacks the events ${eventNo + 1} to ${throughEventNo}`)
    }
  }
}
