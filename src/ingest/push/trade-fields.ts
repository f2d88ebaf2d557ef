// In: the fields of one record, found where they stand in a body. Out: the trade that they make, or null where another
// way must say what they are. What NDJSON and msgpack share: a field is a number or a place of text; nothing is made of
// a record that is not used. Never explains a fault.
import { assert } from '../../lib/assert.ts'
import { WORD_CHARS_MAX } from '../../schema/bounds.ts'
import type { TradeEvent } from '../../schema/event.ts'
import { MINT_CACHE_ENTRIES_MAX } from '../limits.ts'
import { MintInterner } from './mint-interner.ts'
import { isValidTrade } from './record.ts'

/** Numbers first, then texts. */
const NAMES = [
  ...(['ts', 'tokenAmount', 'priceUsd', 'solAmount', 'vSol', 'vTokens'] as const),
  ...(['type', 'mint', 'side', 'wallet', 'tx'] as const),
] as const
const [TS, TOKEN_AMOUNT, PRICE_USD, SOL_AMOUNT, V_SOL, V_TOKENS, TYPE, MINT, SIDE, WALLET, TX] = NAMES.keys()
/** Read over: a trade may have fields that nobody asked for. */
export const UNKNOWN = NAMES.length
const ABSENT = -1

/** A hash of a name's ends under which no two names meet. */
const HASH_MASK = 31
const hashOf = (first: number, last: number, length: number): number =>
  (2 * first + last + length) & HASH_MASK
const BYTES = NAMES.map((name) => Buffer.from(name))
const VIEWS = BYTES.map((name) => new DataView(name.buffer, name.byteOffset, name.byteLength))
const BY_HASH = new Uint8Array(HASH_MASK + 1).fill(UNKNOWN)
for (const [field, name] of BYTES.entries()) {
  const hash = hashOf(name[0], name[name.length - 1], name.length)
  assert(BY_HASH[hash] === UNKNOWN, 'no two names of fields have one hash')
  BY_HASH[hash] = field
}

/** The field whose name stands at `from` in a body. */
export function fieldAt(view: DataView, from: number, length: number): number {
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

const mints = new MintInterner(MINT_CACHE_ENTRIES_MAX)
const known = (value: number): number | undefined => (Number.isNaN(value) ? undefined : value)

/** The fields of one record; one object serves all records of a body. Of a name that stands twice the last counts. */
export class TradeFields {
  readonly view: DataView
  readonly #body: Buffer
  readonly #numbers = new Float64Array(TYPE)
  /** By field; a place more for those that are unknown. */
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

  /** False where that is no number for this field. */
  putNumber(field: number, value: number): boolean {
    if (field >= TYPE) return field === UNKNOWN
    this.#numbers[field] = value
    // Not a number is how an absent one is held here.
    return !Number.isNaN(value)
  }

  /** False where that field is a number, or the record is no trade. The text of a wallet and a tx is ASCII. */
  putText(field: number, from: number, length: number): boolean {
    if (field < TYPE || (field === TYPE && !this.#isTrade(from, length))) return false
    this.#from[field] = from
    this.#length[field] = length
    return true
  }

  putNull(field: number): void {
    if (field < TYPE) this.#numbers[field] = Number.NaN
    else this.#length[field] = ABSENT
  }

  /** The trade, or null where these fields make none. */
  trade(): TradeEvent | null {
    const side = this.#side()
    if (side === null || this.#length[TYPE] === ABSENT) return null
    const mint = mints.find(this.#body, this.view, this.#from[MINT], this.#length[MINT])
    if (mint === null) return null
    const numbers = this.#numbers
    // The same keys in the same order as everywhere: the engine's code sees one shape.
    const trade: TradeEvent = {
      type: 'trade',
      mint,
      ts: numbers[TS],
      side,
      tokenAmount: numbers[TOKEN_AMOUNT],
      priceUsd: known(numbers[PRICE_USD]),
      solAmount: known(numbers[SOL_AMOUNT]),
      vSol: known(numbers[V_SOL]),
      vTokens: known(numbers[V_TOKENS]),
      wallet: this.#text(WALLET),
      tx: this.#text(TX),
    }
    return isValidTrade(trade) ? trade : null
  }

  #isTrade(from: number, length: number): boolean {
    if (length !== 5) return false
    return this.view.getUint32(from, true) === TRAD && this.#body[from + 4] === LAST_OF_TRADE
  }

  /** A side at the very end of a body is left to another way: four bytes are read. */
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
