// Prometheus metrics. Base units, `_total` on counters. Labels must have a bounded set of values: never a mint, key or address.
import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client'
import { RequestDurations } from './request-durations.ts'

type NumberName<Figures> = {
  [Name in keyof Figures]: Figures[Name] extends number | null ? Name : never
}[keyof Figures]

/** Metrics by their names: what each tells, and the figure, by its name or as it follows from others. */
export type ShownFigures<Figures> = Readonly<
  Record<
    string,
    [help: string, figure: NumberName<Figures> | ((figures: Figures) => number | null | undefined)]
  >
>

let ofProcess: Registry | null = null

/** Those of the process, measured once however many servers run in it: what measures them is never freed. */
function processMetrics(): Registry {
  if (ofProcess === null) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}

export class Metrics {
  readonly contentType: string
  readonly #registry = new Registry()
  readonly #durations = new RequestDurations()

  readonly #errors = new Counter({
    name: 'mintlake_http_errors_total',
    help: 'Requests answered with an error, by its code',
    labelNames: ['code'],
    registers: [this.#registry],
  })

  /** @param errorCodes each is there from the beginning, as 0: of a counter that begins at 1 nobody sees that it has increased */
  constructor(errorCodes: readonly string[]) {
    for (const code of errorCodes) this.#errors.inc({ code }, 0)
    const durations = this.#durations
    this.contentType = this.#registry.contentType
    // The type of prom-client's list is not that of the metrics that it holds.
    for (const metric of processMetrics().getMetricsAsArray() as unknown as Metric[])
      this.#registry.registerMetric(metric)
    // prom-client's type asks for members that it does not call.
    this.#registry.registerMetric(durations as unknown as Metric)
    this.#add('mintlake_http_requests_total', 'Requests answered', ['route', 'status'], (metric) =>
      durations.eachCount((route, status, count) => metric.inc({ route, status }, count)),
    )
  }

  observeRequest(route: string, status: number, seconds: number): void {
    this.#durations.observe(route, status, seconds)
  }

  /** Counts an error answer by its code. */
  observeError(code: string): void {
    this.#errors.inc({ code })
  }

  /** Adds a metric whose value is read each time the text is made: a counter when `name` ends in `_total`, else a gauge. */
  read(name: string, help: string, value: () => number): void {
    this.#add(name, help, [], (metric) => metric.inc(value()))
  }

  /** Adds metrics of figures that are read together. Null, of all or of one: it is not known. */
  readAll<Figures extends object>(figures: () => Figures | null, shown: ShownFigures<Figures>): void {
    for (const [name, [help, figure]] of Object.entries(shown))
      this.read(name, help, () => {
        const known = figures()
        const value = known && (typeof figure === 'function' ? figure(known) : known[figure])
        return Number(value ?? Number.NaN)
      })
  }

  /** As `read`, with a value for each value of a label. */
  readEach(
    name: string,
    help: string,
    label: string,
    values: () => Iterable<readonly [labelValue: string, value: number]>,
  ): void {
    this.#add(name, help, [label], (metric) => {
      for (const [labelValue, value] of values()) metric.inc({ [label]: labelValue }, value)
    })
  }

  #add(name: string, help: string, labelNames: string[], fill: (metric: Counter | Gauge) => void): void {
    const Kind = name.endsWith('_total') ? Counter : Gauge
    const registers = [this.#registry]
    const collect = function (this: Counter | Gauge) {
      this.reset()
      fill(this)
    }
    new Kind({ name, help, labelNames, registers, collect })
  }

  /** The sum of a metric's samples now; null: there is no such metric, or it has no value. */
  async value(name: string): Promise<number | null> {
    const metric = this.#registry.getSingleMetric(name)
    if (metric === undefined) return null
    const { values } = await metric.get()
    const sum = values.reduce((total, { value }) => total + value, 0)
    return Number.isFinite(sum) ? sum : null
  }

  /** All metrics in the Prometheus text format. */
  text(): Promise<string> {
    return this.#registry.metrics()
  }
}
