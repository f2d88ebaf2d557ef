// Rows of the market list as lines of bytes: with all that they have by themselves, or with the fields that somebody asked for. This
// is the one place that says when a row is another than it was; pages, and the answers made of them, ask here. Lines are never
// written to again: a page that is being sent keeps showing its moment.
import { recordFrom } from '../../lib/record.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import { TextBytes } from '../../lib/text/text-bytes.ts'
import {
  type MarketFigures,
  type MarketItem,
  marketItemSchema,
  type RowField,
} from '../../schema/market-item.ts'
import { windowFromMs } from '../bars/windows.ts'
import { FIELD_CHOICES_MAX, FIELD_LINES_MAX, type ListWindowName } from '../limits.ts'
import type { MarketSources } from '../market-sources.ts'
import { FIGURE_WINDOWS } from '../rankings/list-figures.ts'
import { numberOrNull } from '../tokens/figure.ts'
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

/** What rows have by themselves. */
const ITEM_FIELDS = marketItemSchema.keyof().options

/** Fields that change with a token's texts alone. */
const TEXT_FIELDS = [
  'mint',
  'name',
  'symbol',
  'description',
  'image_uri',
  'creator',
  'website',
  'twitter',
  'telegram',
  'quoteMint',
] as const satisfies readonly (keyof MarketItem)[]
type TextField = (typeof TEXT_FIELDS)[number]

const isText = (field: RowField): field is TextField => TEXT_FIELDS.some((name) => name === field)

/** A member of rows. */
interface Member {
  /** What stands before its value. */
  label: string
  /** The text that it is; null: it is a value of another kind. */
  text: TextField | null
  value(slot: number, item: MarketItem): number | boolean | null
}

/** Writes a row as JSON, with a position as its last member unless that is null, and its newline. */
type WriteRow = (out: TextBytes, slot: number, seq: number | null) => void

/**
 * The lines of rows that have the same fields. A line is that of its row until the row's next change (its position), and
 * only while the windows that it shows begin where they began.
 */
export class LineSet {
  /** Where the windows begin that the lines show. */
  windowState = ''
  readonly windows: readonly ListWindowName[]
  readonly #changedSeq: Float64Array
  readonly #write: WriteRow
  readonly #out: TextBytes
  /** By slot. */
  readonly #lines: (Buffer | undefined)[] = []
  /** By slot: position of the row's change that its line shows. */
  readonly #seqs: number[] = []
  #size = 0

  /** @param out where lines are made */
  constructor(windows: readonly ListWindowName[], changedSeq: Float64Array, write: WriteRow, out: TextBytes) {
    this.windows = windows
    this.#changedSeq = changedSeq
    this.#write = write
    this.#out = out
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
    this.#out.clear()
    this.#write(this.#out, slot, null)
    const line = this.#out.ownBytes()
    if (this.#lines[slot] === undefined) this.#size++
    this.#lines[slot] = line
    this.#seqs[slot] = this.#changedSeq[slot]
    return line
  }

  /** Writes a row with its position as its last member, and its newline. It is not kept. */
  writeWithSeq(slot: number, seq: number): void {
    this.#write(this.#out, slot, seq)
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

type RowSources = MarketSources & { projections: Projections }

export class RowLines {
  readonly #sources: RowSources
  readonly #whole: LineSet
  /** By fields. */
  readonly #chosen = new Map<string, LineSet>()
  /** By slot, as JSON. */
  readonly #texts: (Record<TextField, string> | undefined)[] = []
  readonly #out = new TextBytes()
  /** By slot: the position of its row's last change. Dense, so that readers of many rows stay in the CPU's cache. */
  readonly #changedSeq: Float64Array

  constructor(sources: RowSources) {
    this.#sources = sources
    this.#changedSeq = new Float64Array(sources.tokens.capacity)
    this.#whole = this.#createSet(ITEM_FIELDS)
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
    this.#out.clear()
    for (let row = 0; row < slots.length; row++) set.writeWithSeq(slots[row], seqs[row])
    return Buffer.from(this.#out.bytes)
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
    const { projections, time } = this.#sources
    const members = fields.map((field, index) => this.#member(field, index === 0))
    const write: WriteRow = (out, slot, seq) => {
      const item = projections.item(slot, time.nowMs)
      this.#texts[slot] ??= textsOf(item)
      const texts = this.#texts[slot]
      // All at once: V8 keeps the text of each number that is made a string by itself in a table, which the collector then walks.
      const values: (number | boolean | null)[] = []
      for (const { text, value } of members) if (text === null) values.push(value(slot, item))
      if (seq !== null) values.push(seq)
      const list = JSON.stringify(values)
      let at = 1
      for (const { label, text } of members) {
        out.write(label)
        if (text === null) at = out.writeItem(list, at)
        else out.write(texts[text])
      }
      if (seq !== null) {
        out.write(',"seq":')
        out.writeItem(list, at)
      }
      out.write('}\n')
    }
    return new LineSet(windowsOf(fields), this.#changedSeq, write, this.#out)
  }

  #member(field: RowField, isFirst: boolean): Member {
    const { listFigures, time } = this.#sources
    const label = `${isFirst ? '{' : ','}"${field}":`
    if (isText(field)) return { label, text: field, value: () => null }
    if (!isFigure(field)) return { label, text: null, value: (_, item) => item[field] }
    const figure = FIGURES[field]
    return { label, text: null, value: (slot) => numberOrNull(listFigures.value(slot, figure, time.nowMs)) }
  }
}

const textsOf = (item: MarketItem): Record<TextField, string> =>
  recordFrom(TEXT_FIELDS, (field) => jsonLine(item[field]))

function windowsOf(fields: readonly RowField[]): ListWindowName[] {
  const windows = fields.flatMap((field) =>
    isFigure(field) ? (FIGURE_WINDOWS[FIGURES[field]] ?? []) : field === 'volume_24h_usd' ? '24h' : [],
  )
  return [...new Set(windows)]
}
