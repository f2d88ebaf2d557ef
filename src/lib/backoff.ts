/** The wait after so many failures in a row (0: the first): `minMs`, doubled with each further one, up to `maxMs`. */
export const backoffMs = (failures: number, minMs: number, maxMs: number): number =>
  Math.min(maxMs, minMs * 2 ** Math.min(failures, 30))

/** Less a random half, so that those who failed together do not return together. */
export const jittered = (ms: number): number => ms * (0.5 + Math.random() / 2)

/** The waits between attempts at something that fails. */
export class Backoff {
  readonly #minMs: number
  readonly #maxMs: number
  #failures = 0

  constructor(minMs: number, maxMs: number) {
    this.#minMs = minMs
    this.#maxMs = maxMs
  }

  /** The wait after one more failure. */
  nextMs(): number {
    return backoffMs(this.#failures++, this.#minMs, this.#maxMs)
  }

  /** It has succeeded. */
  reset(): void {
    this.#failures = 0
  }
}
