// Cursors of the market list. A first page freezes the order of its list, and its cursor names that list and an offset. A list
// is kept until its last cursor is 30 s old, never less; if many are kept, first pages share the latest list of their tab,
// sort and filter instead of freezing another.
import { assert } from '../../lib/assert.ts'
import type { FrozenList, ListFilter, MarketEngine } from '../../market/types.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ORDERS, type Order, type Sort, type Tab } from '../../schema/vocabulary.ts'
import {
  CURSOR_TTL_MS,
  FILTERED_LIST_ROWS_MIN,
  FILTERED_ROWS_MAX,
  FILTERED_ROWS_UNSHARED_MAX,
  FROZEN_LIST_SHARED_MS,
  FROZEN_LISTS_MAX,
  FROZEN_LISTS_UNSHARED_MAX,
} from '../limits.ts'
import { invalidParameter } from '../request/parameters.ts'

interface KeptList {
  id: number
  /** Tab, sort and filter. */
  key: string
  list: FrozenList
  frozenAtMs: number
  /** When its last cursor was issued. */
  issuedAtMs: number
  /** What counts against FILTERED_ROWS_MAX; 0 without a filter, as such a list copies no rows. */
  filteredRows: number
}

/** A frozen list to read pages from. */
export interface ListPages {
  list: FrozenList
  /** A cursor for the rows from `offset` on, or null if there are none. @throws ServiceError `overloaded`. */
  cursorAt(order: Order, offset: number): string | null
}

export interface ListPosition extends ListPages {
  order: Order
  offset: number
}

const parseCursor = (cursor: string): RegExpExecArray | null =>
  /^([0-9a-z]{1,11})\.(\d{1,15})\.([01])\.(\d{1,15})$/.exec(
    Buffer.from(cursor, 'base64url').toString('latin1'),
  )

/** The node that made a cursor; null where it is no cursor. */
export const nodeOfCursor = (cursor: string): string | null => parseCursor(cursor)?.[1] ?? null

export class Cursors {
  readonly #market: MarketEngine
  readonly #now: () => number
  /** By id, the list whose last cursor is oldest first. */
  readonly #lists = new Map<number, KeptList>()
  #filteredLists = 0
  #filteredRows = 0
  /** The latest of each tab, sort and filter. */
  readonly #latest = new Map<string, KeptList>()
  #nextId = 1
  /** A cursor of an earlier run, or of another node, has expired here. */
  readonly #node: string

  /** @param node see HttpNode.id */
  constructor(market: MarketEngine, node: string, now: () => number = () => performance.now()) {
    this.#market = market
    this.#now = now
    this.#node = node
  }

  /** Lists that are kept. */
  get size(): number {
    return this.#lists.size
  }

  /** The list for a first page that may be followed by cursors: frozen now, or shared with others. It is kept once it has a
   *  cursor. */
  begin(tab: Tab, sort: Sort, filter: ListFilter | null = null): ListPages {
    this.#expire()
    const key = JSON.stringify([tab, sort, filter?.analysesMax, filter?.search])
    const latest = this.#latest.get(key)
    if (latest !== undefined && this.#isShared(latest)) return this.#pages(latest)
    const nowMs = this.#now()
    const list = this.#market.freeze(tab, sort, filter)
    const filteredRows = filter === null ? 0 : Math.max(FILTERED_LIST_ROWS_MIN, list.size)
    return this.#pages({ id: this.#nextId++, key, list, frozenAtMs: nowMs, issuedAtMs: nowMs, filteredRows })
  }

  /** The list and the offset that a cursor names. @throws ServiceError `cursor_expired`, `invalid_parameter`. */
  at(cursor: string): ListPosition {
    const match = parseCursor(cursor)
    if (match === null) throw invalidParameter('cursor', 'is not a cursor of this service')
    const [, node, id, orderIndex, offset] = match
    this.#expire()
    const kept = node === this.#node ? this.#lists.get(Number(id)) : undefined
    if (kept === undefined) {
      throw new ServiceError('cursor_expired', 'The cursor has expired: start again without a cursor.')
    }
    const order = ORDERS[Number(orderIndex)]
    assert(order !== undefined, 'the pattern of a cursor allows the two orders only')
    return { ...this.#pages(kept), order, offset: Number(offset) }
  }

  /** Forgets every list: all cursors expire. */
  clear(): void {
    this.#lists.clear()
    this.#latest.clear()
    this.#filteredLists = 0
    this.#filteredRows = 0
  }

  #isShared({ list, frozenAtMs }: KeptList): boolean {
    const [used, unsharedMax, max] =
      list.filter === null
        ? [this.size - this.#filteredLists, FROZEN_LISTS_UNSHARED_MAX, FROZEN_LISTS_MAX]
        : [this.#filteredRows, FILTERED_ROWS_UNSHARED_MAX, FILTERED_ROWS_MAX]
    if (list.version === this.#market.seq || used >= max) return true
    return used >= unsharedMax && this.#now() - frozenAtMs < FROZEN_LIST_SHARED_MS
  }

  #pages(kept: KeptList): ListPages {
    return { list: kept.list, cursorAt: (order, offset) => this.#cursor(kept, order, offset) }
  }

  #cursor(kept: KeptList, order: Order, offset: number): string | null {
    if (offset >= kept.list.size) return null
    if (!this.#lists.delete(kept.id)) this.#keep(kept)
    kept.issuedAtMs = this.#now()
    // Behind all others: its last cursor is the youngest.
    this.#lists.set(kept.id, kept)
    return Buffer.from(`${this.#node}.${kept.id}.${ORDERS.indexOf(order)}.${offset}`).toString('base64url')
  }

  /** Counts a list that gets its first cursor. */
  #keep(kept: KeptList): void {
    if (kept.filteredRows > 0) {
      if (this.#filteredRows >= FILTERED_ROWS_MAX) throw tooManyLists()
      this.#filteredRows += kept.filteredRows
      this.#filteredLists++
    }
    this.#latest.set(kept.key, kept)
  }

  #expire(): void {
    const nowMs = this.#now()
    for (const [id, kept] of this.#lists) {
      if (nowMs - kept.issuedAtMs <= CURSOR_TTL_MS) return
      this.#lists.delete(id)
      this.#filteredRows -= kept.filteredRows
      if (kept.filteredRows > 0) this.#filteredLists--
      if (this.#latest.get(kept.key) === kept) this.#latest.delete(kept.key)
    }
  }
}

const tooManyLists = (): ServiceError =>
  new ServiceError(
    'overloaded',
    'Too many searches are being read page by page; ask for all rows in one page, or try again.',
    { retryAfterMs: 1_000 },
    { 'Retry-After': '1' },
  )
