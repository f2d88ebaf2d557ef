// The last hour of the server as lines, with what is near its limit marked.

import { html, nothing, type TemplateResult } from 'lit-html'
import { HOUR_MS } from '../../../lib/time.ts'
import type { History, HistoryAnswer, HistorySeries } from '../../../schema/api/status.ts'
import { Fetched, request } from '../../api.ts'
import { isStale, staleBanner } from '../../dom.ts'
import { formatAmount, formatBytes, formatCount, formatTime } from '../../format.ts'

const EVERY_MS = 10_000
/** A young server's line is as wide as if it ran for so long. */
const SPAN_MS_MIN = 10 * 60_000
/** From this share of a limit on a series counts as near it; where the limit is the least, up to so many times of it. */
const NEAR_SHARE = 0.8
const NEAR_TIMES = 1.5

const TITLES: Readonly<Record<string, string>> = {
  trades: 'Trades a second',
  submissions: 'Submissions a second',
  requests: 'Requests a second',
  errors: 'Errors a second',
  tokens: 'Tokens',
  followers: 'Followers',
  memory: 'Memory',
  eventLoopDelay: 'Event loop delay, p99',
  unwritten: 'Events not on the disk yet',
  lakeLag: 'Lake behind the log',
  diskFree: 'Free on the disk',
}

const UNITS: Readonly<Record<HistorySeries['unit'], (value: number) => string>> = {
  per_second: formatAmount,
  count: formatCount,
  bytes: formatBytes,
  seconds: (value) => (value < 1 ? `${Math.round(value * 1_000)} ms` : `${value.toFixed(1)} s`),
}

type Values = HistorySeries['values']

/** Whether a value is near the limit of its series, or beyond it. */
function isNear({ limit, limitIs }: HistorySeries, value: number | null): boolean {
  if (limit === null || value === null) return false
  return limitIs === 'least' ? value <= NEAR_TIMES * limit : value >= NEAR_SHARE * limit
}

const WIDTH = 240
const HEIGHT = 48

/** What the lines show, Unix ms. */
interface Span {
  endMs: number
  lengthMs: number
}

/** The path of a line, which begins anew where samples are missing. */
function linePath(timesMs: readonly number[], values: Values, top: number, span: Span): string {
  let path = ''
  for (const [at, value] of values.entries()) {
    if (value === null) continue
    const timeMs = timesMs[at] ?? 0
    const isGoingOn = values[at - 1] != null && timeMs - (timesMs[at - 1] ?? 0) <= 3 * EVERY_MS
    const x = WIDTH * (1 - (span.endMs - timeMs) / span.lengthMs)
    const y = HEIGHT - (value / top) * (HEIGHT - 2) - 1
    path += `${isGoingOn ? 'L' : 'M'}${x.toFixed(1)},${y.toFixed(1)}`
  }
  return path
}

export class ServerHistoryLines {
  readonly #fetched: Fetched<History>
  readonly #onChange: () => void
  /** Where the pointer is, as a share of the hour from its start; null: nowhere. */
  #pointedShare: number | null = null

  constructor(onChange: () => void) {
    this.#onChange = onChange
    let known: History | null = null
    const read = async () => (known = await readHistory(known))
    this.#fetched = new Fetched(read, onChange, EVERY_MS)
  }

  stop(): void {
    this.#fetched.stop()
  }

