// In: groups of commits, one at a time. Out: each durable and acknowledged, or refused; and the list of segments. Knows what
// a failure leaves in doubt, and lets nothing be acknowledged before that is settled. Never waits for callers.
import { join } from 'node:path'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { CommitGroup } from './commit-group.ts'
import { type Disk, nodeDisk } from './disk.ts'
import { codeOfFailure, LogError } from './errors.ts'
import { DURATIONS_KEPT, LINE_EVERY_MS, OPERATION_TIMEOUT_MS, SEGMENT_BYTES } from './limits.ts'
import { Operations } from './operations.ts'
import type { Reading } from './reader.ts'
import { DAMAGED_SUFFIX, headerText, LineBuffer, segmentName } from './segments/format.ts'
import { type Checkpoint, rewriteSegment, SegmentFile, type WriteFailure } from './segments/segment-file.ts'
import type { LogOptions, SegmentInfo } from './types.ts'
import type { WaitingCommit } from './waiting-commits.ts'

export class LogWriter {
  readonly totals = { commits: 0, groups: 0, bytes: 0, refused: 0, doubtful: 0, failures: 0, overdue: 0 }
  readonly recentGroupMs: number[] = []
  /** Every commit up to it is durable, void or known to be lost. */
  lastLsn: number
  lastKnownAtMs: number
  readonly #options: LogOptions
  readonly #disk: Disk
  readonly #timeoutMs: number
  readonly #operations: Operations
  readonly #onOverdue: () => void
  readonly #lines = new LineBuffer()
  /** Ended, and free of doubt. */
  #ended: SegmentInfo[]
  /** Ended by a failure: listed once what it left in doubt is settled. */
  #broken: SegmentInfo[] = []
  #current: SegmentFile | null = null
  /** Groups of which nobody can tell yet whether they are stored. */
  #doubtful: CommitGroup[] = []
  /** What must succeed before anything is acknowledged again; null: nothing is in doubt. */
  #settlement: ((check: Checkpoint) => Promise<void>) | null = null
  /** The segment that a start has to write anew. */
  #tail: number | null = null
  #nextLsn: number
  #nextLineMs = 0

