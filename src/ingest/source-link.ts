import {
  type EventSink,
  type MarketEvent,
  MISSING_PARTS_MAX,
  type MissingPart,
  type ReconnectEvent,
} from '../schema/event.ts'

/**
 * Tells the market when a feed loses its source and when it has it again: a `disconnect` and a `reconnect` in turn, however often
 * the feed says so. Data of that time may be missing, unless the feed heals: README.md says how.
 */
export class SourceLink {
  #isUp = true
  readonly #feed: string
  readonly #sink: EventSink
  readonly #onFault: (error: unknown) => void

  /** @param onFault called where the market throws */
  constructor(feed: string, sink: EventSink, onFault: (error: unknown) => void) {
    this.#feed = feed
    this.#sink = sink
    this.#onFault = onFault
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /**
   * @param sinceMs when the feed last had data, Unix ms.
   * @param healUntilMs the feed brings what it has missed, and says so with `heal` by this time, Unix ms; null: it does not. While it
   * is away already this gives it more time.
   */
  lose(sinceMs: number, nowMs: number, healUntilMs: number | null = null): void {
    if (!this.#isUp && healUntilMs === null) return
    this.#isUp = false
    this.#apply({ ...this.#loss(sinceMs, nowMs), ...(healUntilMs !== null && { healUntilMs }) })
  }

  /** While it is away: these parts of what it has missed stay missing, whatever becomes of the rest. The others as for `lose`. */
  miss(sinceMs: number, nowMs: number, healUntilMs: number, missing: readonly MissingPart[]): void {
    if (this.#isUp) return
    this.#apply({ ...this.#loss(sinceMs, nowMs), healUntilMs, missing: toldParts(missing) })
  }

  #loss(sinceMs: number, nowMs: number) {
    return { type: 'disconnect', ts: nowMs, feed: this.#feed, sinceMs: Math.min(sinceMs, nowMs) } as const
  }

  /** What was missed stays missing. */
  restore(nowMs: number): void {
    this.#restore({ type: 'reconnect', ts: nowMs, feed: this.#feed })
  }

  /** What was missed has been delivered since `lose`, with the times of then and in their order, but for these parts. */
  heal(nowMs: number, missing: readonly MissingPart[] = []): void {
    const told = { healed: true, ...(missing.length > 0 && { missing: toldParts(missing) }) }
    this.#restore({ type: 'reconnect', ts: nowMs, feed: this.#feed, ...told })
  }

  #restore(event: ReconnectEvent): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#apply(event)
  }

  #apply(event: MarketEvent): void {
    try {
      this.#sink.apply(event, event.ts)
    } catch (error) {
      this.#onFault(error)
    }
  }
}

/** At most MISSING_PARTS_MAX: the last one then covers all others. */
function toldParts(missing: readonly MissingPart[]): MissingPart[] {
  const parts = missing.slice(0, MISSING_PARTS_MAX).map((part) => ({ ...part }))
  const last = parts[MISSING_PARTS_MAX - 1]
  if (last !== undefined)
    for (const { fromMs, toMs } of missing.slice(MISSING_PARTS_MAX)) {
      last.fromMs = Math.min(last.fromMs, fromMs)
      last.toMs = Math.max(last.toMs, toMs)
    }
  return parts
}
