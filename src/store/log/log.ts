// In: commits of those who wait. Out: each durable and acknowledged with its number, or refused with an error that says
// whether it may be stored. One write and one sync are under way at a time for all who wait. Knows no table and no HTTP.
import { assert } from '../../lib/assert.ts'
import { nodeDisk } from './disk.ts'
import { LogError } from './errors.ts'
import * as limits from './limits.ts'
import { LogWriter } from './log-writer.ts'
import { type Reading, readAll, type Visit } from './reader.ts'
import { COMMIT_FRAME_BYTES_MAX, rowsText } from './segments/format.ts'
import { PositionReader } from './segments/position-reader.ts'
import type * as types from './types.ts'
import { WaitingCommits } from './waiting-commits.ts'

const ID = /^[\w-]{1,64}$/
/** Findings that one line of the server's own log tells. */
const FINDINGS_TOLD_MAX = 20

/** Something to do with the disk between two groups. */
interface Task {
  run(): Promise<void>
  refuse(error: LogError): void
}

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

class DurableLog implements types.CommitLog {
  readonly recovered: types.ReadReport
  readonly #options: types.LogOptions
  readonly #timeoutMs: number
  readonly #writer: LogWriter
  readonly #reader: PositionReader
  readonly #waiting: WaitingCommits
  #tasks: Task[] = []
  #task: Task | null = null
  #working: Promise<void> | null = null
  #closing: Promise<void> | null = null
  #isSettlingDue = false
  #settleDelayMs = limits.SETTLE_RETRY_MS
  #settleTimer: NodeJS.Timeout | null = null
  #onFirstAttempt: () => void = () => undefined
  #onHang: () => void = () => undefined
  /** Nothing more is begun, though an operation may still hang: the folder may soon be another process's. */
  #isOver = false

