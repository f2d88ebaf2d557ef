// Cursors on a clock that the test sets: how long one is valid, and how many lists clients can make the server keep.
import { expect, it } from 'vitest'
import { FROZEN_LISTS_MAX, FROZEN_LISTS_UNSHARED_MAX } from '../../../src/http/limits.ts'
import { Cursors } from '../../../src/http/response/cursors.ts'
import type { FrozenList, ListFilter, MarketEngine } from '../../../src/market/types.ts'
import { SORTS, type Sort, TABS, type Tab } from '../../../src/schema/vocabulary.ts'

function setUp() {
  const state = { nowMs: 0, seq: 1, freezes: 0, size: 1_000 }
  const market = {
    get seq() {
      return state.seq
    },
    freeze(tab: Tab, sort: Sort, filter: ListFilter | null = null): FrozenList {
      state.freezes++
      const page = () => ({ ndjson: Buffer.alloc(0) }) as ReturnType<FrozenList['page']>
      return { tab, sort, filter, version: state.seq, size: state.size, page, preparePage: () => true }
    },
  } as MarketEngine
  const cursors = new Cursors(market, () => state.nowMs)
  const first = (tab: Tab = 'all', sort: Sort = 'hot') => cursors.begin(tab, sort).cursorAt('desc', 50)!
  return { state, cursors, first }
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
      for (const sort of SORTS) {
        const { list, cursorAt } = cursors.begin(tab, sort)
        expect(state.seq - list.version).toBeLessThanOrEqual(100)
        if (tab === 'live' && sort === 'market_cap')
          given.push({ cursor: cursorAt('asc', 50)!, atMs: state.nowMs, version: list.version })
        else cursorAt('desc', 50)
      }
    expect(cursors.size).toBeLessThanOrEqual(FROZEN_LISTS_UNSHARED_MAX + TABS.length * SORTS.length * 33)
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
