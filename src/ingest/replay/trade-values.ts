// Reads the values of trade files: numbers, times and sides, each by itself; only whether -1 or 0 means a sale
// (`SideReader`) depends on the rows before. What is not understood is never guessed.
import { truncateText } from '../../lib/text/truncate-text.ts'
import { TIME_MS_MIN } from '../../schema/bounds.ts'
import type { Side } from './trade-batch.ts'

/** A value as a file has it. */
export type RawValue = string | number | bigint | null

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?$/

/** NaN where the value is not a number. A text must be one as a whole: "1,5" and "1 000" are none. */
export function readNumber(value: RawValue): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  return value !== null && NUMBER.test(value) ? Number(value) : Number.NaN
}

/** The years 2000 to 2100: in them the ranges of the four units do not overlap, so that each number tells its unit itself. */
const UNIX_S_MIN = 946_684_800
const UNIX_S_MAX = 4_102_444_800
const MS_END = UNIX_S_MAX * 1e3
const isUnixTime = (value: number, perSecond: number): boolean =>
  value >= UNIX_S_MIN * perSecond && value <= UNIX_S_MAX * perSecond

/** Unix seconds, ms, µs or ns as whole ms; NaN where the number is none of them. */
function unixMs(value: number): number {
  // A fraction such as .464 is not exact in a double: it is rounded to microseconds before it is cut to milliseconds.
  if (isUnixTime(value, 1)) return Math.floor(Math.round(value * 1e6) / 1e3)
  if (isUnixTime(value, 1e3)) return Math.floor(value)
  if (isUnixTime(value, 1e6)) return Math.floor(value / 1e3)
  if (isUnixTime(value, 1e9)) return Math.floor(value / 1e6)
  return Number.NaN
}

const DIGITS = /^[1-9]\d*(?:\.\d*)?$/
/** Doubles hold no more digits exactly. */
const EXACT_DIGITS = 15

function digitsMs(text: string): number {
  if (text.length <= EXACT_DIGITS || text.includes('.')) {
    const ms = unixMs(Number(text))
    if (!Number.isNaN(ms)) return ms
  } else if (text.length === 16) return unixMs(Math.floor(Number(text.slice(0, -3))))
  else if (text.length === 18 || text.length === 19) return unixMs(Number(text.slice(0, -6)))
  // 20250601, 20250601120000, 20250601120000250
  return text.length === 8 ? dayMs(text) : dayMs(text.slice(0, 8)) + clockMs(text.slice(8))
}

const DAY = /^(\d{4})(?:-(\d\d?)-|\/(\d\d?)\/|\.(\d\d?)\.|(\d\d))(\d\d?)$/

/** The latest day: one follows many times in a row. */
let latestDay = { text: '', ms: Number.NaN }

/** The beginning of a day in UTC, Unix ms; NaN where the text is not a date that begins with its year. */
function dayMs(text: string): number {
  if (text !== latestDay.text) latestDay = { text, ms: readDay(text) }
  return latestDay.ms
}

function readDay(text: string): number {
  const match = DAY.exec(text)
  if (match === null) return Number.NaN
  const month = Number(match[2] ?? match[3] ?? match[4] ?? match[5])
  const day = Number(match[6])
  const date = new Date(0)
  date.setUTCFullYear(Number(match[1]), month - 1, day)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : Number.NaN
}

const CLOCK =
  /^(\d\d?)(?::(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?|(\d\d)(\d\d)\.?(\d{3}|\d{6}|\d{9})?)\s*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?$/i

/** Milliseconds from the beginning of a day in UTC; NaN where the text is not a time of day. */
function clockMs(text: string): number {
  const match = CLOCK.exec(text)
  if (match === null) return Number.NaN
  const hours = Number(match[1])
  const minutes = Number(match[2] ?? match[5])
  const seconds = Number(match[3] ?? match[6] ?? 0)
  if (hours > 23 || minutes > 59 || seconds > 59 || (match[5] !== undefined && match[1].length < 2))
    return Number.NaN
  const ms = Number((match[4] ?? match[7] ?? '').slice(0, 3).padEnd(3, '0'))
  return ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms - zoneMs(match[8] ?? 'Z')
}

function zoneMs(zone: string): number {
  if (!/^[+-]/.test(zone)) return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(3).replace(':', '') || 0)
  return (zone.startsWith('-') ? -1 : 1) * minutes * 60_000
}

