// How far a reader is behind, from the times that the bus gives its messages and this process's monotonic clock. The clocks of two
// machines are never compared: the least difference that was seen between the two stands for a message that took no time.
import { CLOCK_SPAN_MS } from './limits.ts'

interface Span {
  fromMs: number
  leastMs: number
}

export class Lag {
  #current: Span | null = null
  #before: Span | null = null
  /** The bus's time of the newest state that is applied: of the last message that told more than those before it. */
  #appliedBusMs: number | null = null
  /** That of the last message that is applied. */
  #heardBusMs: number | null = null
  /** When this process last knew that it had applied everything, on its own clock. */
  #confirmedAtMs = Number.NEGATIVE_INFINITY

  /** Something that the bus made at `busMs` of its clock has just arrived, at `nowMs` of this process's monotonic clock. */
  compareClocks(busMs: number, nowMs: number): void {
    const differenceMs = nowMs - busMs
    if (this.#current === null || nowMs - this.#current.fromMs > CLOCK_SPAN_MS) {
      this.#before = this.#current
      this.#current = { fromMs: nowMs, leastMs: differenceMs }
    } else this.#current.leastMs = Math.min(this.#current.leastMs, differenceMs)
  }

  /** Everything up to a message of this time of the bus is applied, and the market is in another state than before it. */
  applied(busMs: number): void {
    this.#appliedBusMs = this.#heardBusMs = busMs
  }

  /** Everything up to a message of this time of the bus is applied, which told nothing new: the writer cannot record, perhaps. */
  heard(busMs: number): void {
    this.#heardBusMs = busMs
  }

  /** Whether the last message that is applied is older than that time of the bus, which is told in whole milliseconds. */
  isBefore(busMs: number): boolean {
    return busMs >= (this.#heardBusMs ?? 0) + 1
  }

  /** At that moment of this process's clock the bus had nothing that is not applied by now. */
  confirm(atMs: number): void {
    this.#confirmedAtMs = Math.max(this.#confirmedAtMs, atMs)
  }

  /** The age of the newest state that is applied, ms. It grows while the writer is away or records nothing; Infinity: nothing is applied yet. */
  lagMs(nowMs: number): number {
    return this.#ageMs(this.#appliedBusMs, nowMs)
  }

  /** How long ago the writer said the last that is applied, ms; Infinity: it has said nothing yet. */
  silentMs(nowMs: number): number {
    return this.#ageMs(this.#heardBusMs, nowMs)
  }

  #ageMs(busMs: number | null, nowMs: number): number {
    if (busMs === null || this.#current === null) return Number.POSITIVE_INFINITY
    const leastMs = Math.min(this.#current.leastMs, this.#before?.leastMs ?? Number.POSITIVE_INFINITY)
    return Math.max(0, nowMs - (busMs + leastMs))
  }

  /** For how long this reader may lack something that the stream has, ms; Infinity: it never had everything. */
  behindMs(nowMs: number): number {
    return Math.min(this.silentMs(nowMs), nowMs - this.#confirmedAtMs)
  }
}
