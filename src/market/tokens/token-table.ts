// The tokens that the market holds. Each has a slot, a small number; its figures lie in typed columns, its texts in one record.
import { z } from 'zod'
import { assert } from '../../lib/assert.ts'
import { keysOf, recordFrom } from '../../lib/record.ts'
import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import {
  jsonSection,
  numbersSection,
  type Section,
  type SectionReader,
  slotRanges,
} from '../../lib/sections/sections.ts'
import { encodeTexts, type TextColumn } from '../../lib/sections/text-column.ts'
import type { TokenTexts } from '../../schema/datapoint.ts'
import { SPARSE_FIELDS_UNKNOWN, SparseTable } from './sparse-fields.ts'

/** A token's texts, with its address. */
export interface TokenMetadata extends TokenTexts {
  mint: string
  /** What its trades are paid in. */
  quoteMint: string | null
}

/** What a token has that is known by its mint only. */
const initialMetadata = (mint: string): TokenMetadata => ({
  mint,
  name: mint,
  symbol: mint,
  description: null,
  imageUri: null,
  creator: null,
  website: null,
  twitter: null,
  telegram: null,
  quoteMint: null,
})

/** Their order is that of checkpoints. */
const TEXTS = keysOf<keyof TokenMetadata>(initialMetadata(''))

/**
 * Columns of a token. Its numbers lie side by side in memory, those that a trade touches first: each line of memory that a trade
 * has to fetch costs as much as a hundred additions.
 */
const FIGURES = [
  'priceUsd',
  'priceSol',
  'marketCap',
  'marketCapSol',
  /** Tokens that the market cap counts: implied by a patched market cap, else the total supply. */
  'circulating',
  'liquidity',
  'holderCount',
  'top10HolderPct',
  'bondingProgress',
  'lastTradeAtMs',
] as const
const COUNTERS = [
  'tradeCount',
  /** Older trades are late, Unix ms; never goes back. See bars/watermark.ts. */
  'watermark',
  /** Market time of the latest trade. */
  'tradedAtMs',
  /** Market time at which the present version began. */
  'versionAtMs',
  /** Position of the row's last change. */
  'changedSeq',
  /** Start and sums of the 24-hour window, and sums since the token's first trade. See bars/windows.ts. */
  'dayFromMs',
  'dayVolume',
  'dayCounts',
  'lifetimeVolume',
  'lifetimeCounts',
  /** Number of the event that changed it last, counted over all tokens. */
  'touched',
  /** Market time of the event that created it, and the position of that change. */
  'firstSeenAtMs',
  'firstSeenSeq',
  /** Bars that start before this market time may lack trades: the token was held, evicted and came back. */
  'barsWholeFromMs',
] as const
const RARELY_CHANGED = [
  ...(['totalSupply', 'createdAtMs', 'virtualSolReserves', 'virtualTokenReserves'] as const),
  /** Tokens that the curve had to sell at first. */
  'curveTokens',
] as const
/** NaN stands for unknown in these; the others begin at zero. */
const UNKNOWN_AT_FIRST = [...FIGURES, ...RARELY_CHANGED] as const
const COLUMNS = [...FIGURES, ...COUNTERS, ...RARELY_CHANGED] as const
export type FigureName = (typeof UNKNOWN_AT_FIRST)[number]

const layoutOf = (columns: readonly string[], texts: readonly string[]): string =>
  [...columns, ...texts].join(' ')
/** Changes with what a saved row of numbers and texts means. */
export const TOKEN_LAYOUT = layoutOf(COLUMNS, TEXTS)
/** Before quotes: a column and a text fewer. Checkpoints of it are read. */
const TEXTS_BEFORE_QUOTES = TEXTS.filter((name) => name !== 'quoteMint')
export const TOKEN_LAYOUT_BEFORE_QUOTES = layoutOf(
  COLUMNS.filter((name) => name !== 'curveTokens'),
  TEXTS_BEFORE_QUOTES,
)

/** By name; a token's number is at `rowIndex(slot)`. */
export type Columns = Readonly<Record<(typeof COLUMNS)[number], Float64Array>>

/** To find cold tokens, so many tokens are sampled, and this share of all tokens is collected. */
const COLD_SAMPLE = 1_024
const COLD_SHARE = 1 / 64

