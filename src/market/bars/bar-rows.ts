// JSON texts of the closed bars of one series, side by side in one buffer. It holds the newest rows; the oldest give way.
import type { BarShape } from '../../schema/bar.ts'
import type { BarColumns, TextForm } from '../types.ts'
import { barAt } from './bar-query.ts'

/** Memory for this many times the rows needed, so that the oldest are dropped many at a time: the others have to be moved. */
const SLACK = 1.25
/** The usual length of a row, with seven numbers of full length: decides the buffer's first size. */
const ROW_BYTES_USUAL = 160

/** A row as an object of each shape. */
const OBJECTS: Readonly<Record<BarShape, (columns: BarColumns, row: number) => object>> = {
  short: barAt,
  long: ({ t, o, h, l, c, v, n, closed }, row) => ({
    timestamp: t[row],
    open: o[row],
    high: h[row],
    low: l[row],
    close: c[row],
    volume: v[row],
    trades: n[row],
    closed: closed[row] === 1,
  }),
}

/**
 * The rows as JSON objects, each with the separator after it. Calls `onRow` with the length of the text after each row. Nearly all
 * of the time goes into the digits of doubles, which JSON.stringify makes in half the time that a template takes.
 */
export function rowsText(
  columns: BarColumns,
  { shape, separator }: TextForm,
  onRow?: (row: number, length: number) => void,
): string {
  const objectAt = OBJECTS[shape]
  let text = ''
  for (let row = 0; row < columns.rowCount; row++) {
    text += JSON.stringify(objectAt(columns, row)) + separator
    onRow?.(row, text.length)
  }
  return text
}

/** Rows `first` to before `end`. */
export interface RowSpan {
  first: number
  end: number
}

export class BarRows {
  /** The generation of the token's bars (see BarCascade) that the rows were made from: with another one they are discarded. */
  readonly generation: number
  /** Of this many rows none is dropped. */
  readonly rowsMin: number
  readonly #form: TextForm
  readonly #times: Float64Array
  /** By row: where its text ends. */
  readonly #ends: Uint32Array
  /** By row: how many rows with trades there are up to this one, inclusive. */
  readonly #traded: Uint32Array
  #buffer = Buffer.alloc(0)
  #count = 0

  constructor(generation: number, rowsMin: number, form: TextForm) {
    const size = Math.ceil(rowsMin * SLACK)
    this.generation = generation
    this.rowsMin = rowsMin
    this.#form = form
    this.#times = new Float64Array(size)
    this.#ends = new Uint32Array(size)
    this.#traded = new Uint32Array(size)
  }

  get bytes(): number {
    return this.#buffer.length + this.#times.byteLength + this.#ends.byteLength + this.#traded.byteLength
  }

  get count(): number {
    return this.#count
  }

  /** Start of a row, Unix ms. */
  startMs(row: number): number {
    return this.#times[row]
  }

  /** Adds rows that follow those held; at most `rowsMin` at once. */
  append(columns: BarColumns): void {
    const { rowCount, t, n } = columns
    if (this.#count + rowCount > this.#times.length) this.#drop(this.#count + rowCount - this.rowsMin)
    const first = this.#count
    const start = this.#textEnd(first)
    let traded = first === 0 ? 0 : this.#traded[first - 1]
    const text = rowsText(columns, this.#form, (row, length) => {
      if (n[row] > 0) traded++
      this.#times[first + row] = t[row]
      this.#ends[first + row] = start + length
      this.#traded[first + row] = traded
    })
    this.#reserve(start + text.length)
    this.#buffer.write(text, start, 'latin1')
    this.#count += rowCount
  }

  clear(): void {
    this.#count = 0
  }

  /** The last `limit` rows that start within the bounds, both inclusive. */
  within(fromMs: number, toMs: number, limit: number): RowSpan {
    const end = this.#lowerBound(toMs, true)
    return { first: Math.max(Math.min(end, this.#lowerBound(fromMs, false)), end - limit), end }
  }

  /** Text of these rows, a separator after each. A view that is valid until the next `append`. */
  text({ first, end }: RowSpan): Buffer {
    return this.#buffer.subarray(this.#textEnd(first), this.#textEnd(end))
  }

  countTraded({ first, end }: RowSpan): number {
    if (first === end) return 0
    return this.#traded[end - 1] - (first === 0 ? 0 : this.#traded[first - 1])
  }

  /** Where the text of the rows before `row` ends. */
  #textEnd(row: number): number {
    return row === 0 ? 0 : this.#ends[row - 1]
  }

  /** The first row that starts at or after `timeMs`; with `isAfter`, after it. */
  #lowerBound(timeMs: number, isAfter: boolean): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#times[middle] < timeMs || (isAfter && this.#times[middle] === timeMs)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Forgets the oldest rows. */
  #drop(rows: number): void {
    const dropped = Math.min(rows, this.#count)
    const bytes = this.#textEnd(dropped)
    const traded = this.#traded[dropped - 1]
    this.#buffer.copyWithin(0, bytes, this.#textEnd(this.#count))
    this.#count -= dropped
    this.#times.copyWithin(0, dropped)
    for (let row = 0; row < this.#count; row++) {
      this.#ends[row] = this.#ends[row + dropped] - bytes
      this.#traded[row] = this.#traded[row + dropped] - traded
    }
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(Math.ceil(bytes * SLACK), this.rowsMin * ROW_BYTES_USUAL))
    this.#buffer.copy(grown)
    this.#buffer = grown
  }
}
