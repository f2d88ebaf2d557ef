// The commit log: queues appends, writes them in groups, and runs other work on the disk between two groups. README.md describes
// the format, the invariants and what happens on failures.

import { assert } from '../../lib/assert.ts'
import { Backoff } from '../../lib/backoff.ts'
import { nodeDisk } from '../../lib/disk/disk.ts'
import { readHighWaterMark } from '../../lib/disk/high-water-mark.ts'
import { nextTurn, within } from '../../lib/wait.ts'
import { CommitQueue } from './commit-queue.ts'
import { LogError } from './errors.ts'
import * as limits from './limits.ts'
import { LogWriter } from './log-writer.ts'
import { type LogRead, readSegments, type Visit } from './reader.ts'
import { COMMIT_FRAME_BYTES_MAX, rowsText } from './segments/format.ts'
import { PositionReader } from './segments/position-reader.ts'
import type * as types from './types.ts'

const LOG_ID = /^[\w-]{1,64}$/
/** Entries of damage in the line that reports it. */
const DAMAGE_LOGGED_MAX = 20

/** Work on the disk that runs between two groups. */
interface Task {
  run(): Promise<void>
  refuse(error: LogError): void
}

export class CommitLog {
  /** What was found when the log was opened. */
  readonly recovered: types.ReadReport
  readonly #options: types.LogOptions
  readonly #timeoutMs: number
  readonly #writer: LogWriter
  readonly #reader: PositionReader
  readonly #queue = new CommitQueue()
  #tasks: Task[] = []
  #currentTask: Task | null = null
  /** Settles when there is nothing left to do; null while the log is idle. */
  #running: Promise<void> | null = null
  #closing: Promise<void> | null = null
  #isRecoveryDue = false
  readonly #backoff = new Backoff(limits.RECOVERY_RETRY_MS, limits.RECOVERY_RETRY_MAX_MS)
  #recoveryTimer: NodeJS.Timeout | null = null
  #onHang: () => void = () => undefined
  /** After `close`, nothing is started, even when a hanging operation ends: another process may own the folder by then. */
  #isStopped = false

  constructor(options: types.LogOptions, read: LogRead) {
    const { disk = nodeDisk, folder, timeoutMs = limits.OPERATION_TIMEOUT_MS } = options
    this.#options = options
    this.#timeoutMs = timeoutMs
    this.recovered = read.report
    this.#writer = new LogWriter(options, read, () => this.#handleOverdue())
    this.#reader = new PositionReader(disk, folder, timeoutMs)
  }

