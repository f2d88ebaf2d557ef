// Makes checkpoints at an interval, and deletes what nobody needs any more: older checkpoints, and the journal up to where both the
// lake and the checkpoints are past it.

import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventJournal } from '../journal/journal.ts'
import type { JournalLog } from '../journal/types.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-text.ts'
import { MINTLAKE_VERSION } from '../lib/version.ts'
import { unlessLate } from '../lib/wait.ts'
import type { Market } from '../market/market.ts'
import { type NewCheckpointHead, writeCheckpoint } from './checkpoint-file.ts'
import { journalNeededAfter, listCheckpoints, removeOldCheckpoints } from './checkpoint-folder.ts'
import { checkpointJobs } from './checkpoint-job.ts'
import type { RecordFolders } from './find-base.ts'
import {
  APPLIED_EVENTS_PER_S,
  CHECKPOINT_PAUSE_FACTOR,
  CHECKPOINT_RETRY_MS,
  CHECKPOINT_RETRY_MS_MAX,
  LAST_CHECKPOINT_MS_FREE,
  LAST_CHECKPOINT_MS_MAX,
  ONLY_CHECKPOINT_MS_MAX,
  WRITTEN_BYTES_PER_S,
} from './limits.ts'
import type { CheckpointResult } from './protocol.ts'

export interface CheckpointSchedulerOptions extends RecordFolders {
  journal: EventJournal
  market: Pick<Market, 'save' | 'timeMs' | 'settings'>
  /** 0: no checkpoints while the server runs. */
  intervalMs: number
  /** So many of the latest events stay in the journal, whoever has them. */
  eventsKeptMin: number
  /** How far the lake has recorded events: all up to `eventNo`, and still those from `retainedFrom` on. */
  lakeProgress(): { eventNo: number; retainedFrom: number }
  /** Hands the store every bar that is closed by now. */
  emitBars(): Promise<void>
  /** The lake has every bar that the store was handed and that ended by this market time, Unix ms. A restart emits later ones again. */
  barsInLakeToMs(): number
  /** Brings closed bars and token profiles to the lake as far as possible. */
  flushLake(): Promise<void>
  /** Whether the lake has the profiles of all tokens. Otherwise a restart records them again. */
  profilesInLake(): boolean
  /** How many recorded events the market lacks, since the journal had lost them when this run began. */
  lostEvents(): number
  /** Whether the disk has room for so many bytes that nobody has acknowledged. */
  mayWrite(bytes: number): boolean
  clock: Clock
  log: JournalLog
  /** Checkpoints that cannot be used, by event number. */
  unusable: readonly number[]
  /** A new checkpoint is there. */
  onMade?(eventNo: number): void
}

export interface CheckpointStatus {
  /** Those made in this run, and attempts that failed. */
  made: number
  failures: number
  /** Of those made: written by the server itself, since journal and checkpoints have lost events that its market has. */
  copied: number
  /** Why the latest attempt failed; null where it did not. */
  trouble: string | null
  /** The newest one; null where there is none yet. */
  newest: {
    eventNo: number
    bytes: number
    madeAtMs: number
    /** For how long there may be events that it lacks; 0: it has every one. */
    ageMs: number
  } | null
  /** Of the latest one made by a process of its own. */
  latest: CheckpointResult | null
}

/**
 * Whether a stop is over sooner, and the next start ready, when another checkpoint is written.
 * @param eventsBehind events that the newest checkpoint lacks. @param bytes its size, which the next one will have too
 */
export function savesTime(eventsBehind: number, bytes: number): boolean {
  const writeMs = (bytes / WRITTEN_BYTES_PER_S) * 1_000
  return writeMs <= LAST_CHECKPOINT_MS_FREE || writeMs <= (eventsBehind / APPLIED_EVENTS_PER_S) * 1_000
}

type Made = Pick<CheckpointResult, 'eventNo' | 'bytes'>
type NewestCheckpoint = Omit<NonNullable<CheckpointStatus['newest']>, 'ageMs'>

