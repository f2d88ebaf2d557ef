// Cursors on a clock that the test sets: how long one is valid, and how many lists clients can make the server keep.
import { describe, expect, it } from 'vitest'
import {
  FILTERED_ROWS_MAX,
  FILTERED_ROWS_UNSHARED_MAX,
  FROZEN_LISTS_MAX,
  FROZEN_LISTS_UNSHARED_MAX,
} from '../../../src/http/limits.ts'
import { Cursors, type ListWatcher } from '../../../src/http/response/cursors.ts'
import type { Market } from '../../../src/market/market.ts'
import type { FrozenList, ListFilter } from '../../../src/market/types.ts'
import { KEPT_SORTS, ORDERS, type Sort, TABS, type Tab } from '../../../src/schema/vocabulary.ts'

function setUp() {
  const state = { nowMs: 0, seq: 1, generation: 0, freezes: 0, size: 1_000, run: 'run' }
  const market = {
    get seq() {
      return state.seq
    },
    get generation() {
      return state.generation
    },
    freeze(tab: Tab, sort: Sort, filter: ListFilter | null = null): FrozenList {
      state.freezes++
      const page = () => ({ ndjson: Buffer.alloc(0) }) as ReturnType<FrozenList['page']>
      const { seq, size } = state
      const isNewest = () => state.seq === seq
      return { tab, sort, filter, version: seq, size, isNewest, page, preparePage: () => true }
    },
  } as Market
  /** Names of the lists that are kept, as whoever watches is told. */
  const told = new Set<string>()
  const watcher: ListWatcher = {
    kept: (name) => {
      expect(told.has(name)).toBe(false)
      told.add(name)
    },
    dropped: (name) => expect(told.delete(name)).toBe(true),
  }
  const cursors = new Cursors({ market, run: () => state.run, watcher, now: () => state.nowMs })
  const first = (tab: Tab = 'all', sort: Sort = 'hot') => cursors.begin(tab, sort).cursorAt('desc', 50)!
  return { state, cursors, first, told }
}

const EXPIRED = expect.objectContaining({ code: 'cursor_expired' })

it('on an unchanged market each cursor is valid for 30 s from its creation, and all share one list', () => {
  const { state, cursors, first } = setUp()
  for (let round = 0; round < 20; round++) {
    const cursor = first()
    state.nowMs += 29_900
    expect(cursors.at(cursor)).toMatchObject({ offset: 50, order: 'desc' })
  }
  expect(state.freezes).toBe(1)
})

it('a reader may take 29.9 s for every page, whatever changes; lists that are no longer read are dropped', () => {
  const { state, cursors, first } = setUp()
  const start = first()
  let cursor: string | null = start
  for (let offset = 50; cursor !== null; offset += 50) {
    state.nowMs += 29_900
    state.seq++
    const place = cursors.at(cursor)
    expect([place.list.version, place.offset]).toEqual([1, offset])
    cursor = place.cursorAt(place.order, offset + 50)
  }
  state.nowMs += 60_000
  expect(() => cursors.at(start)).toThrow(EXPIRED)
  expect(cursors.size).toBe(0)
})

it('under many first pages of all lists cursors stay valid, memory is bounded, and a list is at most a second old', () => {
  const { state, cursors, first } = setUp()
  const given: { cursor: string; atMs: number; version: number }[] = []
  while (state.nowMs < 120_000) {
    for (const tab of TABS)
      for (const sort of KEPT_SORTS) {
        const { list, cursorAt } = cursors.begin(tab, sort)
        expect(state.seq - list.version).toBeLessThanOrEqual(100)
        if (tab === 'live' && sort === 'market_cap')
          given.push({ cursor: cursorAt('asc', 50)!, atMs: state.nowMs, version: list.version })
        else cursorAt('desc', 50)
      }
    expect(cursors.size).toBeLessThanOrEqual(FROZEN_LISTS_UNSHARED_MAX + TABS.length * KEPT_SORTS.length * 33)
    // Every 10 ms there is one change and a first page of each list.
    state.nowMs += 10
    state.seq++
    if (given[0].atMs <= state.nowMs - 29_900) {
      const { cursor, version } = given.shift()!
      expect(cursors.at(cursor).list.version).toBe(version)
    }
  }
  expect(first()).not.toBeNull()
})

it('readers that keep every list in use get no more than the maximum, and their cursors stay valid', () => {
  const { state, cursors, first } = setUp()
  const held: string[] = []
  for (let round = 0; round < FROZEN_LISTS_MAX + 50; round++) {
    held.push(first())
    state.nowMs += 1_000
    state.seq++
    for (const cursor of held) cursors.at(cursor).cursorAt('desc', 100)
  }
  expect(cursors.size).toBe(FROZEN_LISTS_MAX)
})

const FILTERS: (ListFilter | null)[] = [
  null,
  { search: 'a', analysesMax: null },
  { search: null, analysesMax: 0 },
  { search: 'a', analysesMax: 0 },
]
const LISTS = TABS.flatMap((tab) =>
  KEPT_SORTS.flatMap((sort) => FILTERS.map((filter) => [tab, sort, filter] as const)),
)