  /** @param onOverdue called while an operation hangs, once its own callers are answered. */
  constructor(options: LogOptions, { report, last }: Reading, onOverdue: () => void) {
    const { disk = nodeDisk, folder, flushed, timeoutMs = OPERATION_TIMEOUT_MS } = options
    this.#options = options
    this.#disk = disk
    this.#timeoutMs = timeoutMs
    this.#operations = new Operations(timeoutMs, options.clock)
    this.#onOverdue = onOverdue
    this.#ended = [...report.segments]
    this.lastLsn = Math.max(flushed.lsn, report.lastLsn, last?.provenLsn ?? 0)
    this.#nextLsn = Math.max(this.lastLsn, report.highestLsn) + 1
    this.lastKnownAtMs = Math.max(flushed.knownAtMs, report.lastKnownAtMs)
    const segment = report.segments.at(-1)
    if (last === null || segment === undefined || last.isEnded || last.isDamaged) return
    if (segment.lastLsn <= flushed.lsn) return
    this.#tail = segment.firstLsn
    this.#settlement = async (check) => {
      segment.bytes = await rewriteSegment(disk, folder, { ...segment, keptBytes: last.keptBytes }, check)
    }
  }

  get isSettled(): boolean {
    return this.#settlement === null
  }

  get isOverdue(): boolean {
    return this.#operations.isOverdue
  }

  get operationMs(): number | null {
    return this.#operations.underWayMs
  }

  /** Ended segments, oldest first. */
  get ended(): SegmentInfo[] {
    return this.#ended.map((segment) => ({ ...segment }))
  }

  /** Of the segments on the disk. Asked at each append: adds up and makes nothing. */
  get unflushedBytes(): number {
    let bytes = this.#current?.bytes ?? 0
    for (const segment of this.#ended) bytes += segment.bytes
    for (const segment of this.#broken) bytes += segment.bytes
    return bytes
  }

  /** Segments on the disk, with their commits and bytes. */
  get size(): { segments: number; unflushedCommits: number; unflushedBytes: number } {
    const segments = [...this.#ended, ...this.#broken, ...(this.#current ? [this.#current] : [])]
    return {
      segments: segments.length,
      unflushedCommits: segments.reduce((sum, { commits }) => sum + commits, 0),
      unflushedBytes: this.unflushedBytes,
    }
  }

  /** Writes them and answers them. Never rejects. */
  async writeGroup(commits: readonly WaitingCommit[]): Promise<void> {
    const segment = this.#current
    this.#lines.clear()
    if (segment === null) this.#addHeader()
    const group = new CommitGroup(commits, this.#groupStart(segment), this.#lines)
    const { bytes } = this.#lines
    try {
      await this.#operations.run(
        async (check) => {
          if (segment === null) this.#current = await this.#begin(bytes, check)
          else await segment.append(bytes, check)
        },
        () => this.#overdue(group),
      )
      this.#stored(group, bytes.length)
    } catch (error) {
      await this.#groupFailed(group, bytes.length, error as WriteFailure)
    }
    if (this.#current !== null && this.#current.bytes >= (this.#options.segmentBytes ?? SEGMENT_BYTES))
      await this.endSegment()
  }

  /** Ends the segment that is being written, if it has commits. Never rejects: its commits are durable already. */
  async endSegment(): Promise<void> {
    const segment = this.#current
    if (segment === null || segment.commits === 0) return
    this.#current = null
    try {
      await this.#operations.run(
        (check) => segment.end(this.lastLsn, check),
        () => this.#overdue(),
      )
    } catch (error) {
      this.#failed(error, 'the end of a segment could not be written; its commits are durable')
      await this.#close(segment)
    }
    this.#ended.push(infoOf(segment))
  }

  /** Tries to settle what is in doubt. False: it has to be tried again. Never rejects. */
  async settle(): Promise<boolean> {
    const settlement = this.#settlement
    if (settlement === null) return true
    try {
      await this.#operations.run(settlement, () => this.#overdue())
    } catch (error) {
      this.#failed(error, 'what a failure left in doubt could not be settled; trying again')
      return false
    }
    this.#settlement = this.#tail = null
    this.#ended.push(...this.#broken.splice(0))
    for (const group of this.#doubtful.splice(0))
      group.refuse(new LogError('disk_failed', 'the disk failed; the rows are not stored'))
    this.#options.log.info({ afterLsn: this.lastLsn }, 'nothing in the log is in doubt any more')
    return true
  }

  /** Deletes an ended segment, or sets it aside under another name; durably. Rejects with LogError. */
  async takeAway(firstLsn: number, how: 'remove' | 'setAside'): Promise<void> {
    const { folder } = this.#options
    const path = join(folder, segmentName(firstLsn))
    if (!this.#ended.some((segment) => segment.firstLsn === firstLsn))
      throw new LogError('segment_removed', `${path} is no segment that has ended`)
    try {
      await this.#operations.run(
        async (check) => {
          if (how === 'remove') await this.#disk.unlink(path).catch(unlessGone)
          else await this.#disk.rename(path, `${path}${DAMAGED_SUFFIX}`).catch(unlessGone)
          check()
          await this.#disk.syncFolder(folder)
        },
        () => this.#overdue(),
      )
    } catch (error) {
      this.#failed(error, 'a segment could not be taken away')
      throw new LogError(codeOfFailure(error), `${path}: ${errorMessage(error)}`, { cause: error })
    }
    this.#ended = this.#ended.filter((segment) => segment.firstLsn !== firstLsn)
    if (this.#tail === firstLsn) this.#settlement = this.#tail = null
  }

  /** Answers those of whom nobody can tell. */
  giveUp(): void {
    for (const group of this.#doubtful.splice(0)) group.refuse(inDoubt('the log was closed'))
  }

  /** Lets go of the file. Nothing may be written after it. */
  async close(): Promise<void> {
    const segment = this.#current
    this.#current = null
    if (segment !== null) await this.#close(segment)
  }

  #groupStart(segment: SegmentFile | null) {
    const nowMs = Math.floor(this.#options.clock.now())
    return {
      firstLsn: this.#nextLsn,
      afterLsn: this.lastLsn,
      // A flush takes whole segments. So whoever has read all rows up to one moment misses none that a later flush
      // brings, while commits of one segment may share a millisecond: many do.
      knownAtMs: Math.max(nowMs, this.lastKnownAtMs + (segment?.commits ? 0 : 1)),
      startedMs: this.#options.clock.monotonicMs(),
      segment: segment?.firstLsn ?? this.#nextLsn,
      offset: segment?.bytes ?? this.#lines.length,
    }
  }

  /** The header tells what counts before this segment: whatever else earlier ones hold is void. */
  #addHeader(): void {
    const { lastLsn: afterLsn, lastKnownAtMs: knownAt } = this
    this.#lines.add(headerText({ log: this.#options.logId, firstLsn: this.#nextLsn, afterLsn, knownAt }))
  }

  #begin(bytes: Uint8Array, check: Checkpoint): Promise<SegmentFile> {
    return SegmentFile.begin(this.#disk, this.#options.folder, this.#nextLsn, bytes, check)
  }

  #stored(group: CommitGroup, bytes: number): void {
    const { totals } = this
    totals.groups++
    totals.commits += group.size
    totals.bytes += bytes
    this.recentGroupMs.push(this.#options.clock.monotonicMs() - group.startedMs)
    if (this.recentGroupMs.length > DURATIONS_KEPT) this.recentGroupMs.shift()
    this.lastLsn = group.lastLsn
    this.lastKnownAtMs = group.knownAtMs
    this.#nextLsn = group.lastLsn + 1
    this.#current!.commits += group.size
    group.acknowledge()
  }

  async #groupFailed(group: CommitGroup, bytes: number, failure: WriteFailure): Promise<void> {
    const segment = this.#current
    this.#current = null
    this.#failed(failure, 'commits could not be written')
    const info = infoOf(segment ?? { firstLsn: group.firstLsn, commits: 0, bytes })
    if (!failure.isInDoubt) {
      const message = `the disk refused: ${failure.message}; the rows are not stored`
      group.refuse(new LogError(codeOfFailure(failure.cause), message, { cause: failure }))
      if (segment !== null) this.#ended.push(info)
    } else {
      this.totals.doubtful += group.size
      this.#broken.push(info)
      this.#nextLsn = group.lastLsn + 1
      this.lastKnownAtMs = group.knownAtMs
      this.#doubt(group)
    }
    if (segment !== null) await this.#close(segment)
  }

  /** The next segment's header says that the group does not count. Until that is durable nobody can tell. */
  #doubt(group: CommitGroup): void {
    this.#doubtful.push(group)
    setTimeout(
      () => group.refuse(inDoubt('the disk failed')),
      Math.max(0, this.#timeoutMs - (this.#options.clock.monotonicMs() - group.startedMs)),
    ).unref()
    this.#settlement = async (check) => {
      this.#lines.clear()
      this.#addHeader()
      this.#current = await this.#begin(this.#lines.bytes, check)
    }
  }

  #close(segment: SegmentFile): Promise<void> {
    return this.#operations.run(
      () => segment.close(),
      () => this.#overdue(),
    )
  }

  #overdue(group?: CommitGroup): void {
    this.totals.overdue++
    this.#options.log.error({ timeoutMs: this.#timeoutMs }, 'the disk hangs; the log takes no commits')
    group?.refuse(inDoubt('the disk hangs'))
    this.#onOverdue()
  }

  #failed(error: unknown, what: string): void {
    const { totals } = this
    totals.failures++
    // On a full disk each commit may fail: a line a second tells enough.
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs < this.#nextLineMs) return
    this.#nextLineMs = nowMs + LINE_EVERY_MS
    this.#options.log.error({ error: errorMessage(error), failures: totals.failures }, what)
  }
}

const inDoubt = (why: string): LogError =>
  new LogError(why === 'the disk hangs' ? 'disk_hanging' : 'disk_failed', `${why}; the rows may be stored`, {
    mayBeStored: true,
  })

const infoOf = ({ firstLsn, commits, bytes }: Omit<SegmentInfo, 'lastLsn'>): SegmentInfo => ({
  firstLsn,
  lastLsn: firstLsn + commits - 1,
  commits,
  bytes,
})

function unlessGone(error: unknown): void {
  if (systemCode(error) !== 'ENOENT') throw error
}
