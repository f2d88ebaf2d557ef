// Rows of the market list as lines of bytes: with all that they have by themselves, or with the fields that somebody asked for. This
// is the one place that says when a row is another than it was; pages, and the answers made of them, ask here. Lines are never
// written to again: a page that is being sent keeps showing its moment.
import { ownBytes } from '../../lib/bytes.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import { type MarketFigures, marketItemSchema, type RowField } from '../../schema/market-item.ts'
import type { ListWindowName } from '../bars/limits.ts'
import { windowFromMs } from '../bars/windows.ts'
import { FIGURE_WINDOWS, type ListFigures } from '../rankings/list-figures.ts'
import type { MarketTime } from '../time/market-time.ts'
import { numberOrNull } from '../tokens/figure.ts'
import type { RowFields } from '../types.ts'
import { FIELD_CHOICES_MAX, FIELD_LINES_MAX } from './limits.ts'
import type { Projections } from './projections.ts'

/** Fields of a row that are figures of the list. */
const FIGURES = {
  change_5m: 'change_5m',
  change_1h: 'change_1h',
  change_6h: 'change_6h',
  change_24h: 'change_24h',
  volume_1h_usd: 'volume_1h',
  trades_24h: 'trades_24h',
  buys_24h: 'buys_24h',
  sells_24h: 'sells_24h',
} as const satisfies Record<keyof MarketFigures, keyof typeof FIGURE_WINDOWS>

/** Memory in which rows are joined, at first. */
const JOINED_BYTES = 64 * 1_024
/** Bytes of a UTF-16 unit at most. */
const UNIT_BYTES_MAX = 3
const NEWLINE = 0x0a

const isFigure = (field: RowField): field is keyof MarketFigures => field in FIGURES

/** What rows have by themselves. */
const ITEM_FIELDS = marketItemSchema.keyof().options

/** A row's members, in the order in which they are written. What is undefined is not. */
type Row = Record<string, string | number | boolean | null | undefined>
/** Makes a row as it is now, with its position as its last member, if there is one. It is valid until the next. */
type MakeRow = (slot: number, seq?: number) => Row

/**
 * The lines of rows that have the same fields. A line is that of its row until the row's next change (its position), and
 * only while the windows that it shows begin where they began.
 */
export class LineSet {
  /** Where the windows begin that the lines show. */
  windowState = ''
  readonly windows: readonly ListWindowName[]
  readonly #changedSeq: Float64Array
  readonly #makeRow: MakeRow
  /** By slot. */
  readonly #lines: (Buffer | undefined)[] = []
  /** By slot: position of the row's change that its line shows. */
  readonly #seqs: number[] = []
  #size = 0

  constructor(windows: readonly ListWindowName[], changedSeq: Float64Array, makeRow: MakeRow) {
    this.windows = windows
    this.#changedSeq = changedSeq
    this.#makeRow = makeRow
  }

  get size(): number {
    return this.#size
  }

  /** The line of a row, where it is kept and shows the row as it is; else null. */
  kept(slot: number): Buffer | null {
    return this.#seqs[slot] === this.#changedSeq[slot] ? (this.#lines[slot] ?? null) : null
  }

  /** The row and its newline. */
  line(slot: number): Buffer {
    const kept = this.kept(slot)
    if (kept !== null) return kept
    const line = ownBytes(`${jsonLine(this.#makeRow(slot))}\n`)
    if (this.#lines[slot] === undefined) this.#size++
    this.#lines[slot] = line
    this.#seqs[slot] = this.#changedSeq[slot]
    return line
  }

  /** A row with its position as its last member, without a newline. It is not kept. */
  textWithSeq(slot: number, seq: number): string {
    return jsonLine(this.#makeRow(slot, seq))
  }

  /** Time moves on: lines of windows that have moved are of no use. */
  moveTo(nowMs: number): void {
    const state = this.windows.map((name) => windowFromMs(name, nowMs).toString(36)).join('.')
    if (state === this.windowState) return
    this.#lines.length = 0
    this.#seqs.length = 0
    this.#size = 0
    this.windowState = state
  }
}

export interface RowLinesParts {
  tokensMax: number
  time: MarketTime
  listFigures: ListFigures
  projections: Projections
}

export class RowLines {
  readonly #parts: RowLinesParts
  readonly #whole: LineSet
  /** By fields. */
  readonly #chosen = new Map<string, LineSet>()
  /** Where rows are joined. As strings, those that wait for others would be what the garbage collector copies most. */
  #joined = Buffer.allocUnsafeSlow(JOINED_BYTES)
  /** By slot: the position of its row's last change. Dense, so that readers of many rows stay in the CPU's cache. */
  readonly #changedSeq: Float64Array

  constructor(parts: RowLinesParts) {
    this.#parts = parts
    this.#changedSeq = new Float64Array(parts.tokensMax)
    this.#whole = this.#createSet(ITEM_FIELDS)
  }

  /** The lines of rows with these fields, as of now; null: with all that rows have by themselves. */
  of(fields: RowFields | null): LineSet {
    const set = fields === null ? this.#whole : this.#chosenSet(fields)
    set.moveTo(this.#parts.time.nowMs)
    return set
  }

  /** The row has changed, at this position. */
  changed(slot: number, seq: number): void {
    this.#changedSeq[slot] = seq
  }

  /**
   * These rows as NDJSON, each with its position as its last member. Their lines are not kept: a follower gets every change once,
   * and lines that nobody reads again would only burden the garbage collector.
   */
  joinWithSeq(slots: readonly number[], seqs: readonly number[], fields: RowFields | null): Buffer {
    const set = this.of(fields)
    let end = 0
    for (let row = 0; row < slots.length; row++) {
      const text = set.textWithSeq(slots[row], seqs[row])
      const needed = end + UNIT_BYTES_MAX * text.length + 1
      if (needed > this.#joined.length)
        this.#joined = Buffer.concat([this.#joined.subarray(0, end)], 2 * needed)
      end += this.#joined.write(text, end)
      this.#joined[end++] = NEWLINE
    }
    return Buffer.from(this.#joined.subarray(0, end))
  }

  #chosenSet({ key, fields }: RowFields): LineSet {
    let lineCount = 0
    for (const { size } of this.#chosen.values()) lineCount += size
    const isFull = this.#chosen.size >= FIELD_CHOICES_MAX && !this.#chosen.has(key)
    if (isFull || lineCount >= FIELD_LINES_MAX) this.#chosen.clear()
    const set = this.#chosen.get(key) ?? this.#createSet(fields)
    this.#chosen.set(key, set)
    return set
  }

  #createSet(fields: readonly RowField[]): LineSet {
    const { listFigures, projections, time } = this.#parts
    // The same object each time: one that grows by a member after another leaves more behind than its text.
    const chosen: Row = {}
    const makeRow: MakeRow = (slot, seq) => {
      const item = projections.item(slot, time.nowMs)
      const row: Row = fields === ITEM_FIELDS ? item : chosen
      if (row === chosen)
        for (const field of fields)
          row[field] = isFigure(field)
            ? numberOrNull(listFigures.value(slot, FIGURES[field], time.nowMs))
            : item[field]
      row.seq = seq
      return row
    }
    return new LineSet(windowsOf(fields), this.#changedSeq, makeRow)
  }
}

function windowsOf(fields: readonly RowField[]): ListWindowName[] {
  const windows = fields.flatMap((field) =>
    isFigure(field) ? (FIGURE_WINDOWS[FIGURES[field]] ?? []) : field === 'volume_24h_usd' ? '24h' : [],
  )
  return [...new Set(windows)]
}
