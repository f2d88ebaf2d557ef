// Cursors of the market list. A first page freezes the order of its list, and its cursor names that list and an offset. A list
// is kept until its last cursor has been valid for as long as is promised; if many are kept, first pages share the latest list of their tab,
// sort and filter instead of freezing another.

import { hash, randomUUID } from 'node:crypto'
import { assert } from '../../lib/assert.ts'
import type { Market } from '../../market/market.ts'
import type { FrozenList, ListFilter } from '../../market/types.ts'
import { ServiceError } from '../../schema/errors.ts'
import { isFigureSort, ORDERS, type Order, type Sort, type Tab } from '../../schema/vocabulary.ts'
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
import { overloaded } from './rate-limit-headers.ts'

/** Told which lists are kept here, where other processes are asked for them too. */
export interface ListWatcher {
  /** A list is kept from now on. @param name see KeptList.name */
  kept(name: string): void
  /** It is not kept any more. */
  dropped(name: string): void
}

interface KeptList {
  /** Follows from its key and position, so that it is the same wherever the same list is frozen, and no other list has it. */
  name: string
  /** Run, tab, sort and filter. */
  key: string
  list: FrozenList
  /** Of the market that it was frozen from. */
  generation: number
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

export interface CursorOptions {
  market: Market
  /** See HttpNode. */
  run(): string
  watcher?: ListWatcher | undefined
  /** Monotonic clock, ms. */
  now?: () => number
}

/** Of a list's name: 132 bits. */
const NAME_CHARACTERS = 22
/** It ends with a dot: of one that was cut, or has something behind it, the number would be another one. */
const CURSOR = new RegExp(`^([\\w-]{${NAME_CHARACTERS}})\\.([01])\\.(\\d{1,15})\\.$`)

const parseCursor = (cursor: string): RegExpExecArray | null =>
  CURSOR.exec(Buffer.from(cursor, 'base64url').toString('latin1'))

/** Whether the list changes without an event. */
const dependsOnTime = (sort: Sort, filter: ListFilter | null): boolean =>
  isFigureSort(sort) || filter?.ranges !== undefined

export const cursorExpired = (): ServiceError =>
  new ServiceError('cursor_expired', 'The cursor has expired: start again without a cursor.')

export class Cursors {
  readonly #market: Market
  readonly #run: () => string
  readonly #watcher: ListWatcher | undefined
  readonly #now: () => number
  /** By name, the list whose last cursor is oldest first. */
  readonly #lists = new Map<string, KeptList>()
  /** Of this process. */
  readonly #own = randomUUID()
  #frozenCount = 0
  #filteredLists = 0
  #filteredRows = 0
  /** The latest of each key. */
  readonly #latest = new Map<string, KeptList>()
  /** Of the market that the lists were frozen from. */
  #generation: number

  constructor({ market, run, watcher, now = () => performance.now() }: CursorOptions) {
    this.#market = market
    this.#run = run
    this.#watcher = watcher
    this.#now = now
    this.#generation = market.generation
  }

  /** Lists that are kept. */
  get size(): number {
    return this.#lists.size
  }

