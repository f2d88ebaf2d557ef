// Cursors of the market list. A first page freezes the order of its list, and its cursor names that list and an offset. A list
// is kept until its last cursor is 30 s old, never less; if many are kept, first pages share the latest list of their tab
// and sort instead of freezing another.
import { assert } from '../../lib/assert.ts'
import type { FrozenList, MarketEngine } from '../../market/types.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ORDERS, type Order, type Sort, type Tab } from '../../schema/vocabulary.ts'
import {
  CURSOR_TTL_MS,
  FROZEN_LIST_SHARED_MS,
  FROZEN_LISTS_MAX,
  FROZEN_LISTS_UNSHARED_MAX,
} from '../limits.ts'
import { invalidParameter } from '../request/parameters.ts'

interface KeptList {
  id: number
  /** Tab and sort. */
  key: string
  list: FrozenList
  frozenAtMs: number
  /** When its last cursor was issued. */
  issuedAtMs: number
}

/** A frozen list to read pages from. */
export interface ListPages {
  list: FrozenList
  /** A cursor for the rows from `offset` on, or null if there are none. */
  cursorAt(order: Order, offset: number): string | null
}

export interface ListPosition extends ListPages {
  order: Order
  offset: number
}

export class Cursors {
  readonly #market: MarketEngine
  readonly #now: () => number
  /** By id, the list whose last cursor is oldest first. */
  readonly #lists = new Map<number, KeptList>()
  /** The latest of each tab and sort. */
  readonly #latest = new Map<string, KeptList>()
  #nextId = 1
  /** A cursor of an earlier run has expired. No two runs begin at the same position of the market. */
  readonly #run: string

  constructor(market: MarketEngine, now: () => number = () => performance.now()) {
    this.#market = market
    this.#now = now
    this.#run = market.seq.toString(36)
  }

  /** Lists that are kept. */
  get size(): number {
    return this.#lists.size
  }

  /** The list for a first page that is followed by cursors: frozen now, or shared with others. */
  begin(tab: Tab, sort: Sort): ListPages {
    this.#expire()
    const key = `${tab} ${sort}`
    const latest = this.#latest.get(key)
    if (latest !== undefined && this.#isShared(latest)) return this.#pages(latest)
    const nowMs = this.#now()
    const list = this.#market.freeze(tab, sort)
    const kept = { id: this.#nextId++, key, list, frozenAtMs: nowMs, issuedAtMs: nowMs }
    this.#lists.set(kept.id, kept)
    this.#latest.set(key, kept)
    return this.#pages(kept)
  }

  /** The list and the offset that a cursor names. @throws ServiceError `cursor_expired`, `invalid_parameter`. */
  at(cursor: string): ListPosition {
    const match = /^([0-9a-z]{1,11})\.(\d{1,15})\.([01])\.(\d{1,15})$/.exec(
      Buffer.from(cursor, 'base64url').toString('latin1'),
    )
    if (match === null) throw invalidParameter('cursor', 'is not a cursor of this service')
    const [, run, id, orderIndex, offset] = match
    this.#expire()
    const kept = run === this.#run ? this.#lists.get(Number(id)) : undefined
    if (kept === undefined) {
      throw new ServiceError('cursor_expired', 'The cursor has expired: start again without a cursor.')
    }
    const order = ORDERS[Number(orderIndex)]
    assert(order !== undefined, 'the pattern of a cursor allows the two orders only')
    return { ...this.#pages(kept), order, offset: Number(offset) }
  }

  #isShared({ list, frozenAtMs }: KeptList): boolean {
    if (list.version === this.#market.seq || this.size >= FROZEN_LISTS_MAX) return true
    return this.size >= FROZEN_LISTS_UNSHARED_MAX && this.#now() - frozenAtMs < FROZEN_LIST_SHARED_MS
  }

  #pages(kept: KeptList): ListPages {
    return { list: kept.list, cursorAt: (order, offset) => this.#cursor(kept, order, offset) }
  }

  #cursor(kept: KeptList, order: Order, offset: number): string | null {
    if (offset >= kept.list.size) return null
    kept.issuedAtMs = this.#now()
    this.#lists.delete(kept.id)
    this.#lists.set(kept.id, kept)
    return Buffer.from(`${this.#run}.${kept.id}.${ORDERS.indexOf(order)}.${offset}`).toString('base64url')
  }

  #expire(): void {
    const nowMs = this.#now()
    for (const [id, kept] of this.#lists) {
      if (nowMs - kept.issuedAtMs <= CURSOR_TTL_MS) return
      this.#lists.delete(id)
      if (this.#latest.get(kept.key) === kept) this.#latest.delete(kept.key)
    }
  }
}
