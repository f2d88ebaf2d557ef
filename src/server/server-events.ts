// What the server itself brings to the market: how often tokens were analysed, and which events could not be recorded.
import type { LostInterval } from '../journal/types.ts'
import type { FeedSink } from '../recording/event-recorder.ts'

export class ServerEvents {
  readonly #sink: FeedSink
  /** Counts of analyses that could not be recorded, by token: one for each token of the market at most. */
  readonly #lostCounts = new Map<string, number>()

  constructor(sink: FeedSink) {
    this.#sink = sink
  }

  /** The number of accepted analyses of a token has changed. */
  setAnalysisCount(mint: string, count: number): void {
    const { timeMs } = this.#sink
    const event = { type: 'analysisCount', mint, ts: timeMs, count } as const
    const isLost = this.#sink.apply(event, timeMs) === 'not_recorded'
    if (isLost) this.#lostCounts.set(mint, count)
    else this.#lostCounts.delete(mint)
  }

  /** What was lost is told to the market, and recorded, as soon as that is possible again. */
  noteLost({ fromMs, toMs }: LostInterval): void {
    const nowMs = Math.max(this.#sink.timeMs, toMs)
    this.#sink.apply({ type: 'gap', ts: nowMs, fromMs, toMs, reason: 'lost' }, nowMs)
    for (const [mint, count] of [...this.#lostCounts]) this.setAnalysisCount(mint, count)
  }
}
