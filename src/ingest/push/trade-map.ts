// Reads a trade from the bytes of msgpack: no objects or strings are made that are not kept. It takes the maps that feeds send,
// of numbers and short ASCII texts. All other records, invalid ones too, are left to msgpackr.
//
// Why not msgpackr alone: pushed trades then take 9.7 µs of CPU each from the body to the rankings, 8.3 µs this way: 15.6 % less
// (median of 15 alternated pairs of processes). Much of it is copying texts, which msgpackr may cut out of larger ones.
import type { TradeEvent } from '../../schema/event.ts'
import { findField, TradeFields, UNKNOWN } from './trade-fields.ts'

const HIGH_BITS = 0x80808080
const HIGH_BIT = 0x80
const TWO_32 = 0x100000000

export class TradeMapReader {
  /** Where the next record begins, after a trade was read. */
  end = 0
  readonly #body: Buffer
  readonly #view: DataView
  readonly #fields: TradeFields
  #at = 0

  constructor(body: Buffer) {
    this.#body = body
    this.#fields = new TradeFields(body)
    this.#view = this.#fields.view
  }

  /** The trade at `from`; null where msgpackr must read the record. */
  read(from: number): TradeEvent | null {
    this.#at = from
    this.#fields.clear()
    for (let left = this.#readMapHead(); left > 0; left--) {
      const field = this.#readName()
      if (field === -1 || !this.#readValue(field)) return null
    }
    this.end = this.#at
    return this.#fields.makeTrade()
  }

  /** Reads the head of a map. @returns its number of fields; 0 where there is no map. */
  #readMapHead(): number {
    const marker = this.#body[this.#at++]
    if ((marker & 0xf0) === 0x80) return marker & 0x0f
    if (marker !== 0xde || !this.#has(2)) return 0
    this.#at += 2
    return this.#view.getUint16(this.#at - 2)
  }

  /** Reads a field's name. @returns its field; -1 where there is no name. */
  #readName(): number {
    const body = this.#body
    const marker = body[this.#at]
    const length = marker & 0x1f
    const from = this.#at + 1
    this.#at = from + length
    // At least one byte must follow, for the value.
    if ((marker & 0xe0) !== 0xa0 || this.#at >= body.length) return -1
    return findField(this.#view, from, length)
  }

  #readValue(field: number): boolean {
    const marker = this.#body[this.#at++]
    if (marker < 0x80) return this.#fields.putNumber(field, marker)
    if (marker >= 0xa0 && marker <= 0xbf) return this.#readText(field, marker & 0x1f)
    switch (marker) {
      case 0xc0:
        this.#fields.putNull(field)
        return true
      case 0xc2:
      case 0xc3:
        return field === UNKNOWN
      case 0xd9:
        return this.#has(1) && this.#readText(field, this.#body[this.#at++])
      default:
        return this.#readNumber(field, marker)
    }
  }

  #readNumber(field: number, marker: number): boolean {
    const bytes = NUMBER_BYTES[marker]
    if (bytes === 0 || !this.#has(bytes)) return false
    const value = this.#numberAt(marker, this.#at)
    this.#at += bytes
    return this.#fields.putNumber(field, value)
  }

  #numberAt(marker: number, at: number): number {
    const view = this.#view
    if (marker === FLOAT_64) return view.getFloat64(at)
    if (marker === UINT_64) return view.getUint32(at) * TWO_32 + view.getUint32(at + 4)
    if (marker === UINT_32) return view.getUint32(at)
    return marker === UINT_16 ? view.getUint16(at) : this.#body[at]
  }

  #readText(field: number, length: number): boolean {
    const from = this.#at
    if (!this.#has(length) || !this.#isAscii(from, length)) return false
    this.#at += length
    return this.#fields.putText(field, from, length)
  }

  #has(bytes: number): boolean {
    return this.#at + bytes <= this.#body.length
  }

  #isAscii(from: number, length: number): boolean {
    const end = from + length
    let at = from
    let bits = 0
    for (; at + 4 <= end; at += 4) bits |= this.#view.getUint32(at)
    let rest = 0
    for (; at < end; at++) rest |= this.#body[at]
    return (bits & HIGH_BITS) === 0 && (rest & HIGH_BIT) === 0
  }
}

const [UINT_16, UINT_32, UINT_64, FLOAT_64] = [0xcd, 0xce, 0xcf, 0xcb]
/** By marker: bytes of the number behind it; 0 for anything but an unsigned integer or a float64. */
const NUMBER_BYTES = Uint8Array.from(
  { length: 256 },
  (_, marker) => ({ 204: 1, [UINT_16]: 2, [UINT_32]: 4, [UINT_64]: 8, [FLOAT_64]: 8 })[marker] ?? 0,
)
