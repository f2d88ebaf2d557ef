// A histogram of request durations for prom-client, one series per route. prom-client's own histogram takes 2 µs per
// observation, a sixth of the cost of a page; this one only adds to arrays.

/** Upper bounds, seconds. */
const BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

interface Series {
  /** Requests by bucket; the last bucket has no upper bound. */
  buckets: Float64Array
  seconds: number
  byStatus: Map<number, number>
}

interface Sample {
  metricName: string
  labels: Record<string, string | number>
  value: number
}

export class RequestDurations {
  /** The members that prom-client needs of a metric. */
  readonly name = 'mintlake_http_request_duration_seconds'
  readonly help = 'Time from the arrival of a request to its answer'
  readonly type = 'histogram'
  readonly aggregator = 'sum'
  #series = new Map<string, Series>()

  observe(route: string, status: number, seconds: number): void {
    let series = this.#series.get(route)
    if (series === undefined) {
      series = { buckets: new Float64Array(BUCKETS_SECONDS.length + 1), seconds: 0, byStatus: new Map() }
      this.#series.set(route, series)
    }
    let bucket = 0
    while (seconds > (BUCKETS_SECONDS[bucket] ?? Number.POSITIVE_INFINITY)) bucket++
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1
    series.seconds += seconds
    series.byStatus.set(status, (series.byStatus.get(status) ?? 0) + 1)
  }

  eachCount(visit: (route: string, status: string, count: number) => void): void {
    for (const [route, { byStatus }] of this.#series)
      for (const [status, count] of byStatus) visit(route, `${status}`, count)
  }

  reset(): void {
    this.#series.clear()
  }

  /** The samples in prom-client's form, in which buckets are cumulative. */
  async get() {
    const values: Sample[] = []
    for (const [route, { buckets, seconds }] of this.#series) {
      let count = 0
      for (const [index, inBucket] of buckets.entries()) {
        count += inBucket
        const le = BUCKETS_SECONDS[index] ?? '+Inf'
        values.push({ metricName: `${this.name}_bucket`, labels: { le, route }, value: count })
      }
      values.push({ metricName: `${this.name}_sum`, labels: { route }, value: seconds })
      values.push({ metricName: `${this.name}_count`, labels: { route }, value: count })
    }
    return { name: this.name, help: this.help, type: this.type, aggregator: this.aggregator, values }
  }
}
