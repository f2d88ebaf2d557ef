// Every DataPoint shows the price of SOL, so its changes are counted: they are part of a DataPoint's version.
import { z } from 'zod'
import { jsonSection, type Saved, type Section, type SectionReader } from '../../lib/sections/sections.ts'
import { SOL_PRICES_KEPT_MS, SOL_PRICES_MAX } from './limits.ts'

/** Who reports a price that an operator has set: it holds until a feed sends another, however long that takes. */
export const CONSTANT_SOURCE = 'setting'

/** A price, and from when on it was in force, Unix ms. */
interface Report {
  fromMs: number
  usd: number
  source: string
  reportedAtMs: number
}

const savedSchema = z.object({
  usd: z.number().nullable(),
  source: z.string(),
  reportedAtMs: z.number(),
  changeCount: z.number(),
  changedAtMs: z.number(),
  /** Of checkpoints of format 3. */
  recent: z
    .array(
      z.object({
        fromMs: z.number(),
        usd: z.number().nullable(),
        source: z.string(),
        reportedAtMs: z.number(),
      }),
    )
    .optional(),
})

export class SolPrice implements Saved {
  /** NaN while unknown. */
  usd = Number.NaN
  /** Who reported the one in force. */
  source = 'none'
  /** The source's time of the report in force, at most the market time of then, Unix ms. A report of the same price counts. */
  reportedAtMs = 0
  /** How often the price has changed, and the market time at which it last did. */
  changeCount = 0
  changedAtMs = 0
  /** The prices of the last minutes, in order of time, and while a feed heals those since before its gap. */
  #recent: Report[] = []
  /** A feed heals: what it brings is worth what SOL was then. */
  #isHeld = false
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

  /**
   * @param reportedAtMs the source's time; one ahead of the market's counts as now.
   * @param fromMs from when on it is in force; earlier than now only while prices are held.
   */
  set(usd: number, source: string, reportedAtMs: number, nowMs: number, fromMs = nowMs): void {
    const report = { fromMs, usd, source, reportedAtMs: Math.min(reportedAtMs, nowMs) }
    if (!this.#remember(report, nowMs) && this.#isHeld) return
    this.source = source
    this.reportedAtMs = report.reportedAtMs
    if (Object.is(usd, this.usd)) return
    this.usd = usd
    this.changedAtMs = nowMs
    this.changeCount++
  }

  /**
   * Whether a report is older than the one in force at `fromMs`, which stays then: while a feed heals that is the one of the report's
   * own time. What an operator has set is of no time.
   */
  isLate(source: string, reportedAtMs: number, fromMs: number): boolean {
    const inForce = this.#reportOf(fromMs)
    const isConstant = source === CONSTANT_SOURCE || inForce.source === CONSTANT_SOURCE
    return !isConstant && !Number.isNaN(inForce.usd) && reportedAtMs < inForce.reportedAtMs
  }

  /** A feed heals, or none does: until then events are priced with the price of their own time. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    const { usd, source, reportedAtMs } = this
    if (this.#recent.length === 0) this.#recent.push({ fromMs: 0, usd, source, reportedAtMs })
  }

  /** @returns whether it is the newest. */
  #remember(report: Report, nowMs: number): boolean {
    const recent = this.#recent
    const before = recent.findLastIndex(({ fromMs }) => fromMs <= report.fromMs)
    recent.splice(before + 1, 0, report)
    if (!this.#isHeld) {
      // The one that was in force at the beginning of that time is needed too.
      const first = recent.findLastIndex(({ fromMs }) => fromMs <= nowMs - SOL_PRICES_KEPT_MS)
      if (first > 0) recent.splice(0, first)
    }
    if (recent.length > SOL_PRICES_MAX) recent.splice(1, 1)
    return recent.at(-1) === report
  }

  /** Market time has gone back. */
  rewindTo(timeMs: number): void {
    this.reportedAtMs = Math.min(this.reportedAtMs, timeMs)
    this.changedAtMs = Math.min(this.changedAtMs, timeMs)
    for (const report of this.#recent) {
      report.fromMs = Math.min(report.fromMs, timeMs)
      report.reportedAtMs = Math.min(report.reportedAtMs, timeMs)
    }
  }

  /** What an event of this time is priced with: NaN where no price is known, or the one known was too old by then. */
  usdAt(timeMs: number): number {
    const report = this.#reportOf(timeMs)
    return this.#isStale(report, timeMs) ? Number.NaN : report.usd
  }

  isStaleAt(timeMs: number): boolean {
    return this.#isStale(this, timeMs)
  }

  /** When the price of an event of this time was reported. */
  reportedAtMsOf(timeMs: number): number {
    return this.#reportOf(timeMs).reportedAtMs
  }

  #reportOf(timeMs: number): Omit<Report, 'fromMs'> {
    const recent = this.#recent
    if (!this.#isHeld || recent.length === 0) return this
    let index = recent.length - 1
    while (index > 0 && recent[index].fromMs > timeMs) index--
    return recent[index]
  }

  #isStale({ reportedAtMs, source }: Pick<Report, 'reportedAtMs' | 'source'>, timeMs: number): boolean {
    return timeMs - reportedAtMs > this.#maxAgeMs && source !== CONSTANT_SOURCE
  }

  *save(): Iterable<Section> {
    const { source, reportedAtMs, changeCount, changedAtMs } = this
    const usd = Number.isNaN(this.usd) ? null : this.usd
    const recent = this.#recent.map((each) => ({ ...each, usd: Number.isNaN(each.usd) ? null : each.usd }))
    yield jsonSection('solPrice', { usd, source, reportedAtMs, changeCount, changedAtMs, recent })
  }

  restore(sections: SectionReader): void {
    const { usd, recent = [], ...saved } = sections.json('solPrice', savedSchema)
    this.#recent = recent.map((report) => ({ ...report, usd: report.usd ?? Number.NaN }))
    this.usd = usd ?? Number.NaN
    this.source = saved.source
    this.reportedAtMs = saved.reportedAtMs
    this.changeCount = saved.changeCount
    this.changedAtMs = saved.changedAtMs
  }
}
