// In: counts and times. Out: Prometheus text. Base units, `_total` on counters; never a mint, a key or an address as a
// label: those have no bound.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export interface Metrics {
  observeRequest(route: string, status: number, seconds: number): void
  /** Reads a figure when the text is asked for. Names of counters end in `_total`. */
  read(name: string, help: string, value: () => number): void
  text(): Promise<string>
  contentType: string
}

const SECONDS_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'mintlake_http_requests_total',
    help: 'Requests answered',
    labelNames: ['route', 'status'],
    registers: [registry],
  })
  const durations = new Histogram({
    name: 'mintlake_http_request_duration_seconds',
    help: 'Time from the arrival of a request to its answer',
    labelNames: ['route'],
    buckets: SECONDS_BUCKETS,
    registers: [registry],
  })
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    observeRequest(route, status, seconds) {
      requests.inc({ route, status: String(status) })
      durations.observe({ route }, seconds)
    },
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
