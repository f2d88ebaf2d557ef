// A log on a simulated disk that records, across restarts, how each append was answered, and checks that later processes find the
// same commits.
import { expect, vi } from 'vitest'
import { LogError } from '../../../src/store/log/errors.ts'
import { type CommitLog, openLog } from '../../../src/store/log/log.ts'
import { readLog } from '../../../src/store/log/reader.ts'
import type { CommitRecord, LogOptions } from '../../../src/store/log/types.ts'
import { quiet } from '../../support/disk/cuts.ts'
import type { SimulatedDisk } from '../../support/disk/simulated-disk.ts'
import { NOON_MS, quietLog } from '../support.ts'
import { clockAt, rowOf } from './rows.ts'

export const TIMEOUT_MS = 10_000
/** Small, so that scripts see segments sealed because of their size. */
const SEGMENT_BYTES = 1_500
/** After this many turns of the event loop without a disk operation, the log counts as idle. */
const IDLE_TURNS = 4

const never = new Promise<never>(() => undefined)

interface Acknowledged {
  lsn: number
  knownAtMs: number
}

interface Found extends Acknowledged {
  id: string
}

const foundIn = (record: CommitRecord): Found => ({
  id: String(record.rows()[0][1].analysis_id),
  lsn: record.lsn,
  knownAtMs: record.knownAtMs,
})

export class World {
  readonly disk: SimulatedDisk
  log!: CommitLog
  nowMs: number
  readonly acknowledged: Map<string, Acknowledged>
  readonly notStored: Set<string>
  readonly maybeStored: Set<string>
  readonly asked: Set<string>
  /** The commits that `flush` has read and removed from the log. */
  readonly flushed: Map<string, Found>
  flushedTo: { lsn: number; knownAtMs: number }

  /** @param before the process that ran until now, whose answers must stay true */
  constructor(disk: SimulatedDisk, before?: World) {
    this.disk = disk
    this.nowMs = before?.nowMs ?? NOON_MS
    this.acknowledged = new Map(before?.acknowledged)
    this.notStored = new Set(before?.notStored)
    this.maybeStored = new Set(before?.maybeStored)
    this.asked = new Set(before?.asked)
    this.flushed = new Map(before?.flushed)
    this.flushedTo = before?.flushedTo ?? { lsn: 0, knownAtMs: 0 }
  }

  get options(): LogOptions {
    return {
      disk: this.disk,
      folder: '/log',
      markPath: '/log.mark',
      logId: 'test',
      clock: clockAt(() => this.nowMs),
      log: quietLog,
      flushed: this.flushedTo,
      timeoutMs: TIMEOUT_MS,
      segmentBytes: SEGMENT_BYTES,
    }
  }

  /** Opens the log. @returns the commits that it visited */
  async open(): Promise<Found[]> {
    const found: Found[] = []
    this.log = await openLog(this.options, (record) => void found.push(foundIn(record)))
    return found
  }

  /** Appends one commit and records the answer. Never rejects. */
  append(): Promise<void> {
    if (this.disk.isCut) return never
    const id = `c${this.asked.size}`
    this.asked.add(id)
    this.nowMs += 1
    return this.log.append([rowOf(id)]).then(
      ({ lsn, knownAtMs }) => void this.acknowledged.set(id, { lsn, knownAtMs }),
      (error: unknown) => {
        expect(error).toBeInstanceOf(LogError)
        ;((error as LogError).mayBeStored ? this.maybeStored : this.notStored).add(id)
      },
    )
  }

  async appendTogether(commits: number): Promise<void> {
    await Promise.all(Array.from({ length: commits }, () => this.append()))
  }

  /** Seals, reads the sealed segments as another process would, and removes them. */
  async flush(): Promise<void> {
    await this.log.seal()
    const segments = this.log.segments()
    const last = segments.at(-1)
    if (last === undefined) return
    const found: Found[] = []
    const options = { ...this.options, afterLsn: this.flushedTo.lsn, throughLsn: last.lastLsn }
    const report = await readLog(options, (record) => void found.push(foundIn(record)))
    expect(report.damage).toEqual([])
    const isNew = (each: Found): boolean =>
      !this.flushed.has(each.id) && each.knownAtMs > this.flushedTo.knownAtMs
    expect(found.filter((each) => !isNew(each))).toEqual([])
    for (const each of found) this.flushed.set(each.id, each)
    const knownAtMs = Math.max(this.flushedTo.knownAtMs, ...found.map((each) => each.knownAtMs))
    this.flushedTo = { lsn: Math.max(this.flushedTo.lsn, last.lastLsn), knownAtMs }
    for (const { firstLsn } of segments) await this.log.remove(firstLsn)
  }

  /** Resolves when the log is idle; never where the disk was cut. */
  async quiet(): Promise<void> {
    const { disk } = this
    let { operations } = disk
    for (let idle = 0; idle < IDLE_TURNS && !disk.isCut; idle++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (disk.operations !== operations) idle = 0
      operations = disk.operations
    }
    if (disk.isCut) await never
  }

  async timePasses(ms: number): Promise<void> {
    if (this.disk.isCut) await never
    await vi.advanceTimersByTimeAsync(ms)
    await this.quiet()
  }

  /** What a start has found must agree with how appends were answered. */
  expectConsistent(found: readonly Found[]): void {
    expect([...this.#inconsistencies(found)]).toEqual([])
    expect(this.log.recovered.damage).toEqual([])
  }

  *#inconsistencies(found: readonly Found[]): Generator<string> {
    const byId = new Map(found.map((each) => [each.id, each]))
    if (byId.size < found.length) yield 'a commit was found twice'
    for (const [id, { lsn, knownAtMs }] of this.acknowledged) {
      const stored = this.flushed.get(id) ?? byId.get(id)
      if (stored === undefined) yield `${id} was acknowledged and is lost`
      else if (stored.lsn !== lsn || stored.knownAtMs !== knownAtMs) yield `${id} has another LSN or time now`
    }
    for (const { id } of [...found, ...this.flushed.values()]) {
      if (!this.asked.has(id)) yield `${id} was never appended`
      if (this.notStored.has(id)) yield `${id} was refused as not stored and is there`
    }
    let previous: Acknowledged = this.flushedTo
    for (const each of found) {
      if (this.flushed.has(each.id)) yield `${each.id} was flushed and is found again`
      if (each.lsn <= previous.lsn) yield `${each.id} has an LSN that does not rise`
      if (each.knownAtMs < previous.knownAtMs) yield `${each.id} was known before the one before it`
      previous = each
    }
  }

  /** A new commit is stored, with a higher LSN and time than all before. */
  async expectRising(found: readonly Found[]): Promise<void> {
    const before = [...this.acknowledged.values(), ...found, this.flushedTo]
    const { lsn, knownAtMs, position } = await this.log.append([rowOf('probe')])
    expect(lsn).toBeGreaterThan(Math.max(...before.map((each) => each.lsn)))
    expect(knownAtMs).toBeGreaterThan(Math.max(...before.map((each) => each.knownAtMs)))
    const back = await this.log.read(position)
    expect([back.lsn, back.rows()[0][1].analysis_id]).toEqual([lsn, 'probe'])
  }
}

const STEP_MS = 250

/** Advances the time in small steps, so that the work of one timer is done before the next one is due. */
export async function timePasses(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += STEP_MS) {
    await vi.advanceTimersByTimeAsync(Math.min(STEP_MS, ms - passed))
    await quiet()
  }
}
