// Writes groups of commits to segments, one group at a time, and handles failures of the disk: a group whose write or sync
// failed is in doubt, and nothing is acknowledged until a durable segment header has voided it.
import { join } from 'node:path'
import { assert } from '../../lib/assert.ts'
import { type Disk, nodeDisk } from '../../lib/disk/disk.ts'
import { DiskOperations, type OverdueCheck } from '../../lib/disk/disk-operations.ts'
import { HighWaterMark } from '../../lib/disk/high-water-mark.ts'
import { errorMessage, ignoreMissing } from '../../lib/error-text.ts'
import { whatRefused } from '../../lib/process/open-files.ts'
import { SEGMENT_BYTES } from '../../lib/segments/limits.ts'
import { stateAfter } from '../../lib/states.ts'
import { CommitGroup, type CommitGroupStart } from './commit-group.ts'
import type { QueuedCommit } from './commit-queue.ts'
import { LogError, type LogErrorCode, toLogErrorCode } from './errors.ts'
import { FAILURE_LINE_INTERVAL_MS, GROUP_DURATIONS_KEPT, OPERATION_TIMEOUT_MS } from './limits.ts'
import type { LogRead } from './reader.ts'
import { DAMAGED_SUFFIX, headerText, LineBuffer, segmentNames } from './segments/format.ts'
import { createSegment, rewriteSegment, type SegmentFile, WriteFailure } from './segments/segment-file.ts'
import type { LogOptions, SegmentInfo } from './types.ts'
import { WRITER_STATES, type WriterEvent, type WriterState } from './writer-states.ts'

export class LogWriter {
  readonly totals = { commits: 0, refused: 0, failures: 0 }
  /** Every commit up to this one is durable, void or known to be lost. */
  lastLsn: number
  lastKnownAtMs: number
  readonly #options: LogOptions
  readonly #disk: Disk
  readonly #mark: HighWaterMark | null
  readonly #timeoutMs: number
  readonly #operations: DiskOperations
  readonly #onOverdue: () => void
  readonly #lines = new LineBuffer()
  readonly #recentGroupMs: number[] = []
  #sealed: SegmentInfo[]
  #state: WriterState = 'idle'
  /** Segments that may hold commits in doubt. They become sealed ones when recovery succeeds. */
  #failed: SegmentInfo[] = []
  #current: SegmentFile | null = null
  /** Groups that were written but are neither known to be durable nor voided yet. */
  #groupsInDoubt: CommitGroup[] = []
  /** What the previous process left unsealed. */
  readonly #unsealed: { segment: SegmentInfo; validBytes: number } | null = null
  #nextLsn: number
  /** False from a failure until a segment is sealed again: on a full disk, commits get the room that is left. */
  #writesAhead = true
  /** On the monotonic clock. */
  #nextFailureLineMs = 0

  /** @param onOverdue called while an operation hangs, after its own callers were answered */
  constructor(options: LogOptions, { report, unsealedBytes, provenLsn }: LogRead, onOverdue: () => void) {
    const { disk = nodeDisk, flushed, logId, markPath, timeoutMs = OPERATION_TIMEOUT_MS } = options
    this.#options = options
    this.#disk = disk
    this.#mark = markPath === undefined ? null : new HighWaterMark(disk, markPath, logId)
    this.#timeoutMs = timeoutMs
    this.#operations = new DiskOperations(timeoutMs)
    this.#onOverdue = onOverdue
    this.#sealed = [...report.segments]
    this.lastLsn = Math.max(flushed.lsn, report.lastLsn, provenLsn)
    this.#nextLsn = Math.max(this.lastLsn, report.highestLsn) + 1
    this.lastKnownAtMs = Math.max(flushed.knownAtMs, report.lastKnownAtMs)
    const segment = report.segments.at(-1)
    if (unsealedBytes === null || segment === undefined || segment.lastLsn <= flushed.lsn) return
    this.#unsealed = { segment, validBytes: unsealedBytes }
    this.#state = 'unsealed'
  }

  /** Recovery has to succeed before commits are taken. */
  get needsRecovery(): boolean {
    return this.#state === 'inDoubt' || this.#state === 'unsealed'
  }

  get isOverdue(): boolean {
    return this.#operations.isOverdue
  }

  /** Sealed segments, oldest first. */
  get sealedSegments(): SegmentInfo[] {
    return this.#sealed.map((segment) => ({ ...segment }))
  }

