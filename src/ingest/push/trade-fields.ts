// Collects the fields of a trade while its bytes are read: a number as its value, a text as its position in the body. Strings are
// made only for a valid trade.
import { assert } from '../../lib/assert.ts'
import { WORD_CHARS_MAX } from '../../schema/bounds.ts'
import { QUOTE_FIELDS, type TradeEvent } from '../../schema/event.ts'
import { checkedMint, isValidTrade } from './record.ts'

/** The numbers come first, then the texts, then fields of trades with a quote, which few have: a library reads these. */
const NAMES = [
  ...(['ts', 'tokenAmount', 'priceUsd', 'solAmount', 'vSol', 'vTokens'] as const),
  ...(['type', 'mint', 'side', 'wallet', 'tx'] as const),
  ...QUOTE_FIELDS,
] as const
const [TS, TOKEN_AMOUNT, PRICE_USD, SOL_AMOUNT, V_SOL, V_TOKENS, TYPE, MINT, SIDE, WALLET, TX] = NAMES.keys()
/** A field of another name; it is skipped. */
export const UNKNOWN = NAMES.length
const FIRST_QUOTE_FIELD = TX + 1
const ABSENT = -1

/** A hash of a name's first and last byte and its length. It is different for each name. */
const HASH_MASK = 63
const hashOf = (first: number, last: number, length: number): number =>
  (first + last + 11 * length) & HASH_MASK
const BYTES = NAMES.map((name) => Buffer.from(name))
const VIEWS = BYTES.map((name) => new DataView(name.buffer, name.byteOffset, name.byteLength))
const BY_HASH = new Uint8Array(HASH_MASK + 1).fill(UNKNOWN)
for (const [field, name] of BYTES.entries()) {
  const hash = hashOf(name[0], name[name.length - 1], name.length)
  assert(BY_HASH[hash] === UNKNOWN, 'no two names of fields have one hash')
  BY_HASH[hash] = field
}

/** The field whose name is at `from`; `UNKNOWN` for any other name. */
export function findField(view: DataView, from: number, length: number): number {
  if (length === 0) return UNKNOWN
  const field = BY_HASH[hashOf(view.getUint8(from), view.getUint8(from + length - 1), length)]
  if (field === UNKNOWN || BYTES[field].length !== length) return UNKNOWN
  const name = VIEWS[field]
  let at = 0
  for (; at + 4 <= length; at += 4) if (view.getUint32(from + at) !== name.getUint32(at)) return UNKNOWN
  for (; at < length; at++) if (view.getUint8(from + at) !== name.getUint8(at)) return UNKNOWN
  return field
}

const word = (text: string): number => Buffer.from(text).readUInt32LE()
const [TRAD, BUY, SELL] = ['trad', 'buy\0', 'sell'].map(word)
const LAST_OF_TRADE = 'e'.charCodeAt(0)
const THREE_BYTES = 0xffffff

const presentOrUndefined = (value: number): number | undefined => (Number.isNaN(value) ? undefined : value)

/** One object serves all records of a body. If a name comes twice, the last value counts, as in JSON.parse and msgpackr. */
export class TradeFields {
  readonly view: DataView
  readonly #body: Buffer
  readonly #numbers = new Float64Array(TYPE)
  /** By field; one more for unknown fields. */
  readonly #from = new Int32Array(UNKNOWN + 1)
  readonly #length = new Int32Array(UNKNOWN + 1)

  constructor(body: Buffer) {
    this.#body = body
    this.view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  }

  clear(): void {
    for (let field = 0; field < TYPE; field++) this.#numbers[field] = Number.NaN
    for (let field = TYPE; field <= UNKNOWN; field++) this.#length[field] = ABSENT
  }

  /** @returns false where the field is not a number. */
  putNumber(field: number, value: number): boolean {
    if (field >= TYPE) return field === UNKNOWN
    this.#numbers[field] = value
    // NaN stands for an absent number, so it cannot be a value.
    return !Number.isNaN(value)
  }

  /** @returns false where the field is a number, or the type is not `trade`. The text must be ASCII. */
  putText(field: number, from: number, length: number): boolean {
    if (field < TYPE || (field >= FIRST_QUOTE_FIELD && field !== UNKNOWN)) return false
    if (field === TYPE && !this.#isTrade(from, length)) return false
    this.#from[field] = from
    this.#length[field] = length
    return true
  }

  putNull(field: number): void {
    if (field < TYPE) this.#numbers[field] = Number.NaN
    else this.#length[field] = ABSENT
  }

  /** The trade; null where the fields are not those of a valid one. */
  makeTrade(): TradeEvent | null {
    const side = this.#side()
    if (side === null || this.#length[TYPE] === ABSENT) return null
    const mint = checkedMint(this.#text(MINT))
    if (mint === null) return null
    const numbers = this.#numbers
    // The same keys in the same order as in `readTrade`, so that the market's code sees one shape.
    const trade: TradeEvent = {
      type: 'trade',
      mint,
      ts: numbers[TS],
      side,
      tokenAmount: numbers[TOKEN_AMOUNT],
      priceUsd: presentOrUndefined(numbers[PRICE_USD]),
      solAmount: presentOrUndefined(numbers[SOL_AMOUNT]),
      vSol: presentOrUndefined(numbers[V_SOL]),
      vTokens: presentOrUndefined(numbers[V_TOKENS]),
      wallet: this.#text(WALLET),
      tx: this.#text(TX),
    }
    return isValidTrade(trade) ? trade : null
  }

  #isTrade(from: number, length: number): boolean {
    if (length !== 5) return false
    return this.view.getUint32(from, true) === TRAD && this.#body[from + 4] === LAST_OF_TRADE
  }

  /** Reads four bytes even for `buy`; at the very end of a body that is not possible, and a library must read the record. */
  #side(): 'buy' | 'sell' | null {
    const { view } = this
    const length = this.#length[SIDE]
    const from = this.#from[SIDE]
    if (length === 4) return view.getUint32(from, true) === SELL ? 'sell' : null
    if (length !== 3 || from + 4 > view.byteLength) return null
    return (view.getUint32(from, true) & THREE_BYTES) === BUY ? 'buy' : null
  }

  #text(field: number): string | undefined {
    const length = this.#length[field]
    if (length === ABSENT) return undefined
    const from = this.#from[field]
    return this.#body.toString('latin1', from, from + Math.min(length, WORD_CHARS_MAX))
  }
}
