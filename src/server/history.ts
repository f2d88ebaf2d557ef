// What a server did in the last hour: a few of its metrics, sampled, for the console's lines. Kept in memory and bounded; whoever
// wants more has Prometheus read /metrics.
import { totalmem } from 'node:os'
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { FOLLOWERS_MAX, HISTORY_EVERY_MS, HISTORY_SAMPLES_MAX } from '../http/limits.ts'
import { MEGABYTE } from '../lib/bytes.ts'
import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import type { History, HistorySeries } from '../schema/api/status.ts'

interface SeriesOptions extends Pick<HistorySeries, 'name' | 'unit'> {
  /** Empty: the delay of the event loop. */
  metric: string
  /** A counter is shown as its growth a second. */
  isCounter?: true
  limit?: number
  /** On which side of the limit it becomes dangerous. */
  limitIs?: 'most' | 'least'
}

/** A turn of the event loop that takes longer is felt by every client. */
const EVENT_LOOP_SECONDS_MAX = 0.25
/** A kill of the server should lose less. */
const UNWRITTEN_SECONDS_MAX = 2
const SIGNIFICANT_DIGITS = 4
const NS_PER_SECOND = 1e9

const seriesOf = (tokensMax: number, diskReserveMb: number): readonly SeriesOptions[] => [
  { name: 'trades', unit: 'per_second', metric: 'mintlake_market_trades_total', isCounter: true },
  { name: 'submissions', unit: 'per_second', metric: 'mintlake_submissions_total', isCounter: true },
  { name: 'requests', unit: 'per_second', metric: 'mintlake_http_requests_total', isCounter: true },
  { name: 'errors', unit: 'per_second', metric: 'mintlake_http_errors_total', isCounter: true },
  atMost('tokens', 'count', 'mintlake_market_tokens', tokensMax),
  atMost('followers', 'count', 'mintlake_streams', FOLLOWERS_MAX),
  atMost('memory', 'bytes', 'process_resident_memory_bytes', memoryBytesMax()),
  // Measured here: reading /metrics begins the measurement of its own metric anew.
  atMost('eventLoopDelay', 'seconds', '', EVENT_LOOP_SECONDS_MAX),
  atMost('unwritten', 'seconds', 'mintlake_journal_unwritten_seconds', UNWRITTEN_SECONDS_MAX),
  { name: 'lakeLag', unit: 'seconds', metric: 'mintlake_lake_lag_seconds' },
  {
    name: 'diskFree',
    unit: 'bytes',
    metric: 'mintlake_disk_free_bytes',
    ...(diskReserveMb > 0 && { limit: diskReserveMb * MEGABYTE, limitIs: 'least' }),
  },
]

const memoryBytesMax = (): number =>
  Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)

const atMost = (name: string, unit: HistorySeries['unit'], metric: string, limit: number): SeriesOptions => ({
  name,
  unit,
  metric,
  ...(limit > 0 && { limit, limitIs: 'most' }),
})

interface Sample {
  atMs: number
  /** In the order of the series; null: not known. */
  values: (number | null)[]
}

export class ServerHistory {
  readonly #metrics: Pick<Metrics, 'value'>
  readonly #clock: Clock
  readonly #series: readonly SeriesOptions[]
  readonly #samples: Sample[] = []
  #before: { monotonicMs: number; values: (number | null)[] } | null = null
  readonly #delay: IntervalHistogram = monitorEventLoopDelay()
  #isStopped = false
  #timer: ReturnType<typeof setInterval> | undefined

  /** @param tokensMax, diskReserveMb settings that are the limits of series; 0: there is none */
  constructor(metrics: Pick<Metrics, 'value'>, clock: Clock, tokensMax: number, diskReserveMb: number) {
    this.#metrics = metrics
    this.#clock = clock
    this.#series = seriesOf(tokensMax, diskReserveMb)
  }

  /** Samples now and every HISTORY_EVERY_MS until `stop`. */
  start(): void {
    if (this.#isStopped) return
    void this.sample()
    this.#delay.enable()
    this.#timer = setInterval(() => void this.sample(), HISTORY_EVERY_MS)
    this.#timer.unref()
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
    this.#delay.disable()
  }

  /** Takes one sample; the oldest beyond HISTORY_SAMPLES_MAX is forgotten. */
  async sample(): Promise<void> {
    const monotonicMs = this.#clock.monotonicMs()
    const delaySeconds = this.#delay.percentile(99) / NS_PER_SECOND
    this.#delay.reset()
    const raw = await Promise.all(
      this.#series.map(({ metric }) => (metric === '' ? delaySeconds : this.#metrics.value(metric))),
    )
    const values = this.#series.map(({ isCounter }, at) => {
      const value = raw[at] ?? null
      return isCounter ? this.#rate(at, value, monotonicMs) : value
    })
    this.#before = { monotonicMs, values: raw }
    this.#samples.push({ atMs: this.#clock.now(), values: values.map(rounded) })
    if (this.#samples.length > HISTORY_SAMPLES_MAX) this.#samples.shift()
  }

  /** The samples after a time, or after the one of that time. Metrics that this server does not have are left out. */
  since(sinceMs: number): History {
    // Where the clock was set back the samples after one have earlier times.
    const sent = this.#samples.findLastIndex(({ atMs }) => atMs === sinceMs)
    const samples =
      sent === -1 ? this.#samples.filter(({ atMs }) => atMs > sinceMs) : this.#samples.slice(sent + 1)
    return {
      everyMs: HISTORY_EVERY_MS,
      timesMs: samples.map(({ atMs }) => atMs),
      series: this.#series.flatMap(({ name, unit, limit = null, limitIs = null }, at) => {
        if (this.#samples.every(({ values }) => values[at] === null)) return []
        return [{ name, unit, limit, limitIs, values: samples.map(({ values }) => values[at] ?? null) }]
      }),
    }
  }

  #rate(at: number, value: number | null, monotonicMs: number): number | null {
    const before = this.#before?.values[at] ?? null
    if (this.#before === null || before === null || value === null) return null
    const seconds = (monotonicMs - this.#before.monotonicMs) / 1_000
    return seconds <= 0 ? null : Math.max(0, value - before) / seconds
  }
}

const rounded = (value: number | null): number | null =>
  value === null || !Number.isFinite(value) ? null : Number(value.toPrecision(SIGNIFICANT_DIGITS))
