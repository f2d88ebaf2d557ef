import { assert } from '../../lib/assert.ts'

const WEIGHT_SCALE = 1_024

/**
 * Draws slots with a probability in proportion to their weight, in O(log n), with a binary indexed tree (P. Fenwick, 1994). Weights
 * are whole numbers inside, so that sums stay exact.
 */
export class Popularity {
  readonly #tree: Float64Array
  readonly #weights: Float64Array
  readonly #top: number
  #total = 0

  constructor(slotsMax: number) {
    this.#top = 2 ** Math.ceil(Math.log2(slotsMax))
    this.#tree = new Float64Array(this.#top + 1)
    this.#weights = new Float64Array(slotsMax)
  }

  getWeight(slot: number): number {
    return this.#weights[slot] / WEIGHT_SCALE
  }

  /** Sets a slot's weight. 0 removes the slot; any other weight leaves at least a small chance. */
  set(slot: number, weight: number): void {
    const scaled = weight === 0 ? 0 : Math.max(1, Math.round(weight * WEIGHT_SCALE))
    const change = scaled - this.#weights[slot]
    this.#weights[slot] = scaled
    this.#total += change
    for (let node = slot + 1; node <= this.#top; node += node & -node) this.#tree[node] += change
  }

  /** The slot at the share `uniform` (from 0 to below 1) of the total weight. */
  draw(uniform: number): number {
    assert(this.#total > 0, 'a draw needs a slot with weight')
    let left = Math.floor(uniform * this.#total)
    let slot = 0
    for (let step = this.#top; step >= 1; step >>= 1) {
      if (slot + step <= this.#top && this.#tree[slot + step] <= left) {
        slot += step
        left -= this.#tree[slot]
      }
    }
    return slot
  }
}
