// Caches bars as JSON text. A closed bar never changes, so its text is made once and lies beside that of its neighbours: an answer
// is one copy. Open bars are rendered for each answer. All texts together stay under a maximum of bytes, at which the series that
// was read longest ago is dropped.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../../schema/bar.ts'
import type { BarColumns, BarsQuery, BarsText, TextForm } from '../types.ts'
import type { BarCascade } from './bar-cascade.ts'
import { barsVersion, countGaps, NO_COLUMNS, readColumns, timeRange } from './bar-query.ts'
import { T } from './bar-ring.ts'
import { BarRows, type RowSpan, rowsText } from './bar-rows.ts'
import { BAR_TEXT_BYTES_MAX, BAR_TEXT_ROWS_MIN, CHUNK_BARS } from './limits.ts'

const NO_TEXT = Buffer.alloc(0)

export class BarTextCache {
  readonly #store: BarCascade
  /** By `seriesKey`; the series that was read longest ago is the oldest. */
  readonly #series: BoundedMap<number, BarRows>

  constructor(store: BarCascade, bytesMax = BAR_TEXT_BYTES_MAX) {
    this.#store = store
    this.#series = new BoundedMap({ weightMax: bytesMax, weigh: ({ bytes }) => bytes })
  }

  /** Memory held for text. */
  get bytes(): number {
    return this.#series.weight
  }

  /** The bars that `readColumns` finds, as text. */
  read(slot: number, query: BarsQuery, watermarkMs: number, form: TextForm): BarsText {
    const ring = this.#store.ring(TIMEFRAMES.indexOf(query.tf))
    const newest = ring.newest(slot)
    if (newest === -1) return this.#readUncached(slot, query, watermarkMs, form)
    const closedMs = ring.values[newest + T]
    const { fromMs, toMs } = timeRange(query)
    const after = { ...query, fromMs: Math.max(fromMs, closedMs + 1) }
    const open = toMs > closedMs ? readColumns(this.#store, slot, after, watermarkMs) : NO_COLUMNS
    const limit = query.limit - open.rowCount
    if (limit === 0 || fromMs > closedMs) return renderAll(open, form)
    const wanted = {
      fromMs: Math.max(fromMs, ring.values[ring.oldest(slot) + T]),
      toMs: Math.min(toMs, closedMs),
      limit,
      closedMs,
    }
    const rows = this.#cachedRows(slot, query, watermarkMs, form, wanted)
    if (rows === null) return this.#readUncached(slot, query, watermarkMs, form)
    const span = rows.within(wanted.fromMs, wanted.toMs, limit)
    return this.#joined(slot, query, watermarkMs, form, rows, span, open)
  }

  /** Without the cache: no bar is closed, or bars are wanted that are older than the cached ones. */
  #readUncached(slot: number, query: BarsQuery, watermarkMs: number, form: TextForm): BarsText {
    return renderAll(readColumns(this.#store, slot, query, watermarkMs), form)
  }

  #joined(
    slot: number,
    { tf }: BarsQuery,
    watermarkMs: number,
    form: TextForm,
    rows: BarRows,
    span: RowSpan,
    open: BarColumns,
  ): BarsText {
    const rowCount = span.end - span.first + open.rowCount
    if (rowCount === 0) return renderAll(open, form)
    const firstMs = span.end > span.first ? rows.startMs(span.first) : open.t[0]
    const lastMs = open.rowCount > 0 ? open.t[open.rowCount - 1] : rows.startMs(span.end - 1)
    const traded = rows.countTraded(span) + countTraded(open)
    const timeframe = TIMEFRAMES.indexOf(tf)
    return {
      closed: rows.text(span),
      open: rowsText(open, form),
      rowCount,
      firstMs,
      gaps: countGaps(firstMs, lastMs, TIMEFRAME_MS[tf], rowCount, traded),
      version: barsVersion(this.#store, slot, timeframe, watermarkMs, firstMs, lastMs, rowCount),
    }
  }

  /** The cached series, brought up to date. Null when it cannot hold all rows wanted. */
  #cachedRows(
    slot: number,
    query: BarsQuery,
    watermarkMs: number,
    form: TextForm,
    wanted: Wanted,
  ): BarRows | null {
    const key = seriesKey(slot, query, form)
    const generation = this.#store.generation(slot)
    const rowsMin = this.#rowsFor(query.tf, wanted)
    let rows = this.#series.get(key)
    // Taken out while it grows: what is held must not change its size.
    if (rows !== undefined) this.#series.delete(key)
    if (rows?.generation !== generation) rows = new BarRows(generation, rowsMin, form)
    this.#extend(rows, slot, query, watermarkMs, wanted.closedMs)
    if (!covers(rows, query.tf, wanted) && rows.rowsMin < rowsMin) {
      rows = new BarRows(generation, rowsMin, form)
      this.#extend(rows, slot, query, watermarkMs, wanted.closedMs)
    }
    this.#series.set(key, rows)
    return covers(rows, query.tf, wanted) ? rows : null
  }

  /** Appends the bars that were closed since. */
  #extend(rows: BarRows, slot: number, query: BarsQuery, watermarkMs: number, closedMs: number): void {
    const lastMs = rows.count === 0 ? 0 : rows.startMs(rows.count - 1)
    if (lastMs === closedMs) return
    const since = { ...query, limit: rows.rowsMin, fromMs: lastMs + 1, toMs: closedMs }
    const columns = readColumns(this.#store, slot, since, watermarkMs)
    // There may be more bars between these and the rows held.
    if (columns.rowCount === rows.rowsMin) rows.clear()
    rows.append(columns)
  }

  /** How many rows a series holds to answer this. Most readers want few. */
  #rowsFor(tf: Timeframe, { toMs, limit, closedMs }: Wanted): number {
    const max = this.#store.barsPerTokenMax + 2 * CHUNK_BARS[tf]
    const needed = toMs === closedMs ? limit : max
    return Math.min(max, 2 ** Math.ceil(Math.log2(Math.max(needed, BAR_TEXT_ROWS_MIN))))
  }
}

/** The closed bars that an answer needs. */
interface Wanted {
  fromMs: number
  toMs: number
  limit: number
  /** Start of the newest closed bar. */
  closedMs: number
}

/** A number for each token, timeframe, fill, shape and separator, so that a look-up builds no string. */
const seriesKey = (slot: number, { tf, fill }: BarsQuery, { shape, separator }: TextForm): number =>
  (slot * TIMEFRAMES.length + TIMEFRAMES.indexOf(tf)) * 8 +
  (fill === 'prev' ? 4 : 0) +
  (shape === 'long' ? 2 : 0) +
  (separator === ',' ? 1 : 0)

/** Whether the series holds all rows wanted: as many as the limit, or the token has none that are older. */
function covers(rows: BarRows, tf: Timeframe, { fromMs, toMs, limit }: Wanted): boolean {
  if (rows.count > 0 && rows.startMs(0) - TIMEFRAME_MS[tf] < fromMs) return true
  const { first, end } = rows.within(fromMs, toMs, limit)
  return end - first === limit
}

const countTraded = ({ n, rowCount }: BarColumns): number => {
  let traded = 0
  for (let row = 0; row < rowCount; row++) if (n[row] > 0) traded++
  return traded
}

function renderAll(columns: BarColumns, form: TextForm): BarsText {
  const { rowCount, gaps, version } = columns
  const firstMs = rowCount === 0 ? 0 : columns.t[0]
  return { closed: NO_TEXT, open: rowsText(columns, form), rowCount, firstMs, gaps, version }
}
