const UINT32 = 2 ** 32
const WARM_UP_ROUNDS = 12

/** A deterministic random generator: sfc32 (Chris Doty-Humphrey, PractRand), seeded with splitmix32. */
export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  /** @param seed a safe integer; all of its 53 bits are used. */
  constructor(seed: number) {
    let state = (seed ^ Math.imul(Math.floor(seed / UINT32), 0x85ebca6b)) | 0
    const splitmix = (): number => {
      state = (state + 0x9e3779b9) | 0
      let mixed = state ^ (state >>> 16)
      mixed = Math.imul(mixed, 0x21f0aaad)
      mixed ^= mixed >>> 15
      mixed = Math.imul(mixed, 0x735a2d97)
      return mixed ^ (mixed >>> 15)
    }
    this.#a = splitmix()
    this.#b = splitmix()
    this.#c = splitmix()
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.next()
  }

  /** Uniform in [0, 1), in steps of 2^-32. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    this.#c |= 0
    return (sum >>> 0) / UINT32
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + (high - low) * this.next()
  }

  /** Uniform over 0 to count - 1. */
  below(count: number): number {
    return Math.floor(this.next() * count)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next())
  }

  /** Standard normal, by Box and Muller. Their second value is dropped, so that there is no further state. */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.next()))
    return radius * Math.cos(2 * Math.PI * this.next())
  }

  lognormal(median: number, sigma: number): number {
    return median * Math.exp(sigma * this.normal())
  }

  /** A power law (Pareto) with minimum 1, cut at `max`. */
  pareto(exponent: number, max: number): number {
    return Math.min(max, (1 - this.next()) ** (-1 / exponent))
  }
}