/** Numbers in a line of memory. */
const LINE_NUMBERS = 8
/** Numbers from one token to the next: a power of two. */
const ROW_LENGTH = 32
assert(COLUMNS.length <= ROW_LENGTH, 'a token’s numbers fit its row')

/** A token's index in every column. */
export const rowIndex = (slot: number): number => slot * ROW_LENGTH

export const FLAG_LIVE = 1
export const FLAG_COMPLETE = 2
/** A patch has set the liquidity: it no longer follows from the curve. */
export const FLAG_LIQUIDITY_PATCHED = 4
/** It trades in mayhem mode; whether it does is known. */
export const FLAG_MAYHEM = 8
export const FLAG_MAYHEM_KNOWN = 16

interface ColdToken {
  slot: number
  touched: number
}

const savedSchema = z.object({ slotsUsed: z.number(), touches: z.number() })

export class TokenTable {
  readonly capacity: number
  readonly columns: Columns
  /** The memory of all columns. */
  readonly #numbers: Float64Array
  /** By slot, as everything below. */
  readonly flags: Uint8Array
  /** Accepted analyses of the token: those of its mint, also before it was held. */
  readonly analysisCounts: Uint32Array
  readonly metadata: TokenMetadata[] = []
  readonly sparse = new SparseTable()
  readonly #slots = new Map<string, number>()
  #touches = 0
  /** Tokens that were the coldest when they were collected, the coldest last, with their `touched` of then. */
  #cold: ColdToken[] = []

