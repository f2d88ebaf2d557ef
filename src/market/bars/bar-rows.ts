// In: bars of one series, column by column, in order. Out: their JSON text in one slab, and where each row lies in it.
// Holds the newest rows up to its size; the oldest give way. Never asks whether a bar may still change.
import type { BarShape } from '../../schema/bar.ts'
import type { BarColumns, TextForm } from '../types.ts'
import { barAt } from './bar-query.ts'

/** Where rows give way, it is this share of the size at once: moving the others is not free. */
const SLACK = 1.25
/** A row of seven full-length numbers is about this long; slabs begin with room for as many. */
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
 * Appends the rows to a text, calling `onRow` with its length after each. Nearly all of what this costs is the digits of
 * doubles, and JSON.stringify makes them in half the time that a template takes.
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
  /** Changed by whoever fills the series, and asked by it: rows of another generation are no longer true. */
  readonly generation: number
  /** Rows that it holds at least, once there are so many. */
  readonly rowsMin: number
  readonly #form: TextForm
  readonly #times: Float64Array
  /** By row: where its text ends. */
  readonly #ends: Uint32Array
  /** By row: rows with trades so far, itself included. Counts on when rows give way. */
  readonly #traded: Uint32Array
  #slab = Buffer.alloc(0)
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
    return this.#slab.length + this.#times.byteLength + this.#ends.byteLength + this.#traded.byteLength
  }

  get count(): number {
    return this.#count
  }

  /** Start of a row, Unix ms. */
  timeOf(row: number): number {
    return this.#times[row]
  }

  /** Adds rows that follow those held, at most `rowsMin` of them. */
  append(columns: BarColumns): void {
    const { rowCount, t, n } = columns
    if (this.#count + rowCount > this.#times.length) this.#drop(this.#count + rowCount - this.rowsMin)
    const first = this.#count
    const start = this.#endOf(first)
    let traded = first === 0 ? 0 : this.#traded[first - 1]
    const text = rowsText(columns, this.#form, (row, length) => {
      if (n[row] > 0) traded++
      this.#times[first + row] = t[row]
      this.#ends[first + row] = start + length
      this.#traded[first + row] = traded
    })
    this.#reserve(start + text.length)
    this.#slab.write(text, start, 'latin1')
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

  /** Text of these rows, a separator after each. A view: valid until the next change. */
  text({ first, end }: RowSpan): Buffer {
    return this.#slab.subarray(this.#endOf(first), this.#endOf(end))
  }

  tradedIn({ first, end }: RowSpan): number {
    if (first === end) return 0
    return this.#traded[end - 1] - (first === 0 ? 0 : this.#traded[first - 1])
  }

  /** Where the text of the rows before `row` ends. */
  #endOf(row: number): number {
    return row === 0 ? 0 : this.#ends[row - 1]
  }

  /** The first row that starts at or after `timeMs`, or after it when `after`. */
  #lowerBound(timeMs: number, after: boolean): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#times[middle] < timeMs || (after && this.#times[middle] === timeMs)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Forgets the oldest rows. */
  #drop(rows: number): void {
    const dropped = Math.min(rows, this.#count)
    const bytes = this.#endOf(dropped)
    const traded = this.#traded[dropped - 1]
    this.#slab.copyWithin(0, bytes, this.#endOf(this.#count))
    this.#count -= dropped
    this.#times.copyWithin(0, dropped)
    for (let row = 0; row < this.#count; row++) {
      this.#ends[row] = this.#ends[row + dropped] - bytes
      this.#traded[row] = this.#traded[row + dropped] - traded
    }
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#slab.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(Math.ceil(bytes * SLACK), this.rowsMin * ROW_BYTES_USUAL))
    this.#slab.copy(grown)
    this.#slab = grown
  }
}
