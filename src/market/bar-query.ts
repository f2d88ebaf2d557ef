// In: a token's bars and what a reader wants of them. Out: bars ascending, the forming one last, filled when asked.
// Never changes a bar.
import { type Bar, TIMEFRAME_MS, TIMEFRAMES } from '../schema/bar.ts'
import { C, H, L, N, O, T, tradesOf, V } from './bar-ring.ts'
import type { BarStore } from './bars.ts'
import type { Bars, BarsQuery } from './types.ts'

/** The most recent bars that qualify. `watermarkMs`: a bar that ended by then is closed. */
export function readBars(store: BarStore, slot: number, query: BarsQuery, watermarkMs: number): Bars {
  const length = TIMEFRAME_MS[query.tf]
  const fromMs = query.fromMs ?? Number.NEGATIVE_INFINITY
  const toMs = query.toMs ?? Number.POSITIVE_INFINITY
  const filled = query.fill === 'prev'
  const descending: Bar[] = []
  store.backwards(slot, TIMEFRAMES.indexOf(query.tf), (values, at) => {
    const t = values[at + T]
    // A filled interval before `from` may still need the close of the bar before it.
    if (t < fromMs && !filled) return false
    if (t > toMs && !filled) return true
    const bar = toBar(values, at, t + length <= watermarkMs)
    const newer = descending[descending.length - 1]
    if (filled && newer !== undefined)
      fillBetween(descending, bar, newer.t, length, Math.max(fromMs, bar.t + 1), toMs, query.limit)
    if (descending.length < query.limit && t >= fromMs && (t <= toMs || filled)) descending.push(bar)
    return descending.length < query.limit + (filled ? 1 : 0) && t >= fromMs
  })
  const bars = descending.reverse().filter((bar) => bar.t <= toMs)
  const newest = bars[bars.length - 1]
  return {
    bars,
    gaps: countGaps(bars, length),
    version:
      newest === undefined
        ? '0'
        : `${newest.t}-${newest.n}-${newest.v}-${Math.min(watermarkMs, newest.t + length)}`,
  }
}

function toBar(values: Float64Array, at: number, closed: boolean): Bar {
  return {
    t: values[at + T],
    o: values[at + O],
    h: values[at + H],
    l: values[at + L],
    c: values[at + C],
    v: values[at + V],
    n: tradesOf(values[at + N]),
    closed,
  }
}

/** Puts an empty bar at the older bar's close into each interval between it and the newer one, newest first. */
function fillBetween(
  descending: Bar[],
  older: Bar,
  newerT: number,
  length: number,
  fromMs: number,
  toMs: number,
  limit: number,
): void {
  const { c } = older
  for (let t = newerT - length; t > older.t && t >= fromMs && descending.length < limit; t -= length) {
    if (t <= toMs) descending.push({ t, o: c, h: c, l: c, c, v: 0, n: 0, closed: true })
  }
}

/** Intervals without a bar, or filled, between the first and the last bar. */
function countGaps(bars: readonly Bar[], length: number): number {
  if (bars.length === 0) return 0
  const intervals = (bars[bars.length - 1].t - bars[0].t) / length + 1
  return intervals - bars.filter((bar) => bar.n > 0).length
}
