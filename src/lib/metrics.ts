// In: counts and times. Out: Prometheus text. Base units, `_total` on counters; never a mint, a key or an address as a
// label: those have no bound.
import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client'
import { RequestDurations } from './request-durations.ts'

export interface Metrics {
  observeRequest(route: string, status: number, seconds: number): void
  /** Reads a figure when the text is asked for. Names of counters end in `_total`. */
  read(name: string, help: string, value: () => number): void
  text(): Promise<string>
  contentType: string
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const durations = new RequestDurations('mintlake_http_request_duration_seconds')
  registry.registerMetric(durations as unknown as Metric)
  new Counter({
    name: 'mintlake_http_requests_total',
    help: 'Requests answered',
    labelNames: ['route', 'status'],
    registers: [registry],
    collect() {
      this.reset()
      durations.eachCount((route, status, count) => this.inc({ route, status }, count))
    },
  })
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    observeRequest: (route, status, seconds) => durations.observe(route, status, seconds),
    read(name, help, value) {
      const Kind = name.endsWith('_total') ? Counter : Gauge
      new Kind({
        name,
        help,
        registers: [registry],
        collect(this: Counter | Gauge) {
          this.reset()
          this.inc(value())
        },
      })
    },
  }
}
