// Looks, while nothing arrives, whether that is because the stream has no more, or because this reader is cut off from it.
import type { Clock } from '../../lib/clock.ts'
import type { Bus } from '../bus.ts'
import { isStreamMissing } from '../bus-errors.ts'
import type { Lag } from './lag.ts'
import { ANSWER_MS_MAX, SILENT_MS, STALLED_MS, WATCH_MS } from './limits.ts'
import { rangeOf, type StreamRange } from './stream-place.ts'

export interface Watched {
  /** The stream's number of the last message that is applied. */
  readonly sequence: number
  /** Whether that is in the market that is read. */
  readonly isCurrent: boolean
  /** Of the stream that is followed. */
  readonly created: string
  /** When the last message arrived, on the monotonic clock. */
  readonly arrivedAtMs: number
}

export class BusWatch {
  readonly #bus: Bus
  readonly #clock: Clock
  readonly #lag: Lag
  readonly #watched: Watched
  readonly #onStale: () => void
  readonly #timer: NodeJS.Timeout
  /** The last message of the stream as it was at that moment. */
  #known: { last: number; atMs: number } | null = null
  /** When the stream was asked about and has not answered yet; null: it has. */
  #askedAtMs: number | null = null

  /** @param onStale called where messages have to be asked for anew: the stream is gone or made anew, or its messages do not arrive */
  constructor(bus: Bus, clock: Clock, lag: Lag, watched: Watched, onStale: () => void) {
    this.#bus = bus
    this.#clock = clock
    this.#lag = lag
    this.#watched = watched
    this.#onStale = onStale
    this.#timer = setInterval(() => this.#look(), WATCH_MS)
  }

  /** To be called when messages were applied. */
  check(): void {
    const { sequence, isCurrent } = this.#watched
    if (this.#known === null || !isCurrent || sequence < this.#known.last) return
    this.#lag.confirm(this.#known.atMs)
    this.#known = null
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const nowMs = this.#clock.monotonicMs()
    // What was asked while the connection was lost has no answer.
    const isAsking = this.#askedAtMs !== null && nowMs - this.#askedAtMs < ANSWER_MS_MAX
    if (isAsking || this.#lag.behindMs(nowMs) < SILENT_MS) return
    this.#askedAtMs = nowMs
    this.#ask(nowMs)
      // Where this reader is cut off, the time without an answer tells.
      .catch((error: unknown) => {
        if (isStreamMissing(error)) this.#onStale()
      })
      .finally(() => {
        if (this.#askedAtMs === nowMs) this.#askedAtMs = null
      })
  }

  async #ask(atMs: number): Promise<void> {
    const { manager, names } = this.#bus
    const range = rangeOf(await manager.streams.info(names.stream))
    if (this.#isStale(range, atMs)) {
      this.#onStale()
      return
    }
    this.#known = { last: range.last, atMs }
    this.check()
  }

  #isStale({ last, lastAtMs, created }: StreamRange, nowMs: number): boolean {
    const { sequence, isCurrent, arrivedAtMs } = this.#watched
    if (created !== this.#watched.created || last < sequence) return true
    // A bus that has lost its last messages uses their numbers again.
    if (last === sequence && isCurrent && this.#lag.isBefore(lastAtMs)) return true
    return last > sequence && nowMs - arrivedAtMs > STALLED_MS
  }
}
