// The course of a replay, whatever it replays: from the first batch to the end of its source, and how far it is.
import { errorMessage } from '../../lib/error-text.ts'
import { unlessAborted } from '../../lib/wait.ts'
import type { FeedParts } from '../feed-parts.ts'
import { REPLAY_PROGRESS_MS } from '../limits.ts'
import type { Feed, FeedStatus } from '../types.ts'
import type { Pace, ReplaySpeed } from './pace.ts'
import type { ProgressReport, ReplayedPart } from './progress-report.ts'

export interface PlaybackOptions<Batch> {
  /** Iterated once to its end, or closed early when the replay is stopped. */
  batches: AsyncIterable<Batch>
  unit: 'rows' | 'events'
  /** How many of them there are; null: it is not known. */
  total: number | null
  speed: ReplaySpeed
  pace: Pace
  /** A name of the source, for people. */
  label: string | undefined
  /** Shows how far it is. */
  report: ProgressReport | undefined
}

export abstract class Playback<Batch> implements Feed {
  /** Resolves at `markReady`, or at the end; rejects when the source fails before that. */
  readonly ready: Promise<void>
  /** Resolves when the last of it is applied, the replay was stopped or its source failed; the status says which. */
  readonly done: Promise<void>
  protected readonly parts: FeedParts
  /** Rows or events so far. */
  protected count = 0
  /** Market time of the latest, Unix ms; null: none has come yet. */
  protected latestMs: number | null = null
  #error: unknown
  /** This and the next two on the monotonic clock. */
  #startedAtMs: number
  #endedAtMs: number | null = null
  #reportedAtMs: number
  readonly #options: PlaybackOptions<Batch>
  readonly #readiness = Promise.withResolvers<void>()

  constructor(parts: FeedParts, options: PlaybackOptions<Batch>) {
    this.parts = parts
    this.#options = options
    this.#startedAtMs = this.#reportedAtMs = parts.clock.monotonicMs()
    this.ready = this.#readiness.promise
    this.done = this.#run()
  }

  /** Delivers a batch to its end, unless the replay is stopped. */
  protected abstract play(batch: Batch): Promise<void>

  abstract describe(): FeedStatus

  async #run(): Promise<void> {
    const { signal } = this.parts.stopping
    const batches = this.#options.batches[Symbol.asyncIterator]()
    try {
      while (!signal.aborted) {
        const next = await unlessAborted(batches.next(), signal)
        if (next === null || next.done === true) break
        await this.play(next.value)
      }
    } catch (error) {
      this.#fail(error)
    }
    // A source that hangs must not hold up the end.
    await unlessAborted(Promise.resolve(batches.return?.()), signal)
    this.#end()
  }

  #fail(error: unknown): void {
    const { parts } = this
    const { label, unit } = this.#options
    parts.state.set('failed')
    this.#error = error
    parts.log.error({ error: errorMessage(error), [unit]: this.count, label }, 'the replay failed')
    this.#readiness.reject(error)
    const atMs = this.latestMs ?? parts.clock.now()
    parts.linkOf().lose(atMs, atMs)
  }

  #end(): void {
    const { pace, report } = this.#options
    const { clock, counters, log, state, stopping } = this.parts
    pace.end(this.#error)
    this.#endedAtMs = clock.monotonicMs()
    this.#readiness.resolve()
    if (state.current !== 'failed') state.set(stopping.signal.aborted ? 'stopped' : 'finished')
    report?.end()
    const refused = counters.end()
    if (refused === null) log.info(this.describe(), `the replay has ${state.current}`)
    else log.warn(this.describe(), `the replay has ${state.current}: ${refused}`)
  }

  /** Its rate is measured from now on. */
  protected restart(): void {
    this.#startedAtMs = this.#reportedAtMs = this.parts.clock.monotonicMs()
  }

  /** The market has what it begins with. */
  protected markReady(): void {
    this.parts.state.set('running')
    this.#readiness.resolve()
  }

  /** Shows how far it is, now and then. */
  protected report(): void {
    const nowMs = this.parts.clock.monotonicMs()
    if (nowMs - this.#reportedAtMs < REPLAY_PROGRESS_MS) return
    this.#reportedAtMs = nowMs
    this.#options.report?.note(this.part(), { atMs: this.latestMs })
  }

  /** How far it is. */
  protected part(): ReplayedPart {
    const { count: done } = this
    const { total } = this.#options
    const elapsedMs = (this.#endedAtMs ?? this.parts.clock.monotonicMs()) - this.#startedAtMs
    const hasEta = total !== null && done > 0
    return {
      done,
      total,
      percent: total === null ? null : total === 0 ? 100 : Math.min(100, (100 * done) / total),
      perSecond: elapsedMs > 0 ? Math.round((1_000 * done) / elapsedMs) : 0,
      etaMs: hasEta ? Math.max(0, Math.round((elapsedMs / done) * (total - done))) : null,
    }
  }

  /** One that goes as fast as it can brings the market to its state: until then half of it is there. */
  whyWarming(): string | null {
    const { speed, unit } = this.#options
    if (speed !== 'max' || this.parts.state.current !== 'running') return null
    const { done, total, percent } = this.part()
    const told =
      percent === null ? `${done} ${unit}` : `${done} of ${total} ${unit} (${Math.floor(percent)} %)`
    return `The replay has brought ${told} so far`
  }

  async stop(): Promise<void> {
    this.parts.stopping.abort()
    await this.done
  }

  /** The status of the feed. @param details what only this one has */
  protected status(details: Parameters<FeedParts['status']>[0]): FeedStatus {
    return {
      ...this.parts.status(details),
      error: this.#error === undefined ? null : errorMessage(this.#error),
    }
  }
}
