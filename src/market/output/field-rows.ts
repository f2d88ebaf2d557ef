// Rows that have only the fields that somebody asked for. They are made from what a token is now, and kept while it stays so.
import { ownBytes } from '../../lib/bytes.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import type { MarketFigures, MarketRow, RowField } from '../../schema/market-item.ts'
import { windowFromMs } from '../bars/windows.ts'
import { FIELD_CHOICES_MAX, FIELD_LINES_MAX, type ListWindowName } from '../limits.ts'
import { FIGURE_WINDOWS, type ListFigures } from '../rankings/list-figures.ts'
import { numberOrNull } from '../tokens/figure.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { RowFields } from '../types.ts'
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

interface KeptLine {
  line: Buffer
  /** Position of the row's change that it shows. */
  seq: number
}

/** The lines of one choice of fields. */
interface LineSet {
  readonly windows: readonly ListWindowName[]
  /** Starts of the windows that the lines show. */
  windowState: string
  /** By slot. */
  readonly lines: Map<number, KeptLine>
}

export class FieldRows {
  readonly #tokens: TokenTable
  readonly #projections: Projections
  readonly #figures: ListFigures
  readonly #sets = new Map<string, LineSet>()
  #lineCount = 0

  constructor(tokens: TokenTable, projections: Projections, figures: ListFigures) {
    this.#tokens = tokens
    this.#projections = projections
    this.#figures = figures
  }

  /** Changes when time alone changes rows of these fields. */
  windowState({ fields }: RowFields, nowMs: number): string {
    return stateOf(windowsOf(fields), nowMs)
  }

  /** The row and its newline. */
  line(rowFields: RowFields, slot: number, nowMs: number): Buffer {
    const kept = this.kept(rowFields, slot, nowMs)
    if (kept !== null) return kept
    const line = ownBytes(`${this.open(rowFields, slot, nowMs)}}\n`)
    if (this.#lineCount >= FIELD_LINES_MAX) this.#forgetAll()
    const { lines } = this.#setOf(rowFields, nowMs)
    this.#lineCount -= lines.size
    lines.set(slot, { line, seq: this.#seqOf(slot) })
    this.#lineCount += lines.size
    return line
  }

  /** The line, where it is kept and still that of the row. */
  kept(rowFields: RowFields, slot: number, nowMs: number): Buffer | null {
    const kept = this.#setOf(rowFields, nowMs).lines.get(slot)
    return kept !== undefined && kept.seq === this.#seqOf(slot) ? kept.line : null
  }

  #seqOf(slot: number): number {
    return this.#tokens.columns.changedSeq[rowIndex(slot)]
  }

  /** The row as JSON, without its closing brace. */
  open({ fields }: RowFields, slot: number, nowMs: number): string {
    const item = this.#projections.item(slot, nowMs)
    let text = '{'
    for (const field of fields) {
      const value: MarketRow[RowField] = isFigure(field)
        ? numberOrNull(this.#figures.value(slot, FIGURES[field], nowMs))
        : item[field]
      const json = typeof value === 'string' ? jsonLine(value) : `${value}`
      text += text === '{' ? `"${field}":${json}` : `,"${field}":${json}`
    }
    return text
  }

  #setOf({ key, fields }: RowFields, nowMs: number): LineSet {
    let set = this.#sets.get(key)
    if (set === undefined) {
      if (this.#sets.size >= FIELD_CHOICES_MAX) this.#forgetAll()
      set = { windows: windowsOf(fields), windowState: '', lines: new Map() }
      this.#sets.set(key, set)
    }
    const state = stateOf(set.windows, nowMs)
    if (set.windowState !== state) {
      this.#lineCount -= set.lines.size
      set.lines.clear()
      set.windowState = state
    }
    return set
  }

  #forgetAll(): void {
    this.#sets.clear()
    this.#lineCount = 0
  }
}

function windowsOf(fields: readonly RowField[]): ListWindowName[] {
  const windows = fields.flatMap((field) =>
    isFigure(field) ? (FIGURE_WINDOWS[FIGURES[field]] ?? []) : field === 'volume_24h_usd' ? '24h' : [],
  )
  return [...new Set(windows)]
}

const stateOf = (windows: readonly ListWindowName[], nowMs: number): string =>
  windows.map((name) => windowFromMs(name, nowMs).toString(36)).join('.')