const DAY_AND_CLOCK = /^([\d/.-]{8,10})(?:[TD]|\s+)(\d.*)$/i

function textMs(text: string): number {
  if (DIGITS.test(text)) return digitsMs(text)
  const parts = DAY_AND_CLOCK.exec(text)
  return parts === null ? dayMs(text) : dayMs(parts[1]) + clockMs(parts[2])
}

/**
 * A time as whole Unix ms: a Unix time in seconds, ms, µs or ns between 2000 and 2100, or a date that begins with its year, with
 * a time of day or without; without a zone in UTC. NaN for everything else, and beyond 2100.
 * @param date the day, where the file has it in a column of its own.
 */
export function readTime(value: RawValue, date: RawValue = null): number {
  if (value === null) return Number.NaN
  const text = String(value)
  let ms = typeof value === 'number' ? unixMs(value) : Number.NaN
  if (Number.isNaN(ms)) ms = textMs(text)
  if (Number.isNaN(ms) && date !== null)
    ms = dayMs(String(date).replace(/[T ]00:00(:00(\.0+)?)?$/, '')) + clockMs(text)
  return ms >= TIME_MS_MIN && ms <= MS_END ? ms : Number.NaN
}

/** Null: the row does not say; undefined: what it says is not understood. */
type ReadSide = Side | null | undefined

const BUY_WORDS = new Set(['buy', 'b', 'bid', 'bot', 'bought'])
const SELL_WORDS = new Set(['sell', 's', 'ask', 'a', 'sld', 'sold'])
const NO_SIDE = new Set(['', 'n', 'none', 'unknown', 'null', 'nan', 'na', 'n/a', '-', '\\n'])
const YES = new Set(['true', 't', '1', 'yes'])
const NO = new Set(['false', 'f', '0', 'no'])
/** Columns that say who waited: where that was the buyer, the taker has sold. `m` is Binance's. */
const BUYER_MAKER = /^(m|(is|was)?buyer(is|was)?maker)$/
const IS_BUY = /^(is)?(taker)?(buy|buyer)$/
const IS_SELL = /^(is)?(taker)?(sell|seller)$/

/** Spellings of sides that are remembered; others are read again. */
const KNOWN_WORDS_MAX = 64

/** Reads the taker's side from the words of one column. */
export class SideReader {
  /** What a yes of the column means; null: it has words. */
  readonly #yes: Side | null
  /** 0 and 1 are a no and a yes to "bought", -1 and 1 are signs, and a file has one of both. */
  #numbers: 'flags' | 'signs' | null = null
  /** Texts and their meaning: most rows repeat a few. */
  readonly #known = new Map<string, Side | null>()

  /** @param name of the column: `is_buyer_maker` and `is_buy` say by their names what a yes means. */
  constructor(name: string) {
    const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
    const isSale = IS_SELL.test(plain) || BUYER_MAKER.test(plain)
    this.#yes = IS_BUY.test(plain) ? 'buy' : isSale ? 'sell' : null
  }

  read(value: RawValue): ReadSide {
    if (value === null) return null
    const text = String(value)
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const word = text.replace(/^ +| +$/g, '').toLowerCase()
    if (this.#yes === null && /^[+-]?[01](\.0+)?$/.test(word)) return this.#readNumber(Number(word))
    const side = this.#readWord(word)
    if (side !== undefined && this.#known.size < KNOWN_WORDS_MAX)
      this.#known.set(truncateText(text, text.length), side)
    return side
  }

  #readWord(word: string): ReadSide {
    if (NO_SIDE.has(word)) return null
    if (this.#yes !== null) {
      const other = this.#yes === 'buy' ? 'sell' : 'buy'
      const flag = word.replace(/\.0+$/, '')
      return YES.has(flag) ? this.#yes : NO.has(flag) ? other : undefined
    }
    return BUY_WORDS.has(word) ? 'buy' : SELL_WORDS.has(word) ? 'sell' : undefined
  }

  #readNumber(number: number): ReadSide {
    if (number === 1) return 'buy'
    this.#numbers ??= number === 0 ? 'flags' : 'signs'
    if (number === 0) return this.#numbers === 'flags' ? 'sell' : null
    return this.#numbers === 'signs' ? 'sell' : undefined
  }
}
