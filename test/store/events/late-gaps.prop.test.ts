// Which bars may have been written before a gap was known.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LATE_GRACE_MS } from '../../../src/market/time/limits.ts'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../../../src/schema/timeframe.ts'
import { findLateIntervals, findRewoundIntervals } from '../../../src/store/events/late-gaps.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2025, 5, 1, 23)

/** Every aligned interval of a minute or longer that begins around these times, and may have closed by `atMs`. */
function expected(fromMs: number, toMs: number, atMs: number): string[] {
  const found: string[] = []
  for (const tf of TIMEFRAMES.filter((each) => TIMEFRAME_MS[each] >= 60_000)) {
    const length = TIMEFRAME_MS[tf]
    for (let t = Math.floor(fromMs / length) * length - length; t < toMs + length; t += length)
      if (t + length > fromMs && t < toMs && t + length + LATE_GRACE_MS <= atMs) found.push(`${tf} ${t}`)
  }
  return found.sort()
}

const found = (event: MarketEvent, atMs: number): string[] =>
  findLateIntervals(event, atMs)
    .map(({ tf, tMs }) => `${tf} ${tMs}`)
    .sort()

const span = fc.tuple(
  fc.nat({ max: 6 * HOUR_MS }),
  fc.nat({ max: 3 * HOUR_MS }),
  fc.nat({ max: 3 * HOUR_MS }),
)

test('a disconnect marks the bars since its source had data that could close before it was noticed', () => {
  fc.assert(
    fc.property(span, ([from, away]) => {
      const [fromMs, atMs] = [START_MS + from, START_MS + from + away]
      const event: MarketEvent = { type: 'disconnect', ts: atMs, feed: 'push', sinceMs: fromMs }
      expect(found(event, atMs)).toEqual(away === 0 ? [] : expected(fromMs, atMs, atMs))
    }),
  )
})

test('of bars that were held open when a loss became known none is marked: they close later, with what is known then', () => {
  fc.assert(
    fc.property(span, ([from, away, held]) => {
      const [fromMs, atMs] = [START_MS + from, START_MS + from + away]
      const heldFromMs = fromMs - HOUR_MS + held
      const event: MarketEvent = { type: 'disconnect', ts: atMs, feed: 'push', sinceMs: fromMs, heldFromMs }
      const isClosed = (interval: string) => {
        const [tf, t] = interval.split(' ') as [Timeframe, string]
        return Number(t) + TIMEFRAME_MS[tf] <= heldFromMs
      }
      const all = away === 0 ? [] : expected(fromMs, atMs, atMs)
      expect(found(event, atMs)).toEqual(all.filter(isClosed))
    }),
  )
})

test('a gap marks the bars that it touches and that could close before it was told', () => {
  fc.assert(
    fc.property(span, ([from, length, later]) => {
      const [fromMs, toMs] = [START_MS + from, START_MS + from + length]
      const atMs = toMs + later
      const event: MarketEvent = { type: 'gap', ts: atMs, fromMs, toMs, reason: 'lost' }
      expect(found(event, atMs)).toEqual(length === 0 ? [] : expected(fromMs, toMs, atMs))
    }),
  )
})

test('a leap of the clock marks the bars that it may have closed, and none of the time that it passed over', () => {
  fc.assert(
    fc.property(span, ([from, length]) => {
      const [fromMs, toMs] = [START_MS + from, START_MS + from + length]
      const marked = found({ type: 'gap', ts: toMs, fromMs, toMs, reason: 'leap' }, toMs)
      expect(marked).toEqual(expected(fromMs, Math.min(fromMs + 1, toMs), toMs))
    }),
  )
})

test('market time that went back marks the bars that it could have closed before', () => {
  fc.assert(
    fc.property(span, ([from, length]) => {
      const [fromMs, toMs] = [START_MS + from, START_MS + from + length]
      const marked = findRewoundIntervals({ fromMs, toMs }).map(({ tf, tMs }) => `${tf} ${tMs}`)
      expect(marked.sort()).toEqual(expected(fromMs, toMs, toMs))
    }),
  )
  expect(findRewoundIntervals({ fromMs: START_MS - 500 * HOUR_MS, toMs: START_MS }).length).toBeLessThan(
    2_000,
  )
})

test('a feed that is noticed at once marks none, nor does another event', () => {
  expect(found({ type: 'disconnect', ts: START_MS, feed: 'push' }, START_MS)).toEqual([])
  expect(
    found({ type: 'disconnect', ts: START_MS, feed: 'push', sinceMs: START_MS - 4_000 }, START_MS),
  ).toEqual([])
  expect(found({ type: 'reconnect', ts: START_MS, feed: 'push' }, START_MS)).toEqual([])
})

test('a server that was down for weeks marks no more than a day', () => {
  const event: MarketEvent = {
    type: 'gap',
    ts: START_MS,
    fromMs: START_MS - 500 * HOUR_MS,
    toMs: START_MS,
    reason: 'downtime',
  }
  expect(found(event, START_MS).length).toBeLessThan(2_000)
})
