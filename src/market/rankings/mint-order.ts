import type { TokenTable } from '../tokens/token-table.ts'

/** Seven characters of seven bits each fit into the 53 bits of a double without loss. */
const PREFIX_CHARS = 7

/**
 * The order of tokens whose keys are equal: alphabetical by mint. A mint's first characters are kept as one number, so that
 * texts are compared only where these are equal.
 */
export class MintOrder {
  readonly #tokens: TokenTable
  readonly #prefixes: Float64Array

  constructor(tokens: TokenTable) {
    this.#tokens = tokens
    this.#prefixes = new Float64Array(tokens.capacity)
  }

  /** A slot was given to this mint. */
  set(slot: number, mint: string): void {
    let prefix = 0
    for (let at = 0; at < PREFIX_CHARS; at++) prefix = prefix * 128 + (mint.charCodeAt(at) & 127)
    this.#prefixes[slot] = prefix
  }

  /** The slots from 0 to before this one have just been given to tokens. */
  restore(slotsUsed: number): void {
    for (let slot = 0; slot < slotsUsed; slot++) this.set(slot, this.#tokens.metadata[slot].mint)
  }

  isBefore(a: number, b: number): boolean {
    const { metadata } = this.#tokens
    return this.#prefixes[a] === this.#prefixes[b]
      ? metadata[a].mint < metadata[b].mint
      : this.#prefixes[a] < this.#prefixes[b]
  }
}
