// Brings the log and the waiting market data to the lake: at an interval, on demand, and when the store is closed. Flushes
// never overlap.

import pLimit from 'p-limit'
import type { SegmentDamage } from '../lib/segments/types.ts'
import { within } from '../lib/wait.ts'
import {
  BARS_FLUSH_ROWS,
  BARS_TIMEOUT_MS,
  CLOSE_FLUSH_MS,
  FLUSH_BYTES_MAX,
  FLUSH_TIMEOUT_MS,
} from './limits.ts'
import { segmentNames } from './log/segments/format.ts'
import type { SegmentInfo } from './log/types.ts'
import { addNew, recordKept, tellNotNoted, toLoss } from './log-losses.ts'
import { BarAudit } from './market-data/bar-audit.ts'
import type { BarAccount } from './market-data/bar-counts.ts'
import { BarOutbox } from './market-data/bar-outbox.ts'
import type { BarDelivery, BarReceipt } from './market-data/bar-store.ts'
import { ProfileOutbox } from './market-data/profile-outbox.ts'
import { PeriodicJob } from './periodic.ts'
import type { StoreParts } from './store-parts.ts'

export class FlushScheduler {
  readonly bars: BarOutbox
  readonly barAudit: BarAudit
  readonly profiles: ProfileOutbox
  /** Resolves when the commits that the log held at the start are in the lake, or the first attempt has failed. */
  readonly caughtUp: Promise<void>
  /** All damage found in the log so far. */
  readonly damage: SegmentDamage[]
  /** The lake has every closed bar that ended by this market time, Unix ms, but for those of late trades. */
  barsInLakeToMs = 0
  readonly #parts: StoreParts
  /** One flush or snapshot at a time. Each begins with what was committed before it was requested. */
  readonly #turns = pLimit(1)
  readonly #job: PeriodicJob
  /** Monotonic time of which the lake has everything that was committed before, ms. */
  #flushedToMs: number

  /** `everyMs` 0: flushes only on demand and at close. */
  constructor(parts: StoreParts, everyMs: number) {
    const { client, clock, commits, log } = parts
    this.#parts = parts
    this.#flushedToMs = clock.monotonicMs()
    this.damage = [...commits.recovered.damage]
    for (const found of this.damage) this.#noteDamage(found)
    this.profiles = new ProfileOutbox(client)
    this.barAudit = new BarAudit(log)
    this.bars = new BarOutbox({
      log,
      starts: () => client.starts,
      send: (delivery) => this.#sendBars(delivery),
    })
    this.#job = new PeriodicJob(() => this.#flushQuietly(), everyMs)
    this.caughtUp = commits.status().unflushedCommits === 0 ? Promise.resolve() : this.#flushQuietly()
  }

  /** How long the lake may have been behind the log, ms; 0: it has every commit. */
  get lagMs(): number {
    const { clock, commits } = this.#parts
    if (commits.status().unflushedCommits === 0) return 0
    return Math.floor(clock.monotonicMs() - this.#flushedToMs)
  }

  /**
   * Resolves when everything committed and delivered before this call is in the lake.
   * @param onBegun called when the lake process has all of that: what comes later is for the next flush
   */
  flush(onBegun?: () => void): Promise<void> {
    return this.#turns(() =>
      this.#parts.faults.watch('the lake could not be written; trying again', () => this.#flushNow(onBegun)),
    )
  }

