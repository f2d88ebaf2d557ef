// Finds the tokens with a word of mint, symbol or name that begins with a search. The words of neighbouring slots lie in one text,
// so that a search reads memory from one end to the other: 2 to 5 ms for 100 000 tokens, whatever it looks for.
//
// Why nothing cleverer: a page needs the number of matches, so every match has to be visited anyway. With a text for each token,
// scattered in memory, a search that many tokens match took 20 to 60 ms. Signatures of 32 bits (superimposed coding) in front of
// them refused rare words quickly, but made common ones no faster; and an index of sorted words would have to be kept in order
// by every new token.
import { searchWords } from '../../lib/text/search-words.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import { SEARCH_PENDING_MAX, SEARCHED_CHARACTERS_MAX } from './limits.ts'
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

  /**
   * By slot: 1 where the token has the words of `search` in this order, the last of which may go on; without a word, everywhere.
   * Valid until the next call.
   */
  find(search: string): Uint8Array {
    this.#applyPending()
    const words = markStarts(searchWords(search))
    if (words === '') return this.#found.fill(1)
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

  /** The slots from 0 to before this one have just been given to tokens. */
  restore(slotsUsed: number): void {
    for (let first = 0; first < slotsUsed; first += BLOCK_SLOTS) {
      const starts = new Uint32Array(BLOCK_SLOTS + 1)
      const words: string[] = []
      for (let inBlock = 0; inBlock < BLOCK_SLOTS; inBlock++) {
        const slot = first + inBlock
        words.push(slot < slotsUsed ? this.#wordsOf(slot) : '')
        starts[inBlock + 1] = starts[inBlock] + words[inBlock].length
      }
      this.#blocks.push({ text: words.join(''), starts })
    }
  }

  #applyPending(): void {
    for (const slot of this.#pending) this.#setWords(slot, this.#wordsOf(slot))
    this.#pending.clear()
  }

  /** The newlines keep words of one text from being found beside those of another. */
  #wordsOf(slot: number): string {
    const { mint, symbol, name } = this.#tokens.metadata[slot]
    // A token of which only the mint is known has that as symbol and name.
    const texts = [...new Set([mint, symbol, name])].map((text) =>
      truncateText(searchWords(text), SEARCHED_CHARACTERS_MAX),
    )
    return `${markStarts(texts.join('\n'))}\n`
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

/**
 * Marks the beginning of a word by an upper-case letter instead of a blank, where it can be. What is looked for begins with the
 * mark: a blank would be met at every word, a letter at few, which makes most searches twice as fast.
 */
const markStarts = (words: string): string =>
  words.replace(/ [a-z]/g, (start) => start.charAt(1).toUpperCase())
