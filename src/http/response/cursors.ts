// In: lists that were frozen, and the places that clients have reached in them. Out: opaque cursors, and the list
// behind one, or 410. A list is kept until no cursor of it is younger than 30 s, and never dropped before: when very many
// are kept, first pages share the last of their tab and sort instead of freezing another. Never keeps more than
// LISTS_KEPT_MAX and one for each tab and sort.
import type { FrozenList, MarketEngine } from '../../market/types.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ORDERS, type Order, type Sort, type Tab } from '../../schema/vocabulary.ts'
import { CURSOR_KEPT_MS, LISTS_FRESH_MAX, LISTS_KEPT_MAX, LISTS_SHARED_MS } from '../limits.ts'
import { invalidParameter } from '../request/parameters.ts'

interface CachedList {
  id: number
  /** Tab and sort. */
  of: string
  list: FrozenList
  frozenAtMs: number
  /** When a cursor of it was handed out last. */
  handedAtMs: number
}

/** A list that pages are read from. */
export interface ListPages {
  list: FrozenList
  /** A cursor for what follows `offset`, or null when nothing does. */
  next(order: Order, offset: number): string | null
}

export interface ListPosition extends ListPages {
  order: Order
  offset: number
}

export class Cursors {
  #market: MarketEngine
  #now: () => number
  /** By id, the one whose cursor is oldest first. */
  #lists = new Map<number, CachedList>()
  /** The youngest of each tab and sort. */
  #latest = new Map<string, CachedList>()
  #nextId = 1
  /** A cursor of another run of the server has expired too: a position tells them apart, as no two runs share one. */
  readonly #run: string

  constructor(market: MarketEngine, now: () => number = () => performance.now()) {
    this.#market = market
    this.#now = now
    this.#run = market.seq.toString(36)
  }

  /** Lists that are kept, all together. */
  get size(): number {
    return this.#lists.size
  }

  /** The list that a first page is to be read from if cursors shall follow it: as it is now, or a shared one. */
  begin(tab: Tab, sort: Sort): ListPages {
    this.#forget()
    const of = `${tab} ${sort}`
    const latest = this.#latest.get(of)
    if (latest !== undefined && this.#isShared(latest)) return this.#held(latest)
    const nowMs = this.#now()
    const list = this.#market.freeze(tab, sort)
    const kept = { id: this.#nextId++, of, list, frozenAtMs: nowMs, handedAtMs: nowMs }
    this.#lists.set(kept.id, kept)
    this.#latest.set(of, kept)
    return this.#held(kept)
  }

  /** Where a cursor stands. @throws ServiceError `cursor_expired`, `invalid_parameter`. */
  at(cursor: string): ListPosition {
    const match = /^([0-9a-z]{1,11})\.(\d{1,15})\.([01])\.(\d{1,15})$/.exec(
      Buffer.from(cursor, 'base64url').toString('latin1'),
    )
    if (match === null) throw invalidParameter('cursor', 'is not a cursor of this service')
    const [, run, id, order, offset] = match
    this.#forget()
    const kept = run === this.#run ? this.#lists.get(Number(id)) : undefined
    if (kept === undefined) {
      throw new ServiceError(
        'cursor_expired',
        'The list of this cursor is no longer kept: start again without a cursor.',
      )
    }
    return { ...this.#held(kept), order: ORDERS[Number(order)], offset: Number(offset) }
  }

  #isShared({ list, frozenAtMs }: CachedList): boolean {
    if (list.version === this.#market.seq || this.size >= LISTS_KEPT_MAX) return true
    return this.size >= LISTS_FRESH_MAX && this.#now() - frozenAtMs < LISTS_SHARED_MS
  }

  #held(kept: CachedList): ListPages {
    return { list: kept.list, next: (order, offset) => this.#cursor(kept, order, offset) }
  }

  #cursor(kept: CachedList, order: Order, offset: number): string | null {
    if (offset >= kept.list.size) return null
    kept.handedAtMs = this.#now()
    this.#lists.delete(kept.id)
    this.#lists.set(kept.id, kept)
    return Buffer.from(`${this.#run}.${kept.id}.${ORDERS.indexOf(order)}.${offset}`).toString('base64url')
  }

  #forget(): void {
    const nowMs = this.#now()
    for (const [id, kept] of this.#lists) {
      if (nowMs - kept.handedAtMs <= CURSOR_KEPT_MS) return
      this.#lists.delete(id)
      if (this.#latest.get(kept.of) === kept) this.#latest.delete(kept.of)
    }
  }
}