  /** Bytes of all segments on the disk. Called at each append, so it allocates nothing. */
  get unflushedBytes(): number {
    let bytes = this.#current?.bytes ?? 0
    for (const segment of this.#sealed) bytes += segment.bytes
    for (const segment of this.#failed) bytes += segment.bytes
    return bytes
  }

  /** Commits of all segments on the disk. */
  get unflushedCommits(): number {
    const segments = [...this.#sealed, ...this.#failed, ...(this.#current ? [this.#current] : [])]
    return segments.reduce((sum, { commits }) => sum + commits, 0)
  }

  get slowestGroupMs(): number {
    return Math.max(0, ...this.#recentGroupMs)
  }

  /** Writes and syncs the commits as one group, and answers their callers. Never rejects. */
  async writeGroup(commits: readonly QueuedCommit[]): Promise<void> {
    const segment = this.#current
    this.#lines.clear()
    if (segment === null) this.#addHeader()
    const group = new CommitGroup(commits, this.#groupStart(segment), this.#lines)
    const { bytes } = this.#lines
    try {
      const written = await this.#run(async (check) => {
        if (segment === null) return this.#createSegment(bytes, check)
        await segment.append(bytes, check)
        return segment
      }, group)
      this.#current = written
      this.#become('stored')
      written.commits += group.size
      this.#acknowledge(group)
    } catch (error) {
      const failure = error instanceof WriteFailure ? error : new WriteFailure(error, true)
      await this.#handleFailedGroup(group, bytes.length, failure)
    }
    if (this.#current !== null && this.#current.bytes >= (this.#options.segmentBytes ?? SEGMENT_BYTES))
      await this.sealSegment()
  }

  /** Seals the current segment, if it has commits. Never rejects: its commits are durable already. */
  async sealSegment(): Promise<void> {
    const segment = this.#current
    if (segment === null || segment.commits === 0) return
    this.#current = null
    this.#become('sealed')
    try {
      await this.#run((check) => segment.seal(this.lastLsn, check))
      this.#writesAhead = true
    } catch (error) {
      this.#reportFailure(error, 'the end record of a segment could not be written; its commits are durable')
      await this.#closeFile(segment)
    }
    this.#sealed.push(toSegmentInfo(segment))
  }

  /** Voids what is in doubt, or rewrites the unsealed segment. @returns false where it must be tried again. Never rejects. */
  async recover(): Promise<boolean> {
    if (!this.needsRecovery) return true
    try {
      await this.#run((check) =>
        this.#state === 'unsealed' ? this.#rewriteUnsealed(check) : this.#voidInDoubt(check),
      )
    } catch (error) {
      this.#reportFailure(error, 'the log could not recover from a failure yet; it will try again')
      return false
    }
    this.#become('recovered')
    this.#sealed.push(...this.#failed.splice(0))
    for (const group of this.#groupsInDoubt.splice(0))
      group.refuse(new LogError('disk_failed', 'the disk failed; the rows are not stored'))
    this.#options.log.info({ afterLsn: this.lastLsn }, 'the log has recovered; no commit is in doubt')
    return true
  }

  /** Durably deletes a sealed segment, or renames it to `*.damaged`. Rejects with LogError. */
  async dropSegment(firstLsn: number, how: 'remove' | 'setAside'): Promise<void> {
    const { folder } = this.#options
    const path = join(folder, segmentNames.nameOf(firstLsn))
    if (!this.#sealed.some((segment) => segment.firstLsn === firstLsn))
      throw new LogError('segment_removed', `${path} is not a sealed segment`)
    try {
      await this.#run(async (check) => {
        if (how === 'remove') await this.#disk.unlink(path).catch(ignoreMissing)
        else await this.#disk.rename(path, `${path}${DAMAGED_SUFFIX}`).catch(ignoreMissing)
        check()
        await this.#disk.syncFolder(folder)
      })
    } catch (error) {
      this.#reportFailure(error, 'a segment could not be removed or renamed')
      throw new LogError(toLogErrorCode(error), `${path}: ${errorMessage(error)}`, { cause: error })
    }
    this.#sealed = this.#sealed.filter((segment) => segment.firstLsn !== firstLsn)
    if (this.#state === 'unsealed' && this.#unsealed?.segment.firstLsn === firstLsn) this.#become('dropped')
  }

  /** Answers the callers whose commits are still in doubt, because the log closes. */
  refuseGroupsInDoubt(): void {
    for (const group of this.#groupsInDoubt.splice(0))
      group.refuse(inDoubtError('disk_failed', 'the log was closed'))
  }

  /** Closes the current file. Nothing may be written afterwards. */
  async close(): Promise<void> {
    const segment = this.#current
    this.#current = null
    this.#become('closed')
    if (segment !== null) await this.#closeFile(segment)
    await this.#mark?.close()
  }

  #groupStart(segment: SegmentFile | null): CommitGroupStart {
    const nowMs = Math.floor(this.#options.clock.now())
    return {
      firstLsn: this.#nextLsn,
      afterLsn: this.lastLsn,
      // Each segment begins at a later time than the one before, because a flush takes whole segments: a consumer that has
      // read all rows up to one time then misses none that a later flush adds. Within a segment, commits may share a time.
      knownAtMs: Math.max(nowMs, this.lastKnownAtMs + (segment?.commits ? 0 : 1)),
      startedMs: this.#options.clock.monotonicMs(),
      segment: segment?.firstLsn ?? this.#nextLsn,
      offset: segment?.bytes ?? this.#lines.length,
    }
  }

  /** The header voids every commit after `lastLsn` that earlier segments hold. */
  #addHeader(): void {
    this.#lines.add(headerText(this.#options.logId, this.#nextLsn, this.lastLsn, this.lastKnownAtMs))
  }

  #createSegment(bytes: Uint8Array, check: OverdueCheck): Promise<SegmentFile> {
    return createSegment(this.#disk, this.#options.folder, this.#nextLsn, bytes, this.#writesAhead, check)
  }

  #acknowledge(group: CommitGroup): void {
    this.totals.commits += group.size
    this.#recentGroupMs.push(this.#options.clock.monotonicMs() - group.startedMs)
    if (this.#recentGroupMs.length > GROUP_DURATIONS_KEPT) this.#recentGroupMs.shift()
    this.lastLsn = group.lastLsn
    this.lastKnownAtMs = group.knownAtMs
    this.#nextLsn = group.lastLsn + 1
    this.#mark?.note(group.lastLsn)
    group.acknowledge()
  }

  async #handleFailedGroup(group: CommitGroup, bytes: number, failure: WriteFailure): Promise<void> {
    const segment = this.#current
    this.#current = null
    this.#writesAhead = false
    this.#reportFailure(failure, 'commits could not be written')
    const info = toSegmentInfo(segment ?? { firstLsn: group.firstLsn, commits: 0, bytes })
    if (!failure.isInDoubt) {
      const message = `${whatRefused(failure.cause, 'the disk refused the write')}: ${failure.message}; the rows are not stored`
      group.refuse(new LogError(toLogErrorCode(failure.cause), message, { cause: failure }))
      if (segment !== null) this.#sealed.push(info)
      this.#become('refused')
    } else {
      this.#failed.push(info)
      this.#nextLsn = group.lastLsn + 1
      this.lastKnownAtMs = group.knownAtMs
      this.#become('failed')
      this.#keepInDoubt(group)
    }
    if (segment !== null) await this.#closeFile(segment)
  }

  /** The group is in doubt until the header of the next segment, which voids it, is durable. */
  #keepInDoubt(group: CommitGroup): void {
    this.#groupsInDoubt.push(group)
    setTimeout(
      () => group.refuse(inDoubtError('disk_failed', 'the disk failed')),
      Math.max(0, this.#timeoutMs - (this.#options.clock.monotonicMs() - group.startedMs)),
    ).unref()
  }

  async #voidInDoubt(check: OverdueCheck): Promise<void> {
    this.#lines.clear()
    this.#addHeader()
    this.#current = await this.#createSegment(this.#lines.bytes, check)
  }

  async #rewriteUnsealed(check: OverdueCheck): Promise<void> {
    assert(this.#unsealed !== null, 'what is unsealed is known')
    const { segment, validBytes } = this.#unsealed
    segment.bytes = await rewriteSegment(this.#disk, this.#options.folder, { ...segment, validBytes }, check)
  }

  #become(event: WriterEvent): void {
    this.#state = stateAfter(WRITER_STATES, this.#state, event)
  }

  #closeFile(segment: SegmentFile): Promise<void> {
    return this.#run(() => segment.close())
  }

  /** Runs work on the disk; where that is overdue, nothing else is run until it ends. @param group whose callers then are answered */
  #run<Result>(work: (check: OverdueCheck) => Promise<Result>, group?: CommitGroup): Promise<Result> {
    return this.#operations.run(work, () => this.#reportOverdue(group))
  }

  #reportOverdue(group?: CommitGroup): void {
    this.totals.failures++
    this.#options.log.error({ timeoutMs: this.#timeoutMs }, 'the disk hangs; the log takes no commits')
    group?.refuse(inDoubtError('disk_hanging', 'the disk hangs'))
    this.#onOverdue()
  }

  /** Counts a failure and logs it, at most once a second: on a full disk each commit may fail. */
  #reportFailure(error: unknown, message: string): void {
    const { totals } = this
    totals.failures++
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs < this.#nextFailureLineMs) return
    this.#nextFailureLineMs = nowMs + FAILURE_LINE_INTERVAL_MS
    this.#options.log.error({ error: errorMessage(error), failures: totals.failures }, message)
  }
}

const inDoubtError = (code: LogErrorCode, reason: string): LogError =>
  new LogError(code, `${reason}; the rows may be stored`, { mayBeStored: true })

const toSegmentInfo = ({ firstLsn, commits, bytes }: Omit<SegmentInfo, 'lastLsn'>): SegmentInfo => ({
  firstLsn,
  lastLsn: firstLsn + commits - 1,
  commits,
  bytes,
})
