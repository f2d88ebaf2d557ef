// What happened in a run: its hash tells two runs apart, and its end explains a failure.
import { createHash } from 'node:crypto'

const EVENTS_KEPT = 20

export class Trace {
  readonly #hash = createHash('sha256')
  readonly last: string[] = []
  events = 0

  note(atMs: number, ...parts: readonly (string | number | null)[]): void {
    const line = `${atMs.toFixed(3)} ${parts.join(' ')}`
    this.events++
    this.#hash.update(`${line}\n`)
    this.last.push(line)
    if (this.last.length > EVENTS_KEPT) this.last.shift()
  }

  get hash(): string {
    return this.#hash.copy().digest('hex').slice(0, 16)
  }
}

/** Something that must never be so. */
export class Violation extends Error {
  readonly invariant: string

  constructor(invariant: string, detail: string) {
    super(detail)
    this.invariant = invariant
  }
}