  /**
   * Runs `copy` with the segments that the lake does not hold, while no flush runs. Flushes first, as far as the lake can be
   * written: market data is part of a copy only then, commits always are.
   */
  pauseFor<Copied>(copy: (segments: readonly SegmentInfo[]) => Promise<Copied>): Promise<Copied> {
    return this.#turns(async () => {
      await this.#flushNow().catch(() => undefined)
      await this.#parts.commits.seal()
      return copy(this.#parts.commits.segments())
    })
  }

  stop(): void {
    this.#job.stop()
  }

  /** Flushes once more, for at most CLOSE_FLUSH_MS. @returns whether that ended in time */
  async close(): Promise<boolean> {
    const isDone = await within(CLOSE_FLUSH_MS, this.#flushLast())
    if (!isDone)
      this.#parts.log.warn({}, 'the last flush took too long; the next start brings the rest to the lake')
    return isDone
  }

  async #flushLast(): Promise<void> {
    await this.bars.close()
    await this.#flushQuietly()
  }

  /** Failures are logged by `flush`. */
  async #flushQuietly(): Promise<void> {
    await this.flush().catch(() => undefined)
  }

  async #flushNow(onBegun?: () => void): Promise<void> {
    const beganMs = this.#parts.clock.monotonicMs()
    await this.bars.flush()
    await this.profiles.deliver()
    await this.#parts.commits.seal()
    const segments = this.#parts.commits.segments()
    // Once more: a submission that is flushed must not be labelled by a market time that had gone back before it was made.
    await this.bars.flush()
    const { sent } = this.bars
    const nowMs = this.#parts.nowMs()
    const first = this.#flushSegments(takeRound(segments), nowMs)
    onBegun?.()
    let bars = await first
    while (segments.length > 0) bars = await this.#flushSegments(takeRound(segments), nowMs)
    this.#flushedToMs = beganMs
    this.barsInLakeToMs = Math.max(this.barsInLakeToMs, sent.toMs)
    this.barAudit.compare(sent, bars)
  }

  /**
   * Writes these segments and the delivered market data to the lake, then removes the segments. @returns what has become of the bars
   * of this run
   */
  async #flushSegments(round: readonly SegmentInfo[], nowMs: number): Promise<BarAccount> {
    const { client, commits, log, unflushed } = this.#parts
    const ask = { nowMs, throughLsn: round.at(-1)?.lastLsn ?? 0 }
    const { starts } = client
    const { bars, damage, deadRows, inLake } = await client.ask('flush', ask, FLUSH_TIMEOUT_MS)
    // Another lake process counts anew.
    if (client.starts === starts) {
      this.bars.confirm(inLake.bars)
      this.profiles.confirm(inLake.profiles)
    }
    this.#reportDamage(damage)
    if (deadRows > 0) {
      log.error({ rows: deadRows }, 'rows fit no table of the lake and were set aside')
      this.#noteDeadRows()
    }
    const damagedFiles = new Set(damage.map(({ file }) => file))
    for (const { firstLsn } of round) {
      if (damagedFiles.has(segmentNames.nameOf(firstLsn))) await commits.setAside(firstLsn)
      else await commits.remove(firstLsn)
      unflushed.forget(firstLsn)
    }
    return bars
  }

  /** Logs damage once: the start may have found the same. */
  #reportDamage(damage: readonly SegmentDamage[]): void {
    for (const found of addNew(this.damage, damage)) {
      this.#parts.log.error({ ...found }, 'a part of the log is damaged')
      this.#noteDamage(found)
    }
  }

  #noteDamage(found: SegmentDamage): void {
    const { nowMs, log, losses } = this.#parts
    losses.record(toLoss(found), nowMs()).catch((error) => tellNotNoted(log, error))
  }

  #noteDeadRows(): void {
    const { nowMs, dataDir, log, losses } = this.#parts
    recordKept(losses, dataDir, nowMs()).catch((error) => tellNotNoted(log, error))
  }

  async #sendBars(delivery: BarDelivery): Promise<BarReceipt> {
    const { held, ...receipt } = await this.#parts.client.ask('bars', delivery, BARS_TIMEOUT_MS)
    // Bars may come faster than the interval of flushes allows for: the lake process must not run out of room.
    if (held >= BARS_FLUSH_ROWS && this.#turns.activeCount === 0) void this.#flushQuietly()
    return receipt
  }
}

/** Removes the segments of one round from the front: at least one, and at most FLUSH_BYTES_MAX unless the first is larger. */
function takeRound(segments: SegmentInfo[]): SegmentInfo[] {
  let [count, bytes] = [0, 0]
  while (count < segments.length && (count === 0 || bytes + segments[count].bytes <= FLUSH_BYTES_MAX))
    bytes += segments[count++].bytes
  return segments.splice(0, count)
}
