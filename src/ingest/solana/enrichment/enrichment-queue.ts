// Tokens that wait to be asked about: those that somebody wants first, then the hottest ones, then those that are traded, the latest
// first.
import { BoundedMap } from '../../../lib/collections/bounded-map.ts'
import { recordFrom } from '../../../lib/record.ts'
import { RecencyQueue } from '../../recency-queue.ts'
import { ENRICH_ATTEMPTS_MAX, ENRICH_KNOWN_MAX, ENRICH_RETRY_MS, ENRICH_WAITING_MAX } from '../limits.ts'

/**
 * `asked`: somebody reads the token or has submitted an analysis of it; `hot`: it is on the first pages of the market, where readers
 * look next; `traded`: it was launched or traded. The most urgent first.
 */
const URGENCIES = ['asked', 'hot', 'traded'] as const
export type Urgency = (typeof URGENCIES)[number]
/** Of so many one begins with those that are traded: where an endpoint is slow, what is hot could take all of its time. */
const TRADED_FIRST_EVERY = 4
const TRADED_BEFORE_HOT = ['asked', 'traded', 'hot'] as const

export interface QueueOptions {
  /** How old an answer may be before it is asked for again. */
  freshMs: Readonly<Record<Urgency, number>>
  /** How many are asked about at once. */
  concurrency: number
  /** Asks about a mint. Does not reject. @returns whether there was an answer */
  ask(mint: string): Promise<boolean>
  nowMs(): number
  /** Since when the market holds a token; null: it does not. */
  heldSince(mint: string): number | null
}

interface Known {
  /** When it was last answered, on the monotonic clock; -Infinity: not yet. */
  answeredAtMs: number
  /** The token that has the answer: one that gave way to others and came back has it no more. */
  heldSince: number | null
  /** Attempts since that have failed, and when the latest did. */
  failures: number
  failedAtMs: number
}
const UNKNOWN: Known = {
  answeredAtMs: Number.NEGATIVE_INFINITY,
  heldSince: null,
  failures: 0,
  failedAtMs: Number.NEGATIVE_INFINITY,
}

/**
 * Asks about each mint once at a time, and not again while the answer is fresh. What could not be had is asked for again after a
 * while, some times, and then when it is next wanted.
 */
export class EnrichmentQueue {
  answered = 0
  failed = 0
  /** Given up because too many waited. */
  displaced = 0
  #takes = 0
  #idle: PromiseWithResolvers<void> | null = null
  readonly #options: QueueOptions
  readonly #queues = recordFrom(URGENCIES, () => new RecencyQueue(ENRICH_WAITING_MAX))
  readonly #asking = new Set<string>()
  readonly #known = new BoundedMap<string, Known>({ entriesMax: ENRICH_KNOWN_MAX })
  /** What could not be had, in the order in which it failed. */
  readonly #failures = new BoundedMap<string, number>({ entriesMax: ENRICH_WAITING_MAX })

  constructor(options: QueueOptions) {
    this.#options = options
  }

  /** Resolves when nothing is asked for any more; null: nothing is. */
  get pending(): Promise<void> | null {
    return this.#idle?.promise ?? null
  }

  /** The last of them is asked about first. */
  want(mints: readonly string[], urgency: Urgency): void {
    for (const mint of mints) {
      this.#known.renew(mint)
      if (this.#isDue(mint, urgency)) this.#add(mint, urgency)
    }
    this.#askNext()
  }

  #isDue(mint: string, urgency: Urgency): boolean {
    if (this.#asking.has(mint)) return false
    const { answeredAtMs, heldSince, failures, failedAtMs } = this.#known.get(mint) ?? UNKNOWN
    const nowMs = this.#options.nowMs()
    if (failures > 0 && nowMs - failedAtMs < ENRICH_RETRY_MS) return false
    // The hot ones are wanted every few seconds: those that cannot be had would be asked for for ever, before all that are traded.
    const isGivenUp = urgency === 'hot' && failures >= ENRICH_ATTEMPTS_MAX
    if (isGivenUp && nowMs - failedAtMs < this.#options.freshMs.hot) return false
    const isYoung = nowMs - answeredAtMs < this.#options.freshMs[urgency]
    return !isYoung || heldSince !== this.#options.heldSince(mint)
  }

  /** Asks again for what could not be had. */
  tick(): void {
    const dueMs = this.#options.nowMs() - ENRICH_RETRY_MS
    for (let oldest = this.#failures.oldest; oldest !== null && oldest.value <= dueMs; ) {
      this.#failures.delete(oldest.key)
      this.#add(oldest.key, 'traded')
      oldest = this.#failures.oldest
    }
    this.#askNext()
  }

  #add(mint: string, urgency: Urgency): void {
    const moreUrgent = URGENCIES.slice(0, URGENCIES.indexOf(urgency))
    if (moreUrgent.some((each) => this.#queues[each].has(mint))) return
    if (this.#queues[urgency].add(mint) !== null) this.displaced++
  }

  /** The next mint. One that waited with several urgencies is passed over the second time. */
  #take(): string | null {
    this.#takes++
    for (const urgency of this.#takes % TRADED_FIRST_EVERY === 0 ? TRADED_BEFORE_HOT : URGENCIES) {
      const queue = this.#queues[urgency]
      for (let mint = queue.take(); mint !== null; mint = queue.take())
        if (this.#isDue(mint, urgency)) return mint
    }
    return null
  }

  #askNext(): void {
    while (this.#asking.size < this.#options.concurrency) {
      const mint = this.#take()
      if (mint === null) break
      this.#asking.add(mint)
      this.#idle ??= Promise.withResolvers()
      void this.#options.ask(mint).then((isAnswered) => this.#onAnswer(mint, isAnswered))
    }
    if (this.#asking.size > 0) return
    this.#idle?.resolve()
    this.#idle = null
  }

  #onAnswer(mint: string, isAnswered: boolean): void {
    const nowMs = this.#options.nowMs()
    const known = this.#known.get(mint) ?? UNKNOWN
    this.#asking.delete(mint)
    if (isAnswered) {
      this.answered++
      this.#known.set(mint, { ...UNKNOWN, answeredAtMs: nowMs, heldSince: this.#options.heldSince(mint) })
    } else {
      this.failed++
      const failures = known.failures + 1
      this.#known.set(mint, { ...known, failures, failedAtMs: nowMs })
      if (failures < ENRICH_ATTEMPTS_MAX) this.#failures.set(mint, nowMs)
    }
    this.#askNext()
  }

  describe(): Record<string, number> {
    const { answered, failed, displaced } = this
    const waiting = URGENCIES.reduce((sum, urgency) => sum + this.#queues[urgency].size, 0)
    return { answered, failed, displaced, waiting, asking: this.#asking.size }
  }
}