  /** Says that they could not be read again. */
  banner(): TemplateResult | typeof nothing {
    return staleBanner(this.#fetched, 'The last hour was')
  }

  render(nowMs: number): TemplateResult {
    const { value: history } = this.#fetched
    if (history === null) return html`<section class="card below lines-room"><h2>The last hour</h2></section>`
    const endMs = history.timesMs.at(-1) ?? nowMs
    const lengthMs = Math.min(HOUR_MS, Math.max(SPAN_MS_MIN, endMs - (history.timesMs[0] ?? endMs)))
    const span = { endMs, lengthMs }
    const pointedMs = this.#pointedShare === null ? null : endMs - lengthMs * (1 - this.#pointedShare)
    return html`<section class="card below lines-room ${isStale(this.#fetched) ? 'old' : ''}" aria-label="The last hour">
      <h2>The last hour <small>${pointedMs === null ? `since ${formatTime(history.timesMs[0], nowMs)}` : `at ${formatTime(pointedMs, nowMs)}`}</small></h2>
      <div class="lines">${history.series.map((series) => this.#line(history, series, span, pointedMs))}</div>
    </section>`
  }

  #line({ timesMs }: History, series: HistorySeries, span: Span, pointedMs: number | null): TemplateResult {
    const { name, unit, values, limit } = series
    const format = UNITS[unit]
    const known = values.filter((value) => value !== null)
    const last = values.at(-1) ?? null
    const shown = pointedMs === null ? last : valueAt(timesMs, values, pointedMs)
    const isMarked = isNear(series, last)
    // The limit is in sight where it is near; elsewhere it would flatten the line.
    const top = Math.max(...known, isMarked && limit !== null ? limit : 0) * 1.05 || 1
    const limitY = limit === null ? 0 : HEIGHT - (limit / top) * (HEIGHT - 2) - 1
    const x = pointedMs === null ? 0 : WIDTH * (1 - (span.endMs - pointedMs) / span.lengthMs)
    return html`<figure class="line ${isMarked ? 'near' : ''}">
      <figcaption><span>${isMarked ? '⚠ ' : nothing}${TITLES[name] ?? name}</span><b>${shown === null ? '–' : format(shown)}</b></figcaption>
      <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"
        @pointermove=${(event: PointerEvent) => this.#point(event)} @pointerleave=${() => this.#leave()}>
        <line class="base" x1="0" x2=${WIDTH} y1=${HEIGHT - 0.5} y2=${HEIGHT - 0.5}></line>
        <line class="limit" x1="0" x2=${isMarked && limit !== null ? WIDTH : 0} y1=${limitY} y2=${limitY}></line>
        <path d=${linePath(timesMs, values, top, span)}></path>
        <line class="pointed" x1=${x} x2=${x} y1="0" y2=${pointedMs === null ? 0 : HEIGHT}></line>
      </svg>
      <small>${known.length === 0 ? 'none yet' : `${format(Math.min(...known))} to ${format(Math.max(...known))}`}${limit === null ? nothing : html`<span class="limit-text">${series.limitIs === 'least' ? 'at least' : 'at most'} ${format(limit)}</span>`}</small>
    </figure>`
  }

  #point(event: PointerEvent): void {
    if (!(event.currentTarget instanceof Element)) return
    const { left, width } = event.currentTarget.getBoundingClientRect()
    this.#pointedShare = Math.min(1, Math.max(0, (event.clientX - left) / width))
    this.#onChange()
  }

  #leave(): void {
    this.#pointedShare = null
    this.#onChange()
  }
}

/** Only what is new since the last answer; a server that was started anew has its own. */
async function readHistory(known: History | null): Promise<History> {
  const lastMs = known?.timesMs.at(-1) ?? 0
  const { data } = await request<HistoryAnswer>(`/health/history?since=${lastMs}`)
  return known === null ? data : joined(known, data)
}

/** The newest value at or before a time; null: there is none near it. */
function valueAt(timesMs: readonly number[], values: Values, atMs: number): number | null {
  const at = timesMs.findLastIndex((timeMs) => timeMs <= atMs + EVERY_MS / 2)
  return at === -1 || atMs - (timesMs[at] ?? 0) > 3 * EVERY_MS ? null : (values[at] ?? null)
}

function joined(known: History, added: History): History {
  const timesMs = [...known.timesMs, ...added.timesMs]
  const first = timesMs.findIndex((timeMs) => timeMs > (timesMs.at(-1) ?? 0) - HOUR_MS)
  const series = added.series.map((each) => {
    const before = known.series.find(({ name }) => name === each.name)?.values
    const values = [...(before ?? known.timesMs.map(() => null)), ...each.values]
    return { ...each, values: values.slice(first) }
  })
  return { ...added, timesMs: timesMs.slice(first), series }
}