  constructor(options: types.LogOptions, reading: Reading) {
    const { disk = nodeDisk, folder, timeoutMs = limits.OPERATION_TIMEOUT_MS } = options
    this.#options = options
    this.#timeoutMs = timeoutMs
    this.recovered = reading.report
    this.#writer = new LogWriter(options, reading, () => this.#overdue())
    this.#reader = new PositionReader(disk, folder, timeoutMs)
    this.#waiting = new WaitingCommits({
      groupBytesMax: options.groupBytesMax ?? limits.GROUP_BYTES_MAX,
      groupCommitsMax: options.groupCommitsMax ?? limits.GROUP_COMMITS_MAX,
      waitingBytesMax: options.waitingBytesMax ?? limits.WAITING_BYTES_MAX,
      waitingCommitsMax: options.waitingCommitsMax ?? limits.WAITING_COMMITS_MAX,
    })
  }

  /** Settles what the process before left in doubt. Where the disk does not let it, appends are refused until it does. */
  async start(): Promise<void> {
    if (this.#writer.isSettled) return
    const attempted = new Promise<void>((resolve) => {
      this.#onFirstAttempt = resolve
    })
    this.#isSettlingDue = true
    this.#wake()
    await attempted
  }

  async append(rows: readonly types.EncodedRow[]): Promise<types.Appended> {
    assert(rows.length > 0, 'a commit has rows')
    const text = rowsText(rows)
    const bytes = Buffer.byteLength(text) + COMMIT_FRAME_BYTES_MAX
    const refusal = this.#refusal(bytes)
    if (refusal !== null) {
      this.#writer.totals.refused++
      throw refusal
    }
    return new Promise((resolve, reject) => {
      this.#waiting.add({ rows: text, bytes, sinceMs: this.#options.clock.monotonicMs(), resolve, reject })
      this.#wake()
    })
  }

  read(position: types.Position): Promise<types.CommitRecord> {
    return this.#reader.read(position)
  }

  seal(): Promise<void> {
    return this.#do(() => this.#writer.endSegment())
  }

  segments(): types.SegmentInfo[] {
    return this.#writer.ended
  }

  remove(firstLsn: number): Promise<void> {
    return this.#do(() => this.#writer.takeAway(firstLsn, 'remove'))
  }

  setAside(firstLsn: number): Promise<void> {
    return this.#do(() => this.#writer.takeAway(firstLsn, 'setAside'))
  }

  status(): types.LogStatus {
    const { lastLsn, lastKnownAtMs, size, operationMs, recentGroupMs, totals } = this.#writer
    return {
      state: this.#state,
      lastLsn,
      lastKnownAtMs,
      ...size,
      waitingCommits: this.#waiting.count,
      waitingBytes: this.#waiting.bytes,
      operationMs,
      recentGroupMs: [...recentGroupMs],
      totals: { ...totals },
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  get #state(): types.LogState {
    if (this.#closing !== null) return 'closed'
    if (this.#writer.isOverdue) return 'hanging'
    return this.#writer.isSettled ? 'ready' : 'recovering'
  }

  /** Why a commit of this size is not taken; null: it is. */
  #refusal(bytes: number): LogError | null {
    const { recordBytesMax = limits.RECORD_BYTES_MAX, mayWrite } = this.#options
    // No option lets a record grow beyond what the format allows: no reader would take it.
    const bytesMax = Math.min(recordBytesMax, limits.RECORD_BYTES_MAX)
    if (bytes > bytesMax)
      return new LogError('record_too_large', `a commit of ${bytes} bytes is larger than ${bytesMax}`)
    if (this.#closing !== null) return closed()
    if (this.#writer.isOverdue) return hanging()
    if (!this.#writer.isSettled) return unsettled()
    if (mayWrite?.(this.#writer.unflushedBytes) === false)
      return new LogError('no_space', 'there is no room to write')
    return this.#waiting.refusal(bytes)
  }

  /** Has `work` done between two groups. */
  #do(work: () => Promise<void>): Promise<void> {
    if (this.#writer.isOverdue) return Promise.reject(hanging())
    return new Promise((resolve, reject) => {
      this.#tasks.push({ run: () => work().then(resolve, reject), refuse: reject })
      this.#wake()
    })
  }

  #wake(): void {
    this.#working ??= this.#work()
  }

  /** Works off what there is to do. From turn to turn of the event loop: all who come in one turn share a group. */
  async #work(): Promise<void> {
    for (;;) {
      await turnOfTheLoop()
      if (this.#isOver) return
      if (this.#isSettlingDue) await this.#settle()
      else if (this.#tasks.length > 0) await this.#runTask()
      else if (this.#waiting.count > 0) await this.#writeGroup()
      else break
    }
    // At once: whoever comes from now on must wake it again.
    this.#working = null
  }

  async #runTask(): Promise<void> {
    this.#task = this.#tasks.shift() ?? null
    await this.#task?.run()
    this.#task = null
  }

  async #writeGroup(): Promise<void> {
    const earliestMs = this.#options.clock.monotonicMs() - this.#timeoutMs
    const commits = this.#waiting.take().filter((commit) => {
      if (commit.sinceMs >= earliestMs) return true
      this.#writer.totals.refused++
      commit.reject(hanging())
      return false
    })
    if (commits.length > 0) await this.#writer.writeGroup(commits)
    if (this.#writer.isSettled) return
    this.#refuseWaiting(unsettled())
    this.#isSettlingDue = true
  }

  async #settle(): Promise<void> {
    this.#isSettlingDue = false
    const isSettled = await this.#writer.settle()
    this.#onFirstAttempt()
    if (isSettled) {
      this.#settleDelayMs = limits.SETTLE_RETRY_MS
      return
    }
    if (this.#closing !== null) return
    this.#settleTimer = setTimeout(() => {
      this.#isSettlingDue = true
      this.#wake()
    }, this.#settleDelayMs)
    this.#settleDelayMs = Math.min(this.#settleDelayMs * 2, limits.SETTLE_RETRY_MAX_MS)
  }

  /** Nobody waits for a disk that hangs. */
  #overdue(): void {
    this.#refuseWaiting(hanging())
    for (const task of this.#tasks.splice(0)) task.refuse(hanging())
    this.#task?.refuse(hanging())
    this.#onFirstAttempt()
    this.#onHang()
  }

  #refuseWaiting(error: LogError): void {
    const commits = this.#waiting.takeAll()
    this.#writer.totals.refused += commits.length
    for (const commit of commits) commit.reject(error)
  }

  async #close(): Promise<void> {
    const { promise: timeIsUp, resolve } = Promise.withResolvers<void>()
    this.#onHang = resolve
    const timer = setTimeout(resolve, this.#timeoutMs)
    if (!this.#writer.isOverdue) await Promise.race([this.#finish(), timeIsUp])
    this.#isOver = true
    clearTimeout(timer)
    clearTimeout(this.#settleTimer ?? undefined)
    this.#refuseWaiting(closed())
    this.#writer.giveUp()
  }

  async #finish(): Promise<void> {
    await this.#working
    this.#tasks.push({ run: () => this.#writer.endSegment(), refuse: () => undefined })
    this.#tasks.push({ run: () => this.#writer.close(), refuse: () => undefined })
    this.#wake()
    await this.#working
  }
}

const hanging = (): LogError => new LogError('disk_hanging', 'the disk hangs; the rows are not stored')
const unsettled = (): LogError =>
  new LogError('disk_failed', 'the log recovers from a failure of the disk; the rows are not stored')
const closed = (): LogError => new LogError('closed', 'the log is closed; the rows are not stored')

/**
 * Opens the log in `folder`, and visits every commit behind `flushed`, each once and in order. What a crash left is
 * settled; damage is reported and does not stop it. Whoever calls owns the folder: the log has no lock of its own.
 */
export async function openLog(options: types.LogOptions, visit: Visit): Promise<types.CommitLog> {
  const { disk = nodeDisk, folder, logId, flushed } = options
  assert(ID.test(logId), 'the identity of a log is a short word')
  await disk.makeFolder(folder)
  const reading = await readAll({ disk, folder, logId, afterLsn: flushed.lsn }, visit)
  const { damage, damageCount } = reading.report
  if (damageCount > 0)
    options.log.error(
      { count: damageCount, damage: damage.slice(0, FINDINGS_TOLD_MAX) },
      'the log is damaged',
    )
  const log = new DurableLog(options, reading)
  await log.start()
  return log
}
