// Commits that wait for the disk, first in, first out. `takeGroup` returns as many as fit one write.
import { LogError } from './errors.ts'
import { GROUP_BYTES_MAX, GROUP_COMMITS_MAX, QUEUED_BYTES_MAX, QUEUED_COMMITS_MAX } from './limits.ts'
import type { AppendResult } from './types.ts'

export interface QueuedCommit {
  /** Its rows, encoded as they stand in the record. */
  rows: string
  /** Upper bound of the size of its payload. */
  bytes: number
  /** On the monotonic clock. */
  queuedAtMs: number
  resolve(result: AppendResult): void
  reject(error: LogError): void
}

export class CommitQueue {
  #commits: QueuedCommit[] = []
  #bytes = 0

  get count(): number {
    return this.#commits.length
  }

  /** The error with which a further commit of this size must be refused; null where there is room. */
  checkRoom(bytes: number): LogError | null {
    if (this.count < QUEUED_COMMITS_MAX && this.#bytes + bytes <= QUEUED_BYTES_MAX) return null
    return new LogError(
      'too_many_waiting',
      `the queue for the disk is full (${this.count} commits, ${this.#bytes} bytes); the rows are not stored`,
    )
  }

  add(commit: QueuedCommit): void {
    this.#commits.push(commit)
    this.#bytes += commit.bytes
  }

  /** Removes the next group from the queue: at least one commit, unless the queue is empty. */
  takeGroup(): QueuedCommit[] {
    let taken = 0
    let bytes = 0
    for (const commit of this.#commits) {
      if (taken > 0 && (taken === GROUP_COMMITS_MAX || bytes + commit.bytes > GROUP_BYTES_MAX)) break
      taken++
      bytes += commit.bytes
    }
    const group = this.#commits.splice(0, taken)
    this.#bytes -= bytes
    return group
  }

  /** Empties the queue. */
  takeAll(): QueuedCommit[] {
    const all = this.#commits
    this.#commits = []
    this.#bytes = 0
    return all
  }
}
