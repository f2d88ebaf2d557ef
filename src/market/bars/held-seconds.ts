// Seconds with trades that stay open although their tokens have newer ones than the pending seconds reach back, because a feed heals:
// its trades may still come. There are none otherwise.
import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  wrongLength,
} from '../../lib/sections/sections.ts'
import { T } from './bar-ring.ts'
import { PENDING_STRIDE } from './token-block.ts'

/** Of one token, in order of time: `count` pending seconds, one behind the other. */
interface TokenSeconds {
  numbers: Float64Array
  count: number
}

const FIRST_CAPACITY = 16
const NONE: TokenSeconds = { numbers: new Float64Array(0), count: 0 }

export class HeldSeconds implements Saved {
  /** Seconds of all tokens. */
  total = 0
  readonly #tokens = new Map<number, TokenSeconds>()

  slots(): number[] {
    return [...this.#tokens.keys()]
  }

  /** The numbers of a token's seconds, in order of time, and how many there are. Valid until one is added. */
  of(slot: number): Readonly<TokenSeconds> | undefined {
    return this.#tokens.get(slot)
  }

  /**
   * Finds a second of a token, or makes place for it. `numbers` and the index there at which it lies, or is to be written: its T is 0
   * then.
   */
  place(slot: number, second: number): { numbers: Float64Array; at: number } {
    let token = this.#tokens.get(slot)
    if (token === undefined) {
      token = { numbers: new Float64Array(FIRST_CAPACITY * PENDING_STRIDE), count: 0 }
      this.#tokens.set(slot, token)
    }
    // What comes is nearly always the newest.
    let index = token.count
    while (index > 0 && token.numbers[(index - 1) * PENDING_STRIDE + T] >= second) index--
    const at = index * PENDING_STRIDE
    if (index < token.count && token.numbers[at + T] === second) return { numbers: token.numbers, at }
    const end = token.count * PENDING_STRIDE
    if (end === token.numbers.length) {
      const larger = new Float64Array(2 * end)
      larger.set(token.numbers)
      token.numbers = larger
    }
    token.numbers.copyWithin(at + PENDING_STRIDE, at, end)
    token.numbers.fill(0, at, at + PENDING_STRIDE)
    token.count++
    this.total++
    return { numbers: token.numbers, at }
  }

  /** A copy of a second of a token; null: it is not held. */
  copy(slot: number, second: number): Float64Array | null {
    const { numbers, count } = this.#tokens.get(slot) ?? NONE
    for (let at = 0; at < count * PENDING_STRIDE; at += PENDING_STRIDE)
      if (numbers[at + T] === second) return numbers.slice(at, at + PENDING_STRIDE)
    return null
  }

  /** Takes away the first `count` seconds of a token. */
  remove(slot: number, count: number): void {
    const token = this.#tokens.get(slot)
    if (token === undefined || count === 0) return
    this.total -= count
    token.numbers.copyWithin(0, count * PENDING_STRIDE, token.count * PENDING_STRIDE)
    token.count -= count
    if (token.count === 0) this.#tokens.delete(slot)
  }

  clear(slot: number): void {
    this.remove(slot, this.#tokens.get(slot)?.count ?? 0)
  }

  *save(): Iterable<Section> {
    const saved: number[] = []
    for (const [slot, { numbers, count }] of this.#tokens) {
      saved.push(slot, count)
      for (let at = 0; at < count * PENDING_STRIDE; at++) saved.push(numbers[at])
    }
    yield numbersSection('bars.held', Float64Array.from(saved))
  }

  restore(sections: SectionReader): void {
    // Checkpoints of formats before 3 have none.
    if (!sections.has('bars.held')) return
    const saved = sections.float64('bars.held')
    let at = 0
    while (at + 2 <= saved.length) {
      const [slot, count] = saved.subarray(at, at + 2)
      const numbers = saved.slice(at + 2, at + 2 + count * PENDING_STRIDE)
      if (numbers.length !== count * PENDING_STRIDE) break
      this.#tokens.set(slot, { numbers, count })
      this.total += count
      at += 2 + count * PENDING_STRIDE
    }
    if (at !== saved.length) throw wrongLength('bars.held')
  }
}
