// Every DataPoint shows the price of SOL, so its changes are counted: they are part of a DataPoint's version.
import { z } from 'zod'
import { jsonSection, type Saved, type Section, type SectionReader } from '../checkpoint/sections.ts'

/** Who reports a price that an operator has set: it holds until a feed sends another, however long that takes. */
const CONSTANT_SOURCE = 'setting'

const savedSchema = z.object({
  usd: z.number().nullable(),
  source: z.string(),
  reportedAtMs: z.number(),
  changeCount: z.number(),
  changedAtMs: z.number(),
})

export class SolPrice implements Saved {
  /** NaN while unknown. */
  usd = Number.NaN
  /** Who reported it last. */
  source = 'none'
  /** The source's time of the last report, at most the market time of then, Unix ms. A report of the same price counts. */
  reportedAtMs = 0
  /** How often the price has changed, and the market time at which it last did. */
  changeCount = 0
  changedAtMs = 0
  /** Infinity: a price is never too old. */
  readonly #maxAgeMs: number

  /** @param maxAgeMs how old a price may be for a trade to be priced with it; 0: any age. */
  constructor(maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs === 0 ? Number.POSITIVE_INFINITY : maxAgeMs
  }

  /** How old the price may be, ms; null where its age does not matter. */
  get maxAgeMs(): number | null {
    return this.source === CONSTANT_SOURCE || this.#maxAgeMs === Number.POSITIVE_INFINITY
      ? null
      : this.#maxAgeMs
  }

  /** @param reportedAtMs the source's time; one ahead of the market's counts as now. */
  set(usd: number, source: string, reportedAtMs: number, nowMs: number): void {
    this.source = source
    this.reportedAtMs = Math.min(reportedAtMs, nowMs)
    if (Object.is(usd, this.usd)) return
    this.usd = usd
    this.changedAtMs = nowMs
    this.changeCount++
  }

  /** Market time has gone back. */
  rewindTo(timeMs: number): void {
    this.reportedAtMs = Math.min(this.reportedAtMs, timeMs)
    this.changedAtMs = Math.min(this.changedAtMs, timeMs)
  }

  /** What an event of this time is priced with: NaN where no price is known, or the one known was too old by then. */
  usdAt(timeMs: number): number {
    return this.isStaleAt(timeMs) ? Number.NaN : this.usd
  }

  isStaleAt(timeMs: number): boolean {
    return timeMs - this.reportedAtMs > this.#maxAgeMs && this.source !== CONSTANT_SOURCE
  }

  *save(): Iterable<Section> {
    const { source, reportedAtMs, changeCount, changedAtMs } = this
    const usd = Number.isNaN(this.usd) ? null : this.usd
    yield jsonSection('solPrice', { usd, source, reportedAtMs, changeCount, changedAtMs })
  }

  restore(sections: SectionReader): void {
    const { usd, ...saved } = sections.json('solPrice', savedSchema)
    this.usd = usd ?? Number.NaN
    this.source = saved.source
    this.reportedAtMs = saved.reportedAtMs
    this.changeCount = saved.changeCount
    this.changedAtMs = saved.changedAtMs
  }
}
