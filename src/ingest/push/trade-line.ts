// In: a body of NDJSON and where a line begins. Out: its trade, read from the bytes: no text is made of what is not kept.
// Takes the lines that feeds send, objects of plain numbers and of ASCII text without escapes; any other it leaves to
// JSON.parse. Never calls a line wrong.
import type { TradeEvent } from '../../schema/event.ts'
import { fieldAt, TradeFields, UNKNOWN } from './trade-fields.ts'

const [QUOTE, COLON, COMMA, CLOSE, OPEN, DOT] = [...'":,}{.'].map((character) => character.charCodeAt(0))
const [ZERO, NINE, SMALL_E, CAPITAL_E] = [...'09eE'].map((character) => character.charCodeAt(0))
const [PLUS, MINUS, SPACE, NEWLINE, RETURN] = [...'+- \n\r'].map((character) => character.charCodeAt(0))
const LITERALS = ['null', 'true', 'false'].map((text) => Buffer.from(text))
const [NULL] = LITERALS

/** By byte: 1 where it stands for itself inside a string. */
const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= SPACE && byte < 0x80 && byte !== QUOTE && byte !== 0x5c ? 1 : 0,
)
const HIGH_BITS = 0x80808080
const ONES = 0x01010101
const QUOTES = QUOTE * ONES
const BACKSLASHES = 0x5c * ONES
const SPACES = SPACE * ONES

/** True where all of four bytes stand for themselves: a byte of which too much is taken away borrows a high bit. */
function isPlain(word: number): boolean {
  const quotes = word ^ QUOTES
  const backslashes = word ^ BACKSLASHES
  return (((quotes - ONES) | (backslashes - ONES) | (word - SPACES) | word) & HIGH_BITS) === 0
}

/** These powers are exact, and so is a product or a quotient of one of them and an exact number but for one rounding. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))

export class TradeLineReader {
  /** Where the next line begins, once a trade was read. */
  end = 0
  readonly #body: Buffer
  readonly #view: DataView
  /** Of the body: its own count is dearer to ask for. */
  readonly #bytes: number
  readonly #fields: TradeFields
  #at = 0

  constructor(body: Buffer) {
    this.#body = body
    this.#fields = new TradeFields(body)
    this.#view = this.#fields.view
    this.#bytes = body.length
  }

  /** The trade of the line at `from`, or null where another way must say what stands there. */
  read(from: number): TradeEvent | null {
    const body = this.#body
    this.#at = from
    this.#fields.clear()
    if (!this.#skip(OPEN)) return null
    do {
      const field = this.#name()
      if (field === -1 || !this.#skip(COLON)) return null
      if (body[this.#at] === SPACE) this.#at++
      if (!this.#value(field)) return null
    } while (this.#more())
    if (!this.#skip(CLOSE)) return null
    if (body[this.#at] === RETURN) this.#at++
    if (this.#at < this.#bytes && body[this.#at] !== NEWLINE) return null
    this.end = this.#at + 1
    return this.#fields.trade()
  }

  #skip(byte: number): boolean {
    return this.#body[this.#at++] === byte
  }

  #more(): boolean {
    if (this.#body[this.#at] !== COMMA) return false
    this.#at++
    if (this.#body[this.#at] === SPACE) this.#at++
    return true
  }

  /** Goes past a name. @returns its field, -1 where none stands here. */
  #name(): number {
    const from = this.#at + 1
    if (!this.#text()) return -1
    return fieldAt(this.#view, from, this.#at - 1 - from)
  }

  #value(field: number): boolean {
    const byte = this.#body[this.#at]
    if (byte === QUOTE) {
      const from = this.#at + 1
      return this.#text() && this.#fields.putText(field, from, this.#at - 1 - from)
    }
    if (byte >= ZERO && byte <= NINE) {
      const value = this.#number()
      return value >= 0 && this.#fields.putNumber(field, value)
    }
    for (const literal of LITERALS) {
      if (byte !== literal[0]) continue
      if (literal === NULL) this.#fields.putNull(field)
      else if (field !== UNKNOWN) return false
      return this.#literal(literal)
    }
    return false
  }

  #literal(literal: Buffer): boolean {
    for (let at = 0; at < literal.length; at++) if (!this.#skip(literal[at])) return false
    return true
  }

  /** Goes past a string that stands for itself, its quotes included. */
  #text(): boolean {
    const body = this.#body
    if (body[this.#at] !== QUOTE) return false
    const view = this.#view
    const bytes = this.#bytes
    let at = this.#at + 1
    while (at + 4 <= bytes && isPlain(view.getInt32(at))) at += 4
    while (at < bytes && IS_PLAIN[body[at]] === 1) at++
    this.#at = at + 1
    return body[at] === QUOTE
  }

  /** Goes past a number of JSON's form without a sign. @returns its value, NaN where it has not that form. */
  #number(): number {
    const body = this.#body
    const from = this.#at
    const whole = this.#digits(0)
    let value = whole
    let exponent = 0
    if (body[from] === ZERO && this.#at > from + 1) return Number.NaN
    if (body[this.#at] === DOT) {
      const point = ++this.#at
      value = this.#digits(whole)
      exponent = point - this.#at
      if (exponent === 0) return Number.NaN
    }
    const byte = body[this.#at]
    if (byte === SMALL_E || byte === CAPITAL_E) {
      const sign = body[++this.#at]
      if (sign === PLUS || sign === MINUS) this.#at++
      const first = this.#at
      const power = this.#digits(0)
      if (this.#at === first) return Number.NaN
      exponent += sign === MINUS ? -power : power
    }
    if (value <= Number.MAX_SAFE_INTEGER && exponent > -POWERS.length && exponent < POWERS.length)
      return exponent < 0 ? value / POWERS[-exponent] : value * POWERS[exponent]
    return Number(body.toString('latin1', from, this.#at))
  }

  /** Goes past digits. @returns the number that they make behind those of `value`. */
  #digits(value: number): number {
    const view = this.#view
    const bytes = this.#bytes
    let result = value
    let at = this.#at
    for (; at < bytes; at++) {
      const digit = view.getUint8(at) - ZERO
      if (digit < 0 || digit > 9) break
      result = result * 10 + digit
    }
    this.#at = at
    return result
  }
}
