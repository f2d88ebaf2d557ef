// The part of the market's list that is in sight, between what the server tells of it.
import { afterEach, expect, test, vi } from 'vitest'
import type { ListedRow } from '../../src/web/listed-fields.ts'
import { MarketWindow } from '../../src/web/views/market/market-window.ts'
import type { WindowListener, WindowMessage, WindowSource } from '../../src/web/window-source.ts'

afterEach(() => void vi.useRealTimers())

/** A window of the two hottest rows, and the server that it follows. */
function follow() {
  const listeners: WindowListener[] = []
  const live: WindowSource = {
    subscribeWindow: (_query, listener) => {
      listeners.push(listener)
      return () => {}
    },
  }
  const errors: string[] = []
  const window = new MarketWindow(
    live,
    { sort: 'hot' },
    { onChange: () => {}, onError: (message) => errors.push(message) },
  )
  window.look(0, 2)
  const tell = (message: WindowMessage) => listeners.at(-1)?.onWindow(message)
  const answer = (order: string[], total = order.length) =>
    tell({ rows: order.map(row), order, offset: 0, total })
  const refuse = (message: string) => listeners.at(-1)?.onError(message, 'invalid_parameter')
  return { window, errors, tell, answer, refuse }
}

const row = (mint: string) => ({ mint, priceUsd: 1 }) as ListedRow

test('the rows of the list before are no answer to one that is refused', () => {
  const { window, errors, answer, refuse } = follow()
  answer(['A', 'B'], 3)
  window.show({ sort: 'hot', search: '$' })
  expect([window.total, window.at(0)?.mint]).toEqual([3, 'A'])
  refuse('Search must contain a letter or a digit.')
  expect([window.total, window.at(0), window.at(1)]).toEqual([null, undefined, undefined])
  expect(errors).toEqual(['Search must contain a letter or a digit.'])
  answer(['C'])
  expect([window.total, window.at(0)?.mint]).toEqual([1, 'C'])
})

test('a list stays while no more of it may be read', () => {
  const { window, answer, refuse } = follow()
  vi.useFakeTimers()
  answer(['A', 'B'], 3_000)
  window.look(1_000, 1_002)
  vi.runAllTimers()
  refuse('The limit of reads is used up.')
  expect([window.total, window.at(0)?.mint]).toEqual([3_000, 'A'])
})

test('a row that left the window while the order is held is no longer renewed, and known as such until it is back', () => {
  const { window, answer } = follow()
  answer(['A', 'B'], 3)
  window.hold(true)
  const left = () => [0, 1].flatMap((at) => window.at(at)?.mint ?? []).filter((mint) => window.hasLeft(mint))
  expect(left()).toEqual([])
  answer(['C', 'B'], 3)
  expect([window.at(0)?.mint, left()]).toEqual(['A', ['A']])
  answer(['B', 'A'], 3)
  expect(left()).toEqual([])
  answer(['C', 'B'], 3)
  window.hold(false)
  expect([window.at(0)?.mint, left()]).toEqual(['C', []])
})

test('a list that was empty shows its rows, though its order is held', () => {
  const { window, answer } = follow()
  answer([])
  window.hold(true)
  answer(['first'])
  expect(window.at(0)?.mint).toBe('first')
})

test('a list that becomes shorter while its order is held is as long as what is shown, and one that is not held as it is', () => {
  const { window, tell, answer } = follow()
  answer(['A', 'B', 'C'])
  window.hold(true)
  answer(['B', 'C'])
  expect([window.total, window.shownTotal, window.at(2)?.mint]).toEqual([2, 3, 'C'])
  window.hold(false)
  expect([window.total, window.shownTotal, window.at(2)?.mint]).toEqual([2, 2, undefined])
  // Where what is in sight stays as it is, the number alone is told.
  tell({ rows: [], total: 7 })
  expect([window.total, window.shownTotal]).toEqual([7, 7])
  window.hold(true)
  tell({ rows: [], total: 6 })
  expect([window.total, window.shownTotal]).toEqual([6, 7])
  window.hold(false)
  expect(window.shownTotal).toBe(6)
})
