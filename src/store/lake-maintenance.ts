// Upkeep of the lake, done by the lake process: merges of small files, checks and repairs, expiry of old dates.
import { type Clock, readClock } from '../lib/clock.ts'
import type { Losses } from './data-folder/losses.ts'
import type { FaultLog } from './fault-log.ts'
import { HOUSEKEEPING_TIMEOUT_MS } from './limits.ts'
import { PeriodicJob } from './periodic.ts'
import type { LakeClient } from './process/client.ts'
import type { LakeRepair } from './types.ts'

export interface LakeMaintenanceOptions {
  client: LakeClient
  faults: FaultLog
  clock: Clock
  losses: Losses
  /** How often small files are merged; 0: only on demand. */
  compactEveryMs: number
  /** A date without a new file for this long is merged into one file. */
  quietMs: number
}

export class LakeMaintenance {
  readonly #options: LakeMaintenanceOptions
  readonly #job: PeriodicJob
  #isChecking = false

  constructor(options: LakeMaintenanceOptions) {
    this.#options = options
    // Failures are logged by `compact`.
    this.#job = new PeriodicJob(
      async () => void (await this.compact()),
      options.compactEveryMs,
      () => {},
    )
  }

  compact(): Promise<{ merged: number; removed: number }> {
    const { client, clock, faults, quietMs } = this.#options
    const ask = { now: readClock(clock), quietMs }
    return faults.watch('files of the lake could not be merged; trying again', () =>
      client.ask('compact', ask, HOUSEKEEPING_TIMEOUT_MS),
    )
  }

  /** Checks every file. @param acknowledges whether the losses count as told from then on */
  async repair(acknowledges: boolean): Promise<LakeRepair> {
    const { clock, losses } = this.#options
    const repaired = await this.#checkFiles(acknowledges)
    const nowMs = Math.floor(clock.now())
    if (acknowledges) return { ...repaired, losses: await losses.acknowledge(nowMs) }
    await losses.load(nowMs)
    return { ...repaired, losses: losses.unacknowledged }
  }

  /** Checks every file in the background, unless such a check is running. */
  check(): void {
    if (this.#isChecking) return
    this.#isChecking = true
    void this.#options.faults
      .watch('the files of the lake could not be checked', () => this.#checkFiles(false))
      // `watch` has logged it.
      .catch(() => undefined)
      .then(() => {
        this.#isChecking = false
      })
  }

  retire(): Promise<{ files: number }> {
    const { client, clock } = this.#options
    return client.ask('retire', { now: readClock(clock) }, HOUSEKEEPING_TIMEOUT_MS)
  }

  stop(): void {
    this.#job.stop()
  }

  #checkFiles(settles: boolean): Promise<Omit<LakeRepair, 'losses'>> {
    const { client, clock } = this.#options
    const ask = { nowMs: Math.floor(clock.now()), settles }
    return client.ask('repair', ask, HOUSEKEEPING_TIMEOUT_MS)
  }
}
