// Commits that share one write: numbers them, encodes their lines, and answers their callers, of whom each gets the first answer.
import type { QueuedCommit } from './commit-queue.ts'
import type { LogError } from './errors.ts'
import { commitText, type LineBuffer } from './segments/format.ts'
import type { AppendResult } from './types.ts'

export interface CommitGroupStart {
  firstLsn: number
  /** The last commit that is durable now. */
  afterLsn: number
  knownAtMs: number
  /** On the monotonic clock. */
  startedMs: number
  /** First LSN of the segment that the group is written to. */
  segment: number
  /** Where the group's first line will begin in the segment, in bytes. */
  offset: number
}

export class CommitGroup {
  readonly firstLsn: number
  readonly lastLsn: number
  readonly knownAtMs: number
  /** On the monotonic clock. */
  readonly startedMs: number
  readonly #commits: readonly QueuedCommit[]
  readonly #results: AppendResult[]

  /** Numbers the commits and adds their lines to `lines`. */
  constructor(commits: readonly QueuedCommit[], start: CommitGroupStart, lines: LineBuffer) {
    const { firstLsn, afterLsn, knownAtMs, segment } = start
    this.#commits = commits
    this.firstLsn = firstLsn
    this.knownAtMs = knownAtMs
    this.startedMs = start.startedMs
    this.lastLsn = firstLsn + commits.length - 1
    let { offset } = start
    this.#results = commits.map(({ rows }, index) => {
      const lsn = firstLsn + index
      const length = lines.add(commitText(lsn, afterLsn, knownAtMs, rows))
      const position = { segment, offset, length }
      offset += length
      return { lsn, knownAtMs, position }
    })
  }

  get size(): number {
    return this.#commits.length
  }

  acknowledge(): void {
    for (let index = 0; index < this.#commits.length; index++)
      this.#commits[index].resolve(this.#results[index])
  }

  refuse(error: LogError): void {
    for (const commit of this.#commits) commit.reject(error)
  }
}
