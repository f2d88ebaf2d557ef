// Upkeep of the modelled lake: the real rules of what is merged and what leaves, over its list of files.
import type { Instant } from '../../../src/lib/clock.ts'
import type { TableName } from '../../../src/schema/tables.ts'
import { planMerges } from '../../../src/store/compaction/merge-plan.ts'
import { LAKE_TABLES } from '../../../src/store/duckdb/sql.ts'
import {
  EVENT_TABLE_NAMES,
  judgeEventExpiry,
  planEventEviction,
} from '../../../src/store/events/event-retention.ts'
import { ClockGuard } from '../../../src/store/lake/clock-guard.ts'
import { agingDates, type Expiry, firstRetainedDate, judgeExpiry } from '../../../src/store/lake/retention.ts'
import { LATE_ROWS_MS } from '../../../src/store/limits.ts'
import type { LakeProcessOptions } from '../../../src/store/process/protocol.ts'
import type { LakeContents } from './contents.ts'
import type { ModelFile } from './files.ts'
import { type BesideModel, Crashed } from './real/beside.ts'

export interface UpkeepOptions {
  lake: LakeContents
  options: LakeProcessOptions
  /** What does the same at the same moment; null: nobody. */
  real: BesideModel | null
  /** Ends the process, where the real one has ended. */
  crash(): Promise<never>
  /** Of the machine, Unix ms. */
  trueMs(): number
  /** Time passes, in which other requests are answered. */
  work(): Promise<void>
  /** Why nothing leaves; null: what is over its time leaves. */
  onHeld(reasons: string | null): void
}

export class Upkeep {
  readonly #of: UpkeepOptions
  readonly #clock: ClockGuard
  /** One round at a time. */
  #round: Promise<unknown> = Promise.resolve()

  constructor(of: UpkeepOptions) {
    this.#of = of
    const { lake } = of
    this.#clock = new ClockGuard()
    this.#known = {
      load: async () => lake.knownTimeMs,
      save: async (ms) => {
        lake.knownTimeMs = ms
      },
    }
  }

  readonly #known: Parameters<ClockGuard['check']>[0]

  compact(now: Instant, quietMs: number): Promise<{ merged: number; removed: number }> {
    return this.#inTurn(async () => {
      await this.#expire(now, false, (real) => real.ask('compact', { now, quietMs }))
      const merged = await this.#mergeAll(now.wallMs, quietMs)
      return {
        merged,
        removed: this.#of.lake.files.deleteReplaced(now.wallMs - this.#of.options.lakeGraceMs),
      }
    })
  }

  /** An operator has confirmed the clock. @returns how many files leave */
  retire(now: Instant): Promise<number> {
    return this.#inTurn(() => this.#expire(now, true, (real) => real.ask('retire', { now })))
  }

  #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const turn = this.#round.then(act)
    this.#round = turn.catch(() => undefined)
    return turn
  }

  async #mergeAll(nowMs: number, quietMs: number): Promise<number> {
    const { lake, work } = this.#of
    let merged = 0
    for (const { name } of LAKE_TABLES) {
      for (let groups = -1; groups !== 0; ) {
        const plan = planMerges(lake.files.live(name), nowMs, quietMs) as ModelFile[][]
        groups = plan.length
        merged += groups
        for (const files of plan) {
          await work()
          lake.files.merge(files, nowMs)
        }
      }
    }
    return merged
  }

  /** @param askReal has the real one do it */
  async #expire(
    now: Instant,
    isConfirmed: boolean,
    askReal: (real: BesideModel) => Promise<unknown>,
  ): Promise<number> {
    const { crash, lake, onHeld, real, trueMs, work } = this.#of
    if (isConfirmed) await this.#clock.trust(this.#known, now)
    const clockDoubt = await this.#clock.check(this.#known, now)
    await work()
    if (real !== null)
      await askReal(real).catch((error) => {
        if (!(error instanceof Crashed)) throw error
      })
    const { aged, evicted } = this.#judgeEvents(now.wallMs)
    const [leaving, doubts] = [new Set(evicted), new Set<string>()]
    for (const { files, doubt } of [...this.#judgeDated(now.wallMs), aged]) {
      const why = isConfirmed ? null : (clockDoubt ?? doubt)
      if (why === null) for (const file of files) leaving.add(file as ModelFile)
      else if (files.length > 0) doubts.add(why)
    }
    onHeld(doubts.size === 0 ? null : [...doubts].join('; '))
    lake.files.expire([...leaving], { wallMs: now.wallMs, trueMs: trueMs(), isConfirmed })
    if (real?.hasCrashed === true) await crash()
    return leaving.size
  }

  #judgeDated(nowMs: number): Expiry[] {
    const { lake, options } = this.#of
    return LAKE_TABLES.flatMap(({ name }) => {
      const days = options.retain.days[name]
      if (days === undefined) return []
      const dated = agingDates(lake.files.live(name), ({ date }) => date, LATE_ROWS_MS, nowMs)
      return [judgeExpiry(name, dated, firstRetainedDate(days, nowMs), this.#unaskedPct)]
    })
  }

  #judgeEvents(nowMs: number): { aged: Expiry; evicted: ModelFile[] } {
    const { lake, options } = this.#of
    const { bytesMax, days } = options.retain.events
    const live = EVENT_TABLE_NAMES.flatMap((name: TableName) => lake.files.live(name))
    return {
      aged: days === 0 ? { files: [], doubt: null } : judgeEventExpiry(live, days, nowMs, this.#unaskedPct),
      evicted: bytesMax === 0 ? [] : planEventEviction(live, bytesMax),
    }
  }

  get #unaskedPct(): number {
    return this.#of.options.retain.unaskedPct
  }
}