  /** Makes the first attempt to recover what the previous process left. Where it fails, appends are refused until one succeeds. */
  async start(): Promise<void> {
    if (!this.#writer.needsRecovery) return
    this.#isRecoveryDue = true
    await this.#unlessHanging(this.#wake())
  }

  /** Stores rows as one commit. Resolves when they are durable; rejects with LogError, which says whether they may be stored. */
  async append(rows: readonly types.EncodedRow[]): Promise<types.AppendResult> {
    assert(rows.length > 0, 'a commit has rows')
    const text = rowsText(rows)
    const bytes = Buffer.byteLength(text) + COMMIT_FRAME_BYTES_MAX
    const refusal = this.#checkAppend(bytes)
    if (refusal !== null) {
      this.#writer.totals.refused++
      throw refusal
    }
    return new Promise((resolve, reject) => {
      this.#queue.add({ rows: text, bytes, queuedAtMs: this.#options.clock.monotonicMs(), resolve, reject })
      this.#wake()
    })
  }

  /** Reads one commit and checks its CRC. Rejects with LogError. */
  read(position: types.Position): Promise<types.StoredCommit> {
    return this.#reader.read(position)
  }

  /** Seals the current segment, if it has commits. `segments` lists it from then on. */
  seal(): Promise<void> {
    return this.#runTask(() => this.#writer.sealSegment())
  }

  /** Sealed segments, which a flush may read, oldest first. */
  segments(): types.SegmentInfo[] {
    return this.#writer.sealedSegments
  }

  /** Durably deletes a sealed segment whose commits are stored elsewhere. To be called oldest first. */
  remove(firstLsn: number): Promise<void> {
    return this.#runTask(() => this.#writer.dropSegment(firstLsn, 'remove'))
  }

  /** Like `remove`, for a damaged segment: the file is kept under a name that ends in `.damaged`. */
  setAside(firstLsn: number): Promise<void> {
    return this.#runTask(() => this.#writer.dropSegment(firstLsn, 'setAside'))
  }

  status(): types.LogStatus {
    const { lastKnownAtMs, slowestGroupMs, totals, unflushedBytes, unflushedCommits } = this.#writer
    const state = this.#state
    return { state, lastKnownAtMs, slowestGroupMs, unflushedBytes, unflushedCommits, totals: { ...totals } }
  }

  /** Writes the queued commits and seals the segment. Resolves within the time limit, even where the disk hangs. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  get #state(): types.LogState {
    if (this.#closing !== null) return 'closed'
    if (this.#writer.isOverdue) return 'hanging'
    return this.#writer.needsRecovery ? 'recovering' : 'ready'
  }

  /** The error with which a commit of this size must be refused; null where it is taken. */
  #checkAppend(bytes: number): LogError | null {
    if (bytes > limits.RECORD_BYTES_MAX)
      return new LogError(
        'record_too_large',
        `a commit of ${bytes} bytes exceeds the limit of ${limits.RECORD_BYTES_MAX} bytes`,
      )
    if (this.#closing !== null) return closedError()
    if (this.#writer.isOverdue) return hangingError()
    if (this.#writer.needsRecovery) return recoveringError()
    if (this.#options.mayWrite?.(this.#writer.unflushedBytes) === false)
      return new LogError('no_space', 'too little disk space is free; the rows are not stored')
    return this.#queue.checkRoom(bytes)
  }

  /** Queues `work` to run between two groups. Settles as it does; rejects with LogError while the disk hangs. */
  #runTask(work: () => Promise<void>): Promise<void> {
    if (this.#writer.isOverdue) return Promise.reject(hangingError())
    return new Promise((resolve, reject) => {
      this.#tasks.push({ run: () => work().then(resolve, reject), refuse: reject })
      this.#wake()
    })
  }

  #wake(): Promise<void> {
    this.#running ??= this.#run()
    return this.#running
  }

  /** Waits until `work` is done, or an operation on the disk hangs. */
  #unlessHanging(work: Promise<void>): Promise<void> {
    const { promise: hangs, resolve } = Promise.withResolvers<void>()
    this.#onHang = resolve
    return Promise.race([work, hangs])
  }

  /** Does one thing per turn of the event loop, so that all appends of one turn share a group, until nothing is left to do. */
  async #run(): Promise<void> {
    for (;;) {
      await nextTurn()
      if (this.#isStopped) return
      if (this.#isRecoveryDue) await this.#recover()
      else if (this.#tasks.length > 0) await this.#runNextTask()
      else if (this.#queue.count > 0) await this.#writeGroup()
      else break
    }
    // No await between the last check and this line: an append after it starts the loop again.
    this.#running = null
  }

  async #runNextTask(): Promise<void> {
    this.#currentTask = this.#tasks.shift() ?? null
    await this.#currentTask?.run()
    this.#currentTask = null
  }

  async #writeGroup(): Promise<void> {
    const earliestMs = this.#options.clock.monotonicMs() - this.#timeoutMs
    const commits = this.#queue.takeGroup().filter((commit) => {
      if (commit.queuedAtMs >= earliestMs) return true
      this.#writer.totals.refused++
      commit.reject(hangingError())
      return false
    })
    if (commits.length > 0) await this.#writer.writeGroup(commits)
    if (!this.#writer.needsRecovery) return
    this.#refuseQueued(recoveringError())
    this.#isRecoveryDue = true
  }

  async #recover(): Promise<void> {
    this.#isRecoveryDue = false
    if (await this.#writer.recover()) {
      this.#backoff.reset()
      return
    }
    if (this.#closing !== null) return
    this.#recoveryTimer = setTimeout(() => {
      this.#isRecoveryDue = true
      this.#wake()
    }, this.#backoff.nextMs())
  }

  /** Answers everybody who waits for the disk, because it hangs. */
  #handleOverdue(): void {
    this.#refuseQueued(hangingError())
    for (const task of this.#tasks.splice(0)) task.refuse(hangingError())
    this.#currentTask?.refuse(hangingError())
    this.#onHang()
  }

  #refuseQueued(error: LogError): void {
    const commits = this.#queue.takeAll()
    this.#writer.totals.refused += commits.length
    for (const commit of commits) commit.reject(error)
  }

  async #close(): Promise<void> {
    if (!this.#writer.isOverdue) await within(this.#timeoutMs, this.#unlessHanging(this.#finish()))
    this.#isStopped = true
    clearTimeout(this.#recoveryTimer ?? undefined)
    this.#refuseQueued(closedError())
    this.#writer.refuseGroupsInDoubt()
  }

  async #finish(): Promise<void> {
    await this.#running
    this.#tasks.push({ run: () => this.#writer.sealSegment(), refuse: () => undefined })
    this.#tasks.push({ run: () => this.#writer.close(), refuse: () => undefined })
    await this.#wake()
  }
}

const hangingError = (): LogError => new LogError('disk_hanging', 'the disk hangs; the rows are not stored')
const recoveringError = (): LogError =>
  new LogError('disk_failed', 'the log is recovering from a disk failure; the rows are not stored')
const closedError = (): LogError => new LogError('closed', 'the log is closed; the rows are not stored')

/**
 * Opens the log in `folder`, visits every commit after `flushed`, each once and in order, and recovers what a crash left. Damage
 * is reported and does not prevent opening. The caller must own the folder: the log has no lock of its own.
 */
export async function openLog(options: types.LogOptions, visit: Visit): Promise<CommitLog> {
  const { disk = nodeDisk, folder, logId, flushed, markPath } = options
  assert(LOG_ID.test(logId), 'logId has 1 to 64 letters, digits, _ or -')
  await disk.makeFolder(folder)
  const knownLsn = markPath === undefined ? 0 : await readHighWaterMark(disk, markPath, logId)
  const read = await readSegments({ disk, folder, logId, afterLsn: flushed.lsn, knownLsn }, visit)
  const { damage } = read.report
  if (damage.length > 0)
    options.log.error(
      { count: damage.length, damage: damage.slice(0, DAMAGE_LOGGED_MAX) },
      'the log is damaged',
    )
  const log = new CommitLog(options, read)
  await log.start()
  return log
}
