// Places for the latest trades of tokens, as bytes in large blocks of memory: what trades leave behind is nothing that the garbage
// collector would have to walk, or to copy because it outlives the event that brought it.

import { lastingMemory } from '../../lib/memory.ts'
import { isAscii, type TextColumn } from '../../lib/sections/text-column.ts'
import type { DataPoint } from '../../schema/datapoint.ts'
import type { TradeEvent } from '../../schema/event.ts'
import { MARKET_QUOTES } from '../../schema/quote.ts'

export type RecentTrade = DataPoint['recentTrades'][number]

/** Where a wallet lies in memory, in UTF-8. */
export interface WalletBytes {
  bytes: Uint8Array
  at: number
  length: number
}

/** Places are taken and given back by so many. */
export const CHUNK_PLACES = 4

// A place: time, negative for a sell, and amount of SOL, NaN for unknown; the lengths of transaction and wallet; their characters.
const LENGTHS_AT = 16
/** As long as a transaction and a wallet of Solana are; other chains' are shorter. */
const TEXTS = [
  { name: 'tx', lengthAt: LENGTHS_AT, at: LENGTHS_AT + 2, charsMax: 88 },
  { name: 'wallet', lengthAt: LENGTHS_AT + 1, at: LENGTHS_AT + 2 + 88, charsMax: 44 },
] as const
const [TX, WALLET] = TEXTS
type Text = (typeof TEXTS)[number]
const PLACE_NUMBERS = 19
const PLACE_BYTES = PLACE_NUMBERS * 8
// Instead of a length.
const NULL_TEXT = 255
/** The text is longer, or is no ASCII: it is in `#others`. */
const OTHER_TEXT = 254

const SEGMENT_BITS = 11
const SEGMENT_PLACES = 1 << SEGMENT_BITS
const PLACE_MASK = SEGMENT_PLACES - 1

interface Segment {
  numbers: Float64Array
  bytes: Buffer
}

function newSegment(): Segment {
  const memory = lastingMemory(SEGMENT_PLACES * PLACE_BYTES)
  return { numbers: new Float64Array(memory), bytes: Buffer.from(memory) }
}

export class TradePlaces {
  readonly #segments: Segment[] = []
  /** First places of chunks that were given back. */
  readonly #free: number[] = []
  #used = 0
  /** By place: texts that have no room there. */
  readonly #others = new Map<number, Record<Text['name'], string | null>>()

  readonly #walletBytes: WalletBytes = { bytes: new Uint8Array(), at: 0, length: 0 }

