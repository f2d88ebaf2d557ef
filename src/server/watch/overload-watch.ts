// What a server has too much of, or too little. An overload, from the turns of the event loop that show it to what it leads to:
// refusals, streams that end, a line in the log. And the limit of open files.
import { Overload, type OverloadWaits } from '../../http/overload.ts'
import type { Broadcaster } from '../../http/stream/broadcaster.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import { Turns } from '../../lib/turns.ts'
import { OpenFilesWatch } from './open-files-watch.ts'

export class OverloadWatch {
  readonly overload: Overload
  readonly #turns: Turns
  readonly #openFiles: OpenFilesWatch

  constructor(
    broadcaster: Pick<Broadcaster, 'endLatest'>,
    clock: Clock,
    log: Log,
    waits: Partial<OverloadWaits> = {},
  ) {
    this.overload = new Overload({
      ...waits,
      endStreams: () => broadcaster.endLatest(),
      onChange: (isOverloaded) => {
        if (isOverloaded) log.warn('the server has more to do than it can: it refuses requests')
        else log.info('the server refuses no requests any more: it keeps up')
      },
    })
    this.#turns = new Turns((workMs) => this.overload.note(workMs, clock.monotonicMs()))
    this.#openFiles = new OpenFilesWatch(clock, log)
  }

  /** Why `/health` is degraded, as sentences. */
  reasons(): string[] {
    return [this.overload.reason, this.#openFiles.reason].filter((reason) => reason !== null)
  }

  /** To be called when the server is ready: what a feed begins with is no load. */
  start(): void {
    this.#turns.start()
    this.#openFiles.start()
  }

  stop(): void {
    this.#turns.stop()
    this.#openFiles.stop()
  }

  addMetrics(metrics: Metrics): void {
    const { overload } = this
    metrics.read('mintlake_overloaded', '1 while requests are refused since there is too much to do', () =>
      Number(overload.isOverloaded),
    )
    metrics.readEach(
      'mintlake_overload_refused_total',
      'Requests refused since there was too much to do, by their road: reads, pushes, lake, submissions',
      'road',
      () => Object.entries(overload.refused),
    )
  }
}
