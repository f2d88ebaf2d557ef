// Upkeep of the lake, done by the lake process: merges of small files, checks and repairs, expiry of old dates.
import { readClock } from '../lib/clock.ts'
import { SingleFlight } from '../lib/single-flight.ts'
import { HOUSEKEEPING_TIMEOUT_MS } from './limits.ts'
import { PeriodicJob } from './periodic.ts'
import type { StoreParts } from './store-parts.ts'
import type { LakeRepair } from './types.ts'

export class LakeMaintenance {
  readonly #parts: StoreParts
  readonly #quietMs: number
  readonly #job: PeriodicJob
  readonly #checking = new SingleFlight(
    () =>
      this.#parts.faults.watch('the files of the lake could not be checked', () => this.#checkFiles(false)),
    0,
  )

  /**
   * @param everyMs how often small files are merged; 0: only on demand
   * @param quietMs a date without a new file for this long is merged into one file
   */
  constructor(parts: StoreParts, everyMs: number, quietMs: number) {
    this.#parts = parts
    this.#quietMs = quietMs
    // Failures are logged by `compact`.
    this.#job = new PeriodicJob(() => this.compact(), everyMs)
  }

  compact(): Promise<{ merged: number; removed: number }> {
    const { client, clock, faults } = this.#parts
    const ask = { now: readClock(clock), quietMs: this.#quietMs }
    return faults.watch('files of the lake could not be merged; trying again', () =>
      client.ask('compact', ask, HOUSEKEEPING_TIMEOUT_MS),
    )
  }

  /** Checks every file. @param acknowledges whether the losses count as told from then on */
  async repair(acknowledges: boolean): Promise<LakeRepair> {
    const { losses, nowMs } = this.#parts
    const repaired = await this.#checkFiles(acknowledges)
    if (acknowledges) return { ...repaired, losses: await losses.acknowledge(nowMs()) }
    await losses.load(nowMs())
    return { ...repaired, losses: losses.unacknowledged }
  }

  /** Checks every file in the background, unless such a check is running. */
  check(): void {
    // `watch` has logged a failure.
    this.#checking.get().catch(() => undefined)
  }

  retire(): Promise<{ files: number }> {
    const { client, clock } = this.#parts
    return client.ask('retire', { now: readClock(clock) }, HOUSEKEEPING_TIMEOUT_MS)
  }

  stop(): void {
    this.#job.stop()
  }

  #checkFiles(settles: boolean): Promise<Omit<LakeRepair, 'losses'>> {
    const { client, nowMs } = this.#parts
    return client.ask('repair', { nowMs: nowMs(), settles }, HOUSEKEEPING_TIMEOUT_MS)
  }
}