  /** @returns the first of CHUNK_PLACES places, with whatever was there before */
  take(): number {
    const given = this.#free.pop()
    if (given !== undefined) return given
    const first = this.#used
    this.#used += CHUNK_PLACES
    if (first === this.#segments.length * SEGMENT_PLACES) this.#segments.push(newSegment())
    return first
  }

  release(first: number): void {
    for (let place = first; place < first + CHUNK_PLACES; place++) this.#others.delete(place)
    this.#free.push(first)
  }

  write(place: number, { ts, side, solAmount, quoteMint, quoteAmount, tx, wallet }: TradeEvent): void {
    const sol = solAmount ?? (quoteMint === MARKET_QUOTES.sol ? quoteAmount : null)
    this.writeNumbers(place, side === 'buy' ? ts : -ts, sol ?? Number.NaN)
    if (this.#others.size > 0) this.#others.delete(place)
    this.#writeText(place, TX, tx ?? null)
    this.#writeText(place, WALLET, wallet ?? null)
  }

  /** @param signedMs negative for a sell. @param sol NaN for unknown */
  writeNumbers(place: number, signedMs: number, sol: number): void {
    const { numbers } = this.#segments[place >>> SEGMENT_BITS]
    const at = (place & PLACE_MASK) * PLACE_NUMBERS
    numbers[at] = signedMs
    numbers[at + 1] = sol
  }

  /** The texts at `index` and the one behind it, of a checkpoint. */
  writeSaved(place: number, texts: TextColumn, index: number): void {
    for (const [offset, text] of TEXTS.entries()) {
      const { bytes } = this.#segments[place >>> SEGMENT_BITS]
      const at = (place & PLACE_MASK) * PLACE_BYTES
      const length = texts.copyAscii(index + offset, bytes, at + text.at, text.charsMax)
      if (length === -1) this.#writeText(place, text, texts.at(index + offset))
      else bytes[at + text.lengthAt] = length
    }
  }

  /** Its time, Unix ms, negative for a sell. */
  signedMs(place: number): number {
    return this.#segments[place >>> SEGMENT_BITS].numbers[(place & PLACE_MASK) * PLACE_NUMBERS]
  }

  /** The lengths of its texts, in one number. */
  lengths(place: number): number {
    return this.#segments[place >>> SEGMENT_BITS].numbers[(place & PLACE_MASK) * PLACE_NUMBERS + 2]
  }

  /** NaN for unknown. */
  sol(place: number): number {
    return this.#segments[place >>> SEGMENT_BITS].numbers[(place & PLACE_MASK) * PLACE_NUMBERS + 1]
  }

  tx(place: number): string | null {
    return this.#readText(place, TX)
  }

  wallet(place: number): string | null {
    return this.#readText(place, WALLET)
  }

  /** Where the wallet's characters lie, until the next call; null: elsewhere, or it is not known. */
  walletBytes(place: number): WalletBytes | null {
    const { bytes } = this.#segments[place >>> SEGMENT_BITS]
    const base = (place & PLACE_MASK) * PLACE_BYTES
    const length = bytes[base + WALLET.lengthAt]
    if (length > WALLET.charsMax) return null
    const found = this.#walletBytes
    found.bytes = bytes
    found.at = base + WALLET.at
    found.length = length
    return found
  }

  read(place: number): RecentTrade {
    const signedMs = this.signedMs(place)
    const sol = this.sol(place)
    return {
      tx: this.tx(place),
      type: signedMs < 0 ? 'sell' : 'buy',
      sol: Number.isNaN(sol) ? null : sol,
      wallet: this.wallet(place),
      timestamp: Math.abs(signedMs),
    }
  }

  swap(a: number, b: number): void {
    const [bytesA, bytesB] = [this.#bytesOf(a), this.#bytesOf(b)]
    const copy = Uint8Array.from(bytesA)
    bytesA.set(bytesB)
    bytesB.set(copy)
    const [otherA, otherB] = [this.#others.get(a), this.#others.get(b)]
    if (otherA === undefined) this.#others.delete(b)
    else this.#others.set(b, otherA)
    if (otherB === undefined) this.#others.delete(a)
    else this.#others.set(a, otherB)
  }

  #bytesOf(place: number): Buffer {
    const at = (place & PLACE_MASK) * PLACE_BYTES
    return this.#segments[place >>> SEGMENT_BITS].bytes.subarray(at, at + PLACE_BYTES)
  }

  #writeText(place: number, { name, lengthAt, at, charsMax }: Text, text: string | null): void {
    const { bytes } = this.#segments[place >>> SEGMENT_BITS]
    const base = (place & PLACE_MASK) * PLACE_BYTES
    if (text === null) bytes[base + lengthAt] = NULL_TEXT
    else if (text.length <= charsMax && isAscii(text)) {
      bytes.write(text, base + at, 'latin1')
      bytes[base + lengthAt] = text.length
    } else {
      bytes[base + lengthAt] = OTHER_TEXT
      this.#others.set(place, { tx: null, wallet: null, ...this.#others.get(place), [name]: text })
    }
  }

  #readText(place: number, { name, lengthAt, at }: Text): string | null {
    const { bytes } = this.#segments[place >>> SEGMENT_BITS]
    const base = (place & PLACE_MASK) * PLACE_BYTES
    const length = bytes[base + lengthAt]
    if (length === NULL_TEXT) return null
    if (length === OTHER_TEXT) return this.#others.get(place)?.[name] ?? null
    return bytes.toString('latin1', base + at, base + at + length)
  }
}