  constructor(capacity: number) {
    this.capacity = capacity
    this.#numbers = new Float64Array(capacity * ROW_LENGTH)
    // All columns share one memory; each begins at its own place in the first row.
    this.columns = recordFrom(COLUMNS, (_, at) => this.#numbers.subarray(at))
    this.flags = new Uint8Array(capacity)
    this.analysisCounts = new Uint32Array(capacity)
  }

  get isFull(): boolean {
    return this.slotsUsed === this.capacity
  }

  /** Every slot below this holds a token. */
  get slotsUsed(): number {
    return this.metadata.length
  }

  /** Reads a number of each line of memory that a trade of the token touches first, see events/prefetch.ts. @returns their sum */
  prefetch(slot: number): number {
    const row = rowIndex(slot)
    let sum = 0
    for (let at = row; at < row + ROW_LENGTH; at += LINE_NUMBERS) sum += this.#numbers[at]
    return sum
  }

  /** The slot of a mint, or -1. */
  slotOf(mint: string): number {
    return this.#slots.get(mint) ?? -1
  }

  /** Bars of the token that start before this market time may lack trades: it was evicted and came back. 0: none. */
  barsWholeFromMs(slot: number): number {
    return this.columns.barsWholeFromMs[rowIndex(slot)]
  }

  /** Market time at which the token's present version began. */
  versionAtMs(slot: number): number {
    return this.columns.versionAtMs[rowIndex(slot)]
  }

  /** The position of the change log at which the slot's token came. */
  heldSince(slot: number): number {
    return this.columns.firstSeenSeq[rowIndex(slot)]
  }

  /**
   * Gives a mint a slot, with every number unknown or zero.
   * @param slot the next one, or that of a token which gives way
   */
  add(mint: string, slot: number): void {
    if (slot < this.slotsUsed) this.#slots.delete(this.metadata[slot].mint)
    this.#slots.set(mint, slot)
    const row = rowIndex(slot)
    for (const name of UNKNOWN_AT_FIRST) this.columns[name][row] = Number.NaN
    for (const name of COUNTERS) this.columns[name][row] = 0
    this.flags[slot] = 0
    this.metadata[slot] = initialMetadata(mint)
    this.sparse.set(slot, SPARSE_FIELDS_UNKNOWN)
    this.touch(slot)
  }

  /** An event has changed this token. */
  touch(slot: number): void {
    this.columns.touched[rowIndex(slot)] = ++this.#touches
  }

  /** The token that was touched longest ago; there must be one. */
  coldest(): number {
    for (;;) {
      const coldest = this.#cold.at(-1)
      if (coldest === undefined) this.#cold = this.#collectCold()
      else if (this.#isUntouched(coldest)) return coldest.slot
      else this.#cold.pop()
    }
  }

  *save(): Iterable<Section> {
    const { slotsUsed } = this
    yield jsonSection('tokens', { slotsUsed, touches: this.#touches })
    yield numbersSection('tokens.numbers', this.#numbers.subarray(0, rowIndex(slotsUsed)))
    yield numbersSection('tokens.flags', this.flags.subarray(0, slotsUsed))
    yield numbersSection('tokens.analyses', this.analysisCounts.subarray(0, slotsUsed))
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const texts = this.metadata.slice(first, end).flatMap((metadata) => TEXTS.map((name) => metadata[name]))
      yield { name: `tokens.texts.${part}`, bytes: encodeTexts(texts) }
    }
    yield* this.sparse.save(slotsUsed)
  }

  /** Yields between slices. @param layout that the saved table has */
  *restore(sections: SectionReader, layout: string): Iterable<void> {
    const isBeforeQuotes = layout === TOKEN_LAYOUT_BEFORE_QUOTES
    const textsPerToken = isBeforeQuotes ? TEXTS_BEFORE_QUOTES.length : TEXTS.length
    const { slotsUsed, touches } = sections.json('tokens', savedSchema)
    if (slotsUsed > this.capacity)
      throw new CheckpointError(
        `The checkpoint holds ${slotsUsed} tokens, and this server at most ${this.capacity}.`,
      )
    this.#touches = touches
    sections.fill('tokens.numbers', this.#numbers.subarray(0, rowIndex(slotsUsed)))
    if (isBeforeQuotes)
      for (let slot = 0; slot < slotsUsed; slot++) this.columns.curveTokens[rowIndex(slot)] = Number.NaN
    sections.fill('tokens.flags', this.flags.subarray(0, slotsUsed))
    sections.fill('tokens.analyses', this.analysisCounts.subarray(0, slotsUsed))
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const texts = sections.texts(`tokens.texts.${part}`, (end - first) * textsPerToken)
      for (let slot = first; slot < end; slot++) {
        const metadata = metadataAt(texts, (slot - first) * textsPerToken, textsPerToken)
        this.metadata.push(metadata)
        this.#slots.set(metadata.mint, slot)
      }
      yield
    }
    this.sparse.restore(sections, slotsUsed)
    if (this.#slots.size !== slotsUsed) throw new CheckpointError('The checkpoint holds a token twice.')
  }

  #touched(slot: number): number {
    return this.columns.touched[rowIndex(slot)]
  }

  /** No event has touched it since it was collected, and its slot holds no other token. */
  #isUntouched({ slot, touched }: ColdToken): boolean {
    return this.#touched(slot) === touched
  }

  /**
   * The tokens that were touched longest ago, the coldest last: about COLD_SHARE of all, estimated from a sample. Evictions are
   * rare and touches are not, so the order is not kept at every touch but made here, for many evictions at once.
   */
  #collectCold(): ColdToken[] {
    const step = Math.ceil(this.slotsUsed / COLD_SAMPLE)
    const sample: number[] = []
    for (let slot = 0; slot < this.slotsUsed; slot += step) sample.push(this.#touched(slot))
    const touchedMax = sample.sort((a, b) => a - b)[Math.floor(sample.length * COLD_SHARE)] ?? this.#touches
    const cold: ColdToken[] = []
    for (let slot = 0; slot < this.slotsUsed; slot++) {
      const touched = this.#touched(slot)
      if (touched <= touchedMax) cold.push({ slot, touched })
    }
    return cold.sort((a, b) => b.touched - a.touched)
  }
}

/** The texts of a token, which begin at `at` in the order of TEXTS. */
function metadataAt(texts: TextColumn, at: number, textsPerToken: number): TokenMetadata {
  const [mint, name, symbol] = [texts.at(at), texts.at(at + 1), texts.at(at + 2)]
  if (mint === null || name === null || symbol === null)
    throw new CheckpointError('The checkpoint holds a token without a name.')
  return {
    mint,
    name,
    symbol,
    description: texts.at(at + 3),
    imageUri: texts.at(at + 4),
    creator: texts.at(at + 5),
    website: texts.at(at + 6),
    twitter: texts.at(at + 7),
    telegram: texts.at(at + 8),
    quoteMint: textsPerToken === TEXTS.length ? texts.at(at + 9) : null,
  }
}
