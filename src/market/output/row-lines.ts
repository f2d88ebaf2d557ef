// Rows of the market list as lines of bytes: with all that they have by themselves, or with the fields that somebody asked for. This
// is the one place that says when a row is another than it was; pages, and the answers made of them, ask here. Lines are never
// written to again: a page that is being sent keeps showing its moment.
import { ownBytes } from '../../lib/bytes.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import type { MarketFigures, MarketRow, RowField } from '../../schema/market-item.ts'
import { windowFromMs } from '../bars/windows.ts'
import { FIELD_CHOICES_MAX, FIELD_LINES_MAX, type ListWindowName } from '../limits.ts'
import { FIGURE_WINDOWS, type ListFigures } from '../rankings/list-figures.ts'
import type { MarketTime } from '../time/market-time.ts'
import { numberOrNull } from '../tokens/figure.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { RowFields } from '../types.ts'
import { type RowText, renderOpenItem, rowText } from './json-row.ts'
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

const isFigure = (field: RowField): field is keyof MarketFigures => field in FIGURES

/** The windows that a row shows which has all that rows have by themselves. */
const OF_WHOLE_ROWS: readonly ListWindowName[] = ['24h']

/**
 * The lines of rows that have the same fields. A line is that of its row until the row's next change (its position), and
 * only while the windows that it shows begin where they began.
 */
export class LineSet {
  /** Where the windows begin that the lines show. */
  windowState = ''
  readonly windows: readonly ListWindowName[]
  readonly #changedSeq: Float64Array
  readonly #render: (slot: number) => string
  /** By slot. */
  readonly #lines: (Buffer | undefined)[] = []
  /** By slot: position of the row's change that its line shows. */
  readonly #seqs: number[] = []
  #size = 0

  /** @param render makes a row as JSON, without its closing brace */
  constructor(
    windows: readonly ListWindowName[],
    changedSeq: Float64Array,
    render: (slot: number) => string,
  ) {
    this.windows = windows
    this.#changedSeq = changedSeq
    this.#render = render
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
    const line = ownBytes(`${this.#render(slot)}}\n`)
    if (this.#lines[slot] === undefined) this.#size++
    this.#lines[slot] = line
    this.#seqs[slot] = this.#changedSeq[slot]
    return line
  }

  /** A row as JSON, without its closing brace. It is not kept. */
  open(slot: number): string {
    return this.#render(slot)
  }

  forget(slot: number): void {
    if (this.#lines[slot] !== undefined) this.#size--
    this.#lines[slot] = undefined
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

export interface RowSources {
  tokens: TokenTable
  projections: Projections
  listFigures: ListFigures
  time: MarketTime
}

export class RowLines {
  readonly #sources: RowSources
  readonly #whole: LineSet
  /** By fields. */
  readonly #chosen = new Map<string, LineSet>()
  /** By slot: the parts of its line that change with its texts alone. */
  readonly #texts: (RowText | undefined)[] = []
  /** By slot: the position of its row's last change. Dense, so that readers of many rows stay in the CPU's cache. */
  readonly #changedSeq: Float64Array

  constructor(sources: RowSources) {
    this.#sources = sources
    this.#changedSeq = new Float64Array(sources.tokens.capacity)
    this.#whole = this.#createSet(OF_WHOLE_ROWS, (slot) => this.#openWhole(slot))
  }

  /** The lines of rows with these fields, as of now; null: with all that rows have by themselves. */
  of(fields: RowFields | null): LineSet {
    const set = fields === null ? this.#whole : this.#chosenSet(fields)
    set.moveTo(this.#sources.time.nowMs)
    return set
  }

  /** The row has changed, at this position. */
  changed(slot: number, seq: number): void {
    this.#changedSeq[slot] = seq
  }

  /** The token's texts have changed. */
  textsChanged(slot: number): void {
    this.#texts[slot] = undefined
  }

  /** The token was evicted. */
  forget(slot: number): void {
    this.#texts[slot] = undefined
    this.#whole.forget(slot)
  }

  /**
   * These rows as NDJSON, each with its position as its last member. Their lines are not kept: a follower gets every change once,
   * and lines that nobody reads again would only burden the garbage collector.
   */
  joinWithSeq(slots: readonly number[], seqs: readonly number[], fields: RowFields | null): Buffer {
    const set = this.of(fields)
    let rows = ''
    for (let row = 0; row < slots.length; row++) rows += `${set.open(slots[row])},"seq":${seqs[row]}}\n`
    return Buffer.from(rows)
  }

  #chosenSet({ key, fields }: RowFields): LineSet {
    let lineCount = 0
    for (const { size } of this.#chosen.values()) lineCount += size
    const isFull = this.#chosen.size >= FIELD_CHOICES_MAX && !this.#chosen.has(key)
    if (isFull || lineCount >= FIELD_LINES_MAX) this.#chosen.clear()
    const set =
      this.#chosen.get(key) ?? this.#createSet(windowsOf(fields), (slot) => this.#openChosen(fields, slot))
    this.#chosen.set(key, set)
    return set
  }

  #createSet(windows: readonly ListWindowName[], render: (slot: number) => string): LineSet {
    return new LineSet(windows, this.#changedSeq, render)
  }

  #openWhole(slot: number): string {
    const { tokens, projections, time } = this.#sources
    this.#texts[slot] ??= rowText(tokens.metadata[slot])
    return renderOpenItem(projections.item(slot, time.nowMs), this.#texts[slot])
  }

  #openChosen(fields: readonly RowField[], slot: number): string {
    const { projections, listFigures, time } = this.#sources
    const item = projections.item(slot, time.nowMs)
    let text = '{'
    for (const field of fields) {
      const value: MarketRow[RowField] = isFigure(field)
        ? numberOrNull(listFigures.value(slot, FIGURES[field], time.nowMs))
        : item[field]
      const json = typeof value === 'string' ? jsonLine(value) : `${value}`
      text += text === '{' ? `"${field}":${json}` : `,"${field}":${json}`
    }
    return text
  }
}

function windowsOf(fields: readonly RowField[]): ListWindowName[] {
  const windows = fields.flatMap((field) =>
    isFigure(field) ? (FIGURE_WINDOWS[FIGURES[field]] ?? []) : field === 'volume_24h_usd' ? '24h' : [],
  )
  return [...new Set(windows)]
}
