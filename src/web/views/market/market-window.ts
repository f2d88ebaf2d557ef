// The part of the market's list that is in sight, with a margin: the server sorts, searches and filters the whole market, sends these
// rows, and then once a second what has changed among them. Values change in place at once; the order is renewed only while it is not
// held, so that nothing jumps under the pointer.
import type { ListedRow } from '../../listed-fields.ts'
import type { WindowMessage, WindowQuery, WindowSource } from '../../window-source.ts'

/** The list that a window is of: everything but its place. */
export type ListQuery = Omit<WindowQuery, 'offset' | 'limit'>

/** Rows before and behind those in sight, and the steps in which a window moves. */
const MARGIN_ROWS = 10
const STEP_ROWS = 10
/** As many as the server sends of one window. */
const ROWS_MAX = 200
/** A window is asked for once the list has stood still for so long. */
const SETTLE_MS = 120

export interface WindowListener {
  /** Rows or their order have changed. */
  onChange(): void
  onError(message: string): void
}

export class MarketWindow {
  /** Rows of the whole list; null before the first answer, and where another list was asked for and refused. */
  total: number | null = null
  /** The same when the rows that are shown were those of the list: it is held with their order. */
  shownTotal: number | null = null
  /** Which way the last change of a price went, and when. */
  readonly moves = new Map<string, { direction: 1 | -1; atMs: number }>()
  readonly #live: WindowSource
  readonly #listener: WindowListener
  readonly #rows = new Map<string, ListedRow>()
  /** The mints in the order shown, from this index of the list on. */
  #shown: readonly string[] = []
  #shownOffset = 0
  /** The order as the server tells it, where it is another than that shown. */
  #next: readonly string[] | null = null
  #nextOffset = 0
  #query: ListQuery
  #place = { offset: 0, limit: 0 }
  #isHeld = false
  /** The next answer is that of another window: it is shown whatever is held. */
  #isMoved = true
  /** What is shown is of another list than was asked for. */
  #isOfOther = false
  #unsubscribe: (() => void) | null = null
  #settle: ReturnType<typeof setTimeout> | undefined

  constructor(live: WindowSource, query: ListQuery, listener: WindowListener) {
    this.#live = live
    this.#query = query
    this.#listener = listener
  }

  stop(): void {
    clearTimeout(this.#settle)
    this.#unsubscribe?.()
  }

  /** Rows whose place has changed while the order is held. */
  get movedCount(): number {
    const next = this.#next
    if (next === null) return 0
    return next.filter((mint, at) => this.#shown[at + this.#nextOffset - this.#shownOffset] !== mint).length
  }

  /** Whether a token that is shown is none of the window any more, while the order is held: the server tells nothing of it now. */
  hasLeft(mint: string): boolean {
    return this.#next !== null && !this.#next.includes(mint)
  }

  /** The row at an index of the list; undefined: it is not known yet. */
  at(index: number): ListedRow | undefined {
    const mint = this.#shown[index - this.#shownOffset]
    return mint === undefined ? undefined : this.#rows.get(mint)
  }

  /** Another list: from its top, at once. What is shown stays until it is there. */
  show(query: ListQuery): void {
    this.#query = query
    this.#isOfOther = true
    this.#place = { offset: 0, limit: this.#place.limit }
    this.#subscribe()
  }

  /** The rows from `first` to before `end` are in sight. */
  look(first: number, end: number): void {
    const offset = Math.max(0, Math.floor((first - MARGIN_ROWS) / STEP_ROWS) * STEP_ROWS)
    const limit = Math.min(ROWS_MAX, Math.ceil((end + MARGIN_ROWS - offset) / STEP_ROWS) * STEP_ROWS)
    if (offset === this.#place.offset && limit === this.#place.limit) return
    const isFirst = this.#place.limit === 0
    this.#place = { offset, limit }
    clearTimeout(this.#settle)
    if (isFirst) this.#subscribe()
    else this.#settle = setTimeout(() => this.#subscribe(), SETTLE_MS)
  }

  /** Keeps the order that is shown, or goes on with the newest. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (!isHeld) this.#showNext()
  }

  #subscribe(): void {
    clearTimeout(this.#settle)
    this.#unsubscribe?.()
    this.#isMoved = true
    this.#unsubscribe = this.#live.subscribeWindow(
      { ...this.#query, ...this.#place },
      {
        onWindow: (message) => this.#take(message),
        // The window is sent again after a break.
        onOpen: () => {
          this.#isMoved = true
        },
        onError: (message) => {
          if (this.#isOfOther) this.#forget()
          this.#listener.onError(message)
        },
      },
    )
  }

  /** Rows of the list before would look like the answer of one that is refused. */
  #forget(): void {
    this.total = null
    this.#next = []
    this.#showNext()
  }

  #take({ rows, total, order, offset }: WindowMessage): void {
    for (const row of rows) this.#takeRow(row)
    if (total !== undefined) this.total = total
    if (order !== undefined && offset !== undefined) {
      this.#next = order
      this.#nextOffset = offset
      // A list without rows has no order to hold.
      if (this.#isMoved || this.#shown.length === 0) this.#showNext()
      this.#isMoved = false
      this.#isOfOther = false
    }
    if (!this.#isHeld) this.#showNext()
    this.#listener.onChange()
  }

  #takeRow(row: ListedRow): void {
    const before = this.#rows.get(row.mint)?.priceUsd
    if (before != null && row.priceUsd != null && before !== row.priceUsd)
      this.moves.set(row.mint, { direction: row.priceUsd > before ? 1 : -1, atMs: Date.now() })
    this.#rows.set(row.mint, row)
  }

  #showNext(): void {
    this.shownTotal = this.total
    if (this.#next === null) return
    this.#shown = this.#next
    this.#shownOffset = this.#nextOffset
    this.#next = null
    const shown = new Set(this.#shown)
    for (const mint of this.#rows.keys())
      if (!shown.has(mint)) {
        this.#rows.delete(mint)
        this.moves.delete(mint)
      }
  }
}
