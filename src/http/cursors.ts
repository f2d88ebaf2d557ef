// In: lists that were frozen, and the places that clients have reached in them. Out: opaque cursors, and the list
// behind one, or 410. Lists of one version share one freeze; each is kept at least 30 s. At the maximum the oldest go.
import { randomBytes } from 'node:crypto'
import type { FrozenList, MarketDoor } from '../market/types.ts'
import { ServiceError } from '../schema/errors.ts'
import { ORDERS, type Order, type Sort, type Tab } from '../schema/vocabulary.ts'
import { invalidParameter } from './parameters.ts'

/** Longer than the contract's 30 s, so that a client that takes all of it is not late. */
const KEPT_MS = 60_000
const LISTS_MAX = 512

interface Kept {
  list: FrozenList
  frozenAtMs: number
}

export interface Place {
  list: FrozenList
  order: Order
  offset: number
}

export class Cursors {
  #market: MarketDoor
  #now: () => number
  #lists = new Map<number, Kept>()
  #latest = new Map<string, number>()
  #nextId = 1
  /** A cursor of another run of the server has expired too. */
  #run = randomBytes(3).toString('hex')

  constructor(market: MarketDoor, now: () => number = () => performance.now()) {
    this.#market = market
    this.#now = now
  }

  /** A cursor for what follows `offset` in the list as it is now, or null when nothing does. */
  begin(tab: Tab, sort: Sort, order: Order, offset: number): string | null {
    const key = `${tab} ${sort}`
    let id = this.#latest.get(key)
    let kept = id === undefined ? undefined : this.#lists.get(id)
    if (id === undefined || kept === undefined || kept.list.version !== this.#market.seq) {
      this.#forget()
      id = this.#nextId++
      kept = { list: this.#market.freeze(tab, sort), frozenAtMs: this.#now() }
      this.#lists.set(id, kept)
      this.#latest.set(key, id)
    }
    return this.#cursor(id, kept.list, order, offset)
  }

  /** Where a cursor stands. @throws ServiceError `cursor_expired`, `invalid_parameter`. */
  at(cursor: string): Place & { next(offset: number): string | null } {
    const match = /^([0-9a-f]{6})\.(\d{1,15})\.([01])\.(\d{1,15})$/.exec(
      Buffer.from(cursor, 'base64url').toString('latin1'),
    )
    if (match === null) throw invalidParameter('cursor', 'is not a cursor of this service')
    const [, run, id, order, offset] = match
    const kept = run === this.#run ? this.#lists.get(Number(id)) : undefined
    if (kept === undefined || this.#now() - kept.frozenAtMs > KEPT_MS) {
      throw new ServiceError(
        'cursor_expired',
        'The list of this cursor is no longer kept: start again without a cursor.',
      )
    }
    const direction = ORDERS[Number(order)]
    return {
      list: kept.list,
      order: direction,
      offset: Number(offset),
      next: (to) => this.#cursor(Number(id), kept.list, direction, to),
    }
  }

  #cursor(id: number, list: FrozenList, order: Order, offset: number): string | null {
    if (offset >= list.size) return null
    return Buffer.from(`${this.#run}.${id}.${ORDERS.indexOf(order)}.${offset}`).toString('base64url')
  }

  #forget(): void {
    for (const [id, { frozenAtMs }] of this.#lists) {
      if (this.#lists.size < LISTS_MAX && this.#now() - frozenAtMs <= KEPT_MS) return
      this.#lists.delete(id)
    }
  }
}