  /** The list for a first page that may be followed by cursors: frozen now, or shared with others. It is kept once it has a
   *  cursor. */
  begin(tab: Tab, sort: Sort, filter: ListFilter | null = null): ListPages {
    this.#expire()
    const key = JSON.stringify([this.#run(), tab, sort, filter])
    const latest = this.#latest.get(key)
    if (latest !== undefined && this.#isShared(latest)) return this.#pages(latest)
    const nowMs = this.#now()
    const list = this.#market.freeze(tab, sort, filter)
    // Where time decides too, two processes at one position may have frozen different lists.
    const place = dependsOnTime(sort, filter) ? `${this.#own} ${this.#frozenCount++}` : ''
    const name = hash('sha1', `${list.version} ${place} ${key}`, 'base64url').slice(0, NAME_CHARACTERS)
    const filteredRows = filter === null ? 0 : Math.max(FILTERED_LIST_ROWS_MIN, list.size)
    const times = { generation: this.#generation, frozenAtMs: nowMs, issuedAtMs: nowMs }
    return this.#pages({ name, key, list, filteredRows, ...times })
  }

  /** The list and the offset that a cursor names. @throws ServiceError `cursor_expired`, `invalid_parameter`. */
  at(cursor: string): ListPosition {
    const match = parseCursor(cursor)
    if (match === null) throw invalidParameter('cursor', 'is not a cursor of this service')
    const [, name = '', orderIndex, offset] = match
    this.#expire()
    const kept = this.#lists.get(name)
    if (kept === undefined) throw cursorExpired()
    const order = ORDERS[Number(orderIndex)]
    assert(order !== undefined, 'the pattern of a cursor allows the two orders only')
    return { ...this.#pages(kept), order, offset: Number(offset) }
  }

  /** The name of the list of a cursor that is not kept here; null: it is, or this is no cursor. */
  missing(cursor: string): string | null {
    const [, name] = parseCursor(cursor) ?? []
    this.#expire()
    return name === undefined || this.#lists.has(name) ? null : name
  }

  #isShared({ list, frozenAtMs }: KeptList): boolean {
    const [used, unsharedMax, max] =
      list.filter === null
        ? [this.size - this.#filteredLists, FROZEN_LISTS_UNSHARED_MAX, FROZEN_LISTS_MAX]
        : [this.#filteredRows, FILTERED_ROWS_UNSHARED_MAX, FILTERED_ROWS_MAX]
    if (used >= max || list.isNewest()) return true
    return used >= unsharedMax && this.#now() - frozenAtMs < FROZEN_LIST_SHARED_MS
  }

  #pages(kept: KeptList): ListPages {
    return { list: kept.list, cursorAt: (order, offset) => this.#cursor(kept, order, offset) }
  }

  #cursor(frozen: KeptList, order: Order, offset: number): string | null {
    const { name, list } = frozen
    if (offset >= list.size) return null
    // One of a market that was replaced meanwhile is not kept: its cursor has expired.
    if (frozen.generation === this.#market.generation) this.#renew(this.#lists.get(name) ?? frozen)
    return Buffer.from(`${name}.${ORDERS.indexOf(order)}.${offset}.`).toString('base64url')
  }

  /** The list gets a cursor. */
  #renew(kept: KeptList): void {
    if (!this.#lists.delete(kept.name)) this.#keep(kept)
    kept.issuedAtMs = this.#now()
    // Behind all others: its last cursor is the youngest.
    this.#lists.set(kept.name, kept)
  }

  /** Counts a list that gets its first cursor. */
  #keep(kept: KeptList): void {
    if (kept.filteredRows > 0) {
      if (this.#filteredRows >= FILTERED_ROWS_MAX) throw tooManyLists()
      this.#filteredRows += kept.filteredRows
      this.#filteredLists++
    }
    this.#latest.set(kept.key, kept)
    this.#watcher?.kept(kept.name)
  }

  #expire(): void {
    const nowMs = this.#now()
    const { generation } = this.#market
    const isReplaced = generation !== this.#generation
    this.#generation = generation
    for (const kept of this.#lists.values()) {
      if (!isReplaced && nowMs - kept.issuedAtMs <= CURSOR_TTL_MS) return
      this.#drop(kept)
    }
  }

  #drop(kept: KeptList): void {
    this.#lists.delete(kept.name)
    this.#filteredRows -= kept.filteredRows
    if (kept.filteredRows > 0) this.#filteredLists--
    if (this.#latest.get(kept.key) === kept) this.#latest.delete(kept.key)
    this.#watcher?.dropped(kept.name)
  }
}

const tooManyLists = (): ServiceError =>
  overloaded('Too many searches are being read page by page; ask for all rows in one page, or try again.')
