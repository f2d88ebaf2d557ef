// Notices that a feed refuses much of what it gets, which counts of reasons alone would tell nobody.
import type { Clock } from '../lib/clock.ts'
import { truncateText } from '../lib/text/truncate-text.ts'
import {
  REFUSAL_ACCEPTED_UNCOUNTED_MAX,
  REFUSAL_JUDGED_MIN,
  REFUSAL_REASONS_MAX,
  REFUSAL_SAMPLE_CHARS_MAX,
  REFUSAL_SAMPLES_MAX,
  REFUSAL_SHARE_MAX,
  REFUSAL_SPAN_MS,
  REFUSAL_SPANS,
} from './limits.ts'
import type { FeedLog, RefusalStatus } from './types.ts'

/** What came in one span of time. */
class Span {
  received = 0
  refused = 0
  readonly reasons = new Map<string, number>()
  readonly samples = new Map<string, string>()

  refuse(reason: string, sample: () => string): void {
    this.received++
    this.refused++
    this.#count(reason, 1)
    if (this.samples.size < REFUSAL_SAMPLES_MAX && !this.samples.has(reason)) {
      const text = truncateText(sample().replace(/\p{Cc}+/gu, ' '), REFUSAL_SAMPLE_CHARS_MAX)
      if (text !== '') this.samples.set(reason, text)
    }
  }

  add({ received, refused, reasons, samples }: Span): void {
    this.received += received
    this.refused += refused
    for (const [reason, count] of reasons) this.#count(reason, count)
    for (const [reason, sample] of samples)
      if (this.samples.size < REFUSAL_SAMPLES_MAX && !this.samples.has(reason))
        this.samples.set(reason, sample)
  }

  #count(reason: string, count: number): void {
    const known = this.reasons.get(reason)
    if (known !== undefined || this.reasons.size < REFUSAL_REASONS_MAX)
      this.reasons.set(reason, (known ?? 0) + count)
  }
}

/**
 * Compares what a feed refuses with what it gets: over the latest REFUSAL_SPANS spans of REFUSAL_SPAN_MS, so that it recovers,
 * and at the end of a feed over all that it got. It warns in the log when the share rises above REFUSAL_SHARE_MAX, and says
 * when it has fallen again.
 */
export class RefusalWatch {
  readonly #total = new Span()
  /** The newest last. */
  readonly #spans: { number: number; span: Span }[] = []
  #isEnded = false
  #isTelling = false
  /** Accepted, and in no span yet. */
  #uncounted = 0
  readonly #feed: string
  readonly #clock: Clock
  readonly #log: FeedLog

  constructor(feed: string, clock: Clock, log: FeedLog) {
    this.#feed = feed
    this.#clock = clock
    this.#log = log
  }

  /** Counts what was accepted. It reads the clock for few of the events: reading it takes as long as counting ten. */
  accept(): void {
    if (++this.#uncounted >= REFUSAL_ACCEPTED_UNCOUNTED_MAX) this.#current()
  }

  /** @param sample what was refused, or what is wrong with it; '' where the reason says it all. Must not hold a secret. */
  refuse(reason: string, sample: () => string): void {
    this.#total.refuse(reason, sample)
    this.#current().refuse(reason, sample)
    if (!this.#isTelling && this.#isTooMuch()) this.status()
  }

  /**
   * The feed has come to its end: from now on all that it got is judged, however little that was.
   * @returns a sentence that tells how much it has refused; null where that is not too much.
   */
  end(): string | null {
    this.#isEnded = true
    return tellRefusals(this.#feed, this.status())
  }

  status(): RefusalStatus {
    this.#current()
    const { received, refused, reasons, samples } = this.#isEnded ? this.#total : this.#window()
    const status: RefusalStatus = {
      isTooMuch: this.#isTooMuch(),
      share: received === 0 ? 0 : refused / received,
      refused,
      received,
      windowMs: this.#isEnded ? null : REFUSAL_SPANS * REFUSAL_SPAN_MS,
      reasons: Object.fromEntries([...reasons].toSorted(([, a], [, b]) => b - a)),
      samples: [...samples].map(([reason, sample]) => ({ reason, sample })),
    }
    this.#tell(status)
    return status
  }

  #tell(status: RefusalStatus): void {
    if (status.isTooMuch === this.#isTelling) return
    this.#isTelling = status.isTooMuch
    const details = { feed: this.#feed, ...status }
    if (this.#isTelling) this.#log.warn(details, tellRefusals(this.#feed, status) ?? '')
    else this.#log.info(details, `the feed ${this.#feed} takes what it gets again`)
  }

  /** Whether too much is refused, from the numbers alone. */
  #isTooMuch(): boolean {
    const spans = this.#isEnded ? [this.#total] : this.#spans.map(({ span }) => span)
    const received = spans.reduce((sum, span) => sum + span.received, 0)
    const refused = spans.reduce((sum, span) => sum + span.refused, 0)
    return refused > REFUSAL_SHARE_MAX * received && (this.#isEnded || received >= REFUSAL_JUDGED_MIN)
  }

  /** The span of now, with all that was accepted; those that are older than the window are forgotten. */
  #current(): Span {
    const number = Math.floor(this.#clock.monotonicMs() / REFUSAL_SPAN_MS)
    while (this.#spans.length > 0 && this.#spans[0].number <= number - REFUSAL_SPANS) this.#spans.shift()
    const isNew = this.#spans.at(-1)?.number !== number
    if (isNew) this.#spans.push({ number, span: new Span() })
    const { span } = this.#spans[this.#spans.length - 1]
    span.received += this.#uncounted
    this.#total.received += this.#uncounted
    this.#uncounted = 0
    // Nobody may ask for the status: the log shall say all the same that the feed has recovered.
    if (isNew && this.#isTelling) this.status()
    return span
  }

  #window(): Span {
    const sum = new Span()
    for (const { span } of this.#spans) sum.add(span)
    return sum
  }
}

/** A sentence that says how much a feed refuses, why, and shows samples; null where it is not too much. */
export function tellRefusals(feed: string, status: RefusalStatus): string | null {
  const { isTooMuch, refused, received, windowMs, reasons, samples } = status
  if (!isTooMuch) return null
  const when = windowMs === null ? '' : ` of the last ${windowMs / 60_000} minutes`
  const why = Object.entries(reasons).map(([reason, count]) => `${reason} ${count}`)
  const shown = samples.map(({ reason, sample }) => `${reason}: ${sample}`)
  const examples = shown.length === 0 ? '' : `; the first of them: ${shown.join('; ')}`
  return `the feed ${feed} has refused ${refused} of ${received} records${when} (${why.join(', ')})${examples}`
}