describe('a cursor', () => {
  const cursorsOf = ({ cursors }: ReturnType<typeof setUp>) =>
    LISTS.flatMap((list) => ORDERS.map((order) => cursors.begin(...list).cursorAt(order, 50)!))

  it('is the same in each process at the same position of the same run, and that of no other list', () => {
    const [a, b] = [setUp(), setUp()]
    b.first()
    b.state.nowMs = 7_000
    const seen = new Set<string>()
    for (const change of [{}, { seq: 2 }, { run: 'another' }, { seq: 3 }]) {
      Object.assign(a.state, change)
      Object.assign(b.state, change)
      const [ours, theirs] = [cursorsOf(a), cursorsOf(b)]
      expect(theirs).toEqual(ours)
      for (const cursor of ours) {
        expect(seen.has(cursor)).toBe(false)
        seen.add(cursor)
        expect(b.cursors.at(cursor)).toMatchObject({ offset: 50, list: { version: a.state.seq } })
      }
    }
    expect(a.told).toEqual(b.told)
    expect(a.told.size).toBe(4 * LISTS.length)
  })

  it('of a list that is kept elsewhere, or not any more, resolves to no other list', () => {
    const [a, b] = [setUp(), setUp()]
    const cursor = a.first()
    expect([a.cursors.missing(cursor), b.cursors.missing(cursor)]).toEqual([null, [...a.told][0]])
    expect(() => b.cursors.at(cursor)).toThrow(EXPIRED)
    // The same position of another run, and another position of the same one.
    for (const other of [{ run: 'another' }, { run: 'run', seq: 2 }]) {
      Object.assign(b.state, other)
      b.first()
      expect(() => b.cursors.at(cursor)).toThrow(EXPIRED)
    }
    b.state.seq = 1
    b.first()
    expect(b.cursors.at(cursor)).toMatchObject({ offset: 50, list: { version: 1 } })
    a.state.nowMs += 31_001
    expect(b.told).toContain(a.cursors.missing(cursor))
    expect(a.told.size).toBe(0)
    for (const none of ['', 'no cursor', Buffer.from('x.0.1').toString('base64url')])
      expect(a.cursors.missing(none)).toBeNull()
  })

  it('keeps one list where two requests freeze the same before either has a cursor', () => {
    const { state, cursors, told, first } = setUp()
    const [one, other] = [1, 2].map(() => cursors.begin('all', 'hot', FILTERS[1]))
    expect(one.list).not.toBe(other.list)
    expect(one.cursorAt('desc', 50)).toBe(other.cursorAt('desc', 50))
    expect([cursors.size, told.size]).toEqual([1, 1])
    state.nowMs += 31_001
    first()
    expect([cursors.size, told.size]).toEqual([1, 1])
  })
})

it('another market in the place of this one ends every list, also one that has no cursor yet', () => {
  const { state, cursors, first, told } = setUp()
  const cursor = first()
  const begun = cursors.begin('live', 'market_cap')
  state.generation++
  const late = begun.cursorAt('desc', 50)!
  for (const gone of [cursor, late]) expect(() => cursors.at(gone)).toThrow(EXPIRED)
  expect([cursors.size, told.size]).toEqual([0, 0])
  expect(cursors.at(first())).toMatchObject({ offset: 50 })
})

describe('lists with a filter', () => {
  const searchFor = (search: string) => ({ search, analysesMax: null })

  it('are shared by readers with the same filter alone, and kept once they have a cursor', () => {
    const { state, cursors } = setUp()
    const first = cursors.begin('all', 'hot', searchFor('a'))
    expect(first.cursorAt('desc', state.size)).toBeNull()
    expect(cursors.size).toBe(0)
    const cursor = first.cursorAt('desc', 50)!
    expect(cursors.begin('all', 'hot', searchFor('a')).list).toBe(first.list)
    for (const other of [
      searchFor('b'),
      { search: 'a', analysesMax: 0 },
      { search: null, analysesMax: 0 },
      null,
    ])
      expect(cursors.begin('all', 'hot', other).list, JSON.stringify(other)).not.toBe(first.list)
    state.seq++
    expect(cursors.begin('all', 'hot', searchFor('a')).list).not.toBe(first.list)
    expect(cursors.at(cursor).list).toBe(first.list)
  })

  it('take bounded memory and keep their cursors: at the maximum the same filter is shared, another refused', () => {
    const { state, cursors } = setUp()
    state.size = 100_000
    const held: string[] = []
    const begin = (search: string) => cursors.begin('all', 'hot', searchFor(search)).cursorAt('desc', 50)!
    for (let count = 0; count < FILTERED_ROWS_MAX / state.size; count++) {
      held.push(begin(`search ${count}`))
      state.seq++
    }
    expect(() => begin('one more')).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(cursors.begin('all', 'hot', searchFor('one page')).cursorAt('desc', state.size)).toBeNull()
    const { freezes } = state
    begin('search 0')
    expect(state.freezes).toBe(freezes)
    cursors.begin('all', 'hot').cursorAt('desc', 50)
    state.nowMs += 29_900
    for (const [count, cursor] of held.entries())
      expect(cursors.at(cursor).list.filter).toEqual(searchFor(`search ${count}`))
    state.nowMs += 2_000
    expect(begin('one more')).not.toBeNull()
    // The list of `search 0` had its last cursor later.
    expect(cursors.size).toBe(1)
  })

  it('are frozen at most once a second for each filter when half of that memory is used', () => {
    const { state, cursors } = setUp()
    state.size = 100_000
    for (let round = 0; round < 10_000; round++) {
      const { list, cursorAt } = cursors.begin('all', 'hot', searchFor('popular'))
      expect(state.seq - list.version).toBeLessThanOrEqual(100)
      cursorAt('desc', 50)
      expect(cursors.size).toBeLessThanOrEqual(FILTERED_ROWS_UNSHARED_MAX / state.size + 33)
      state.nowMs += 10
      state.seq++
    }
  })
})