export class CheckpointScheduler {
  readonly #options: CheckpointSchedulerOptions
  #timer: NodeJS.Timeout | null = null
  readonly #jobs = checkpointJobs()
  #running: Promise<void> | null = null
  #isStopped = false
  readonly #backoff = new Backoff(CHECKPOINT_RETRY_MS, CHECKPOINT_RETRY_MS_MAX)
  readonly #status: Omit<CheckpointStatus, 'newest'> = {
    made: 0,
    failures: 0,
    copied: 0,
    trouble: null,
    latest: null,
  }
  #newest: NewestCheckpoint | null = null
  /** When it was last time for one and the newest had every event. */
  #completeAtMs = 0
  /** Behind this event the journal is needed for a restart. */
  #neededAfterEventNo = 0
  #removing: Promise<void> | null = null

  constructor(options: CheckpointSchedulerOptions) {
    this.#options = options
  }

  /** Makes checkpoints from now on, until `stop`. */
  async start(): Promise<void> {
    await this.#removeLeftovers()
    await this.#review()
    if (this.#options.intervalMs > 0) this.#schedule(this.#options.intervalMs)
  }

  status(): CheckpointStatus {
    const newest = this.#newest
    const sinceMs = Math.max(newest?.madeAtMs ?? 0, this.#completeAtMs)
    const ageMs = this.#isComplete ? 0 : Math.max(0, Math.floor(this.#options.clock.now() - sinceMs))
    return { ...this.#status, newest: newest && { ...newest, ageMs } }
  }

  /** Makes one now, or waits for the one that is being made. Resolves when it is there or has failed. */
  make(): Promise<void> {
    this.#running ??= this.#makeOne().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Deletes the segments of the journal that neither the lake nor a restart needs. Never rejects. */
  removeSegments(): Promise<void> {
    this.#removing ??= this.#removeSegments().finally(() => {
      this.#removing = null
    })
    return this.#removing
  }

  /** Makes no further one, and ends the process that makes one. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#jobs.stop()
    await this.#running
    await this.#removing
  }

  /**
   * Writes the market as it is, in this process. To be called when it changes no more and the journal is closed. Not where that takes
   * longer than it saves, and no longer than LAST_CHECKPOINT_MS_MAX: the next start then applies the events behind the one before. Without
   * checkpoints while the server runs the journal does not have these: then it is the only one, and has to be.
   * @returns whether it was written
   */
  async writeLast(): Promise<boolean> {
    const { intervalMs, journal, log } = this.#options
    const { lastEventNo } = journal
    if (lastEventNo === 0 || lastEventNo === this.#newest?.eventNo) return true
    const isOnly = intervalMs === 0
    const behind = lastEventNo - (this.#newest?.eventNo ?? 0)
    if (!isOnly && this.#newest !== null && !savesTime(behind, this.#newest.bytes)) {
      log.info(
        { events: behind },
        'the next start applies these events again: another checkpoint would take longer',
      )
      return false
    }
    const gaveUp = new AbortController()
    try {
      await unlessLate(
        isOnly ? ONLY_CHECKPOINT_MS_MAX : LAST_CHECKPOINT_MS_MAX,
        this.#writeNow(gaveUp.signal),
        () => {
          gaveUp.abort()
          throw new Error('it takes too long')
        },
      )
    } catch (error) {
      const reason = errorMessage(error)
      if (isOnly)
        log.error(
          { reason },
          'no checkpoint was written at the end: the next start begins with an empty market',
        )
      else
        log.warn({ reason }, 'no checkpoint was written at the end: the next start applies more events again')
      return false
    }
    // What stays goes after the next one.
    await this.#removeOld().catch(() => undefined)
    return true
  }

  async #writeNow(signal: AbortSignal): Promise<void> {
    const { flushLake, market, checkpointFolder } = this.#options
    this.#requireRoom()
    // Where the lake cannot be written, the next start emits the bars again, and records the profiles.
    await flushLake().catch(() => undefined)
    const head = { ...this.#headOfNow(), profilesInLake: this.#options.profilesInLake() }
    await writeCheckpoint(checkpointFolder, head, market.save(), () => signal.throwIfAborted())
  }

  /** Of the market as it is at this moment. */
  #headOfNow(): NewCheckpointHead {
    const { barsInLakeToMs, clock, folderId, journal, lostEvents, market } = this.#options
    const { lastEventNo: eventNo, originEventNo } = journal
    return {
      folderId,
      eventNo,
      originEventNo,
      lostEvents: lostEvents() || undefined,
      atMs: market.timeMs,
      settings: market.settings,
      barsInLakeToMs: barsInLakeToMs(),
      version: MINTLAKE_VERSION,
      writtenAtMs: clock.now(),
    }
  }

  /**
   * Writes the market of now, of which the journal has lost events. It stands still for as long as its memory is copied, a second or two
   * for gigabytes: the price of losing nothing, paid once for each damage.
   */
  async #writeCopy(): Promise<Made> {
    const { checkpointFolder, journal, market } = this.#options
    const head = this.#headOfNow()
    const sections = Array.from(market.save(), ({ name, bytes }) => ({ name, bytes: new Uint8Array(bytes) }))
    const { eventNo } = head
    const { throughEventNo } = await journal.seal()
    if (throughEventNo < eventNo) throw new Error('the disk does not take what was recorded')
    return { eventNo, bytes: await writeCheckpoint(checkpointFolder, head, sections) }
  }

  async #makeOne(): Promise<void> {
    const { clock, log } = this.#options
    if (this.#timer !== null) clearTimeout(this.#timer)
    const beganMs = clock.monotonicMs()
    try {
      const result = await this.#runJob()
      const made = result !== null && result.lost !== 0 ? await this.#copyInstead(result) : result
      if (result !== null && made !== null) this.#note(result, made)
      await this.#review()
      if (made !== null) this.#options.onMade?.(made.eventNo)
      if (this.#status.trouble !== null) log.info({}, 'checkpoints are made again')
      this.#status.trouble = null
      this.#backoff.reset()
      const tookMs = clock.monotonicMs() - beganMs
      if (this.#options.intervalMs > 0)
        this.#schedule(Math.max(this.#options.intervalMs, CHECKPOINT_PAUSE_FACTOR * tookMs))
    } catch (error) {
      if (this.#isStopped) return
      const reason = errorMessage(error)
      if (this.#status.trouble === null) log.error({ reason }, 'no checkpoint could be made; trying again')
      this.#status.trouble = reason
      this.#status.failures++
      this.#schedule(this.#backoff.nextMs())
    }
  }

  /** @returns null where nothing was recorded since the newest one. */
  async #runJob(): Promise<CheckpointResult | null> {
    const { checkpointFolder, clock, folderId, journal, journalFolder, lostEvents, unusable } = this.#options
    if (this.#isComplete) {
      this.#completeAtMs = clock.now()
      return null
    }
    this.#requireRoom()
    const { throughEventNo } = await journal.seal()
    // Only now: of the bars that these events have closed, each is in the lake or counts as waiting. A late trade may have closed one
    // that ended before those that the lake has.
    await this.#options.emitBars()
    const barsInLakeToMs = this.#options.barsInLakeToMs()
    if (this.#isStopped) return null
    const folders = { journalFolder, checkpointFolder, folderId }
    const market = { originEventNo: journal.originEventNo, lostEvents: lostEvents() }
    const task = { ...folders, ...market, throughEventNo, barsInLakeToMs, unusable }
    return this.#jobs.start(task).result
  }

  /** What the process would have made is not this market. @returns null where the server stops: it then writes its last one */
  async #copyInstead({ lost, unusable }: CheckpointResult): Promise<Made | null> {
    const { emitBars, log } = this.#options
    const fields = { lost, ...(unusable.length > 0 && { unusable }) }
    log.error(fields, 'what was recorded is damaged and lacks events of the market, which is copied as it is')
    await emitBars()
    if (this.#isStopped) return null
    const made = await this.#writeCopy()
    this.#status.copied++
    return made
  }

  /** Whether the newest one has every event that was recorded. */
  get #isComplete(): boolean {
    return this.#options.journal.lastEventNo === (this.#newest?.eventNo ?? 0)
  }

  /** What is left of a disk belongs to submissions. */
  #requireRoom(): void {
    if (!this.#options.mayWrite(this.#newest?.bytes ?? 0)) throw new Error('the disk is nearly full')
  }

  #note(result: CheckpointResult, { eventNo, bytes }: Made): void {
    this.#status.made++
    this.#status.latest = result
    this.#newest = { eventNo, bytes, madeAtMs: this.#options.clock.now() }
  }

  /** Looks which checkpoints there are, and deletes those that are not kept. */
  async #review(): Promise<void> {
    const { checkpointFolder } = this.#options
    if (this.#status.made > 0) await this.#removeOld()
    const usable = (await listCheckpoints(checkpointFolder)).filter(this.#isOfMarket)
    this.#neededAfterEventNo = journalNeededAfter(usable)
    const [newest] = usable
    if (newest !== undefined && newest.eventNo !== this.#newest?.eventNo) {
      const { size: bytes, mtimeMs } = await stat(newest.path)
      this.#newest = { eventNo: newest.eventNo, bytes, madeAtMs: Math.floor(mtimeMs) }
    }
    await this.removeSegments()
  }

  #removeOld(): Promise<void> {
    const { checkpointFolder, lakeProgress, unusable } = this.#options
    return removeOldCheckpoints(checkpointFolder, lakeProgress().retainedFrom, {
      isUsable: ({ eventNo }) => !unusable.includes(eventNo),
      isOfMarket: this.#isOfMarket,
    })
  }

  /** Whether a start can go on from it: of the markets before one that began empty none can. */
  readonly #isOfMarket = ({ eventNo }: { eventNo: number }): boolean => {
    const { journal, unusable } = this.#options
    return eventNo >= journal.originEventNo && !unusable.includes(eventNo)
  }

  async #removeSegments(): Promise<void> {
    const { eventsKeptMin, intervalMs, journal, lakeProgress, log } = this.#options
    const { eventNo } = lakeProgress()
    // Without checkpoints a restart begins with an empty market, and the journal is only needed for the lake.
    const neededAfter = intervalMs === 0 ? eventNo : Math.min(eventNo, this.#neededAfterEventNo)
    const through = Math.min(neededAfter, journal.lastEventNo - eventsKeptMin)
    try {
      await journal.removeThrough(through)
    } catch (error) {
      log.warn({ error: errorMessage(error) }, 'a part of the journal could not be deleted; trying again')
    }
  }

  /** A process that was killed leaves a half-written file. */
  async #removeLeftovers(): Promise<void> {
    const { checkpointFolder } = this.#options
    const names = await readdir(checkpointFolder).catch(() => [])
    for (const name of names)
      if (name.endsWith('.tmp'))
        await rm(join(checkpointFolder, name), { force: true }).catch(() => undefined)
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.make(), delayMs)
    this.#timer.unref()
  }
}
