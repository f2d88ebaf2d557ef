// Finds the tokens with a word of mint, symbol or name that begins with a search. The words of neighbouring slots lie in one text,
// so that a search reads memory from one end to the other: 4 to 6 ms for 100 000 tokens, whatever it looks for.
//
// Why nothing cleverer: the page needs the number of matches, so every match has to be visited anyway. With one text for each
// token, which lie scattered in memory, a search that many tokens match took 20 to 60 ms. Signatures of 32 bits (superimposed
// coding) before such texts made rare words faster (2 ms), but not common ones; and an index of sorted words would have to be
// kept in order by every new token.
import { searchWords } from '../../lib/search-words.ts'
import { truncateText } from '../../lib/truncate-text.ts'
import { SEARCH_PENDING_MAX, SEARCHED_CHARACTERS_MAX } from '../limits.ts'
import type { TokenTable } from './token-table.ts'

/** Slots whose words share a text: enough for a few calls, and few enough that a changed token copies a few kilobytes. */
const BLOCK_SLOTS = 64

interface Block {
  /** The words of each slot and a newline, one slot after the other. */
  text: string
  /** Where each slot begins, and the end. */
  readonly starts: Uint32Array
}

export class SearchIndex {
  readonly #tokens: TokenTable
  readonly #blocks: Block[] = []
  /** Slots whose words are not those of their block any more. */
  readonly #pending = new Set<number>()
  /** By slot: the result of the latest search. */
  readonly #found: Uint8Array

  constructor(tokens: TokenTable) {
    this.#tokens = tokens
    this.#found = new Uint8Array(tokens.capacity)
  }

  /** The slot was given to a token, or the token's name or symbol has changed. */
  changed(slot: number): void {
    this.#pending.add(slot)
    if (this.#pending.size >= SEARCH_PENDING_MAX) this.#applyPending()
  }

  /** By slot: 1 where the token has the words of `search` in this order, the last of which may go on. Valid until the next call. */
  find(search: string): Uint8Array {
    this.#applyPending()
    const words = searchWords(search)
    const found = this.#found.fill(0)
    for (const [index, { text, starts }] of this.#blocks.entries()) {
      let inBlock = 0
      for (let at = text.indexOf(words); at !== -1; at = text.indexOf(words, starts[inBlock + 1])) {
        while (starts[inBlock + 1] <= at) inBlock++
        found[index * BLOCK_SLOTS + inBlock] = 1
      }
    }
    return found
  }

  #applyPending(): void {
    for (const slot of this.#pending) this.#setWords(slot, this.#wordsOf(slot))
    this.#pending.clear()
  }

  /** The newlines keep words of one text from being found beside those of another. */
  #wordsOf(slot: number): string {
    const { mint, symbol, name } = this.#tokens.metadata[slot]
    // A token of which only the mint is known has that as symbol and name.
    const words = [...new Set([mint, symbol, name])].map(searchWords).join('\n')
    return `${truncateText(words, SEARCHED_CHARACTERS_MAX)}\n`
  }

  #setWords(slot: number, words: string): void {
    const block = this.#blockOf(slot)
    const { text, starts } = block
    const inBlock = slot % BLOCK_SLOTS
    const [from, to] = [starts[inBlock], starts[inBlock + 1]]
    // `join` copies. A sum would hold on to the texts that it is made of.
    block.text = [text.slice(0, from), words, text.slice(to)].join('')
    for (let next = inBlock + 1; next <= BLOCK_SLOTS; next++) starts[next] += words.length - (to - from)
  }

  #blockOf(slot: number): Block {
    const index = Math.floor(slot / BLOCK_SLOTS)
    // Pending slots may come in any order.
    while (this.#blocks.length <= index)
      this.#blocks.push({ text: '', starts: new Uint32Array(BLOCK_SLOTS + 1) })
    return this.#blocks[index]
  }
}
