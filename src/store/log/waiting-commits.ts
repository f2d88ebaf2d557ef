// In: commits. Out: groups of them for one write each, in order of arrival. Holds what its bounds allow; a further commit
// is refused. Never touches a disk.
import { LogError } from './errors.ts'
import type { Appended } from './types.ts'

export interface WaitingCommit {
  /** Its rows as they stand in the record. */
  rows: string
  /** Of the payload, at most. */
  bytes: number
  /** When it came, on the monotonic clock. */
  sinceMs: number
  resolve(appended: Appended): void
  reject(error: LogError): void
}

export interface WaitingBounds {
  groupBytesMax: number
  groupCommitsMax: number
  waitingBytesMax: number
  waitingCommitsMax: number
}

export class WaitingCommits {
  readonly #bounds: WaitingBounds
  #commits: WaitingCommit[] = []
  #bytes = 0

  constructor(bounds: WaitingBounds) {
    this.#bounds = bounds
  }

  get count(): number {
    return this.#commits.length
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Why one more of this size is refused; null: it is not. */
  refusal(bytes: number): LogError | null {
    const { waitingBytesMax, waitingCommitsMax } = this.#bounds
    if (this.count < waitingCommitsMax && this.#bytes + bytes <= waitingBytesMax) return null
    return new LogError(
      'too_many_waiting',
      `${this.count} commits of ${this.#bytes} bytes wait for the disk; no more are taken`,
    )
  }

  add(commit: WaitingCommit): void {
    this.#commits.push(commit)
    this.#bytes += commit.bytes
  }

  /** The next group: at least one commit, if any waits. */
  take(): WaitingCommit[] {
    const { groupBytesMax, groupCommitsMax } = this.#bounds
    let taken = 0
    let bytes = 0
    for (const commit of this.#commits) {
      if (taken > 0 && (taken === groupCommitsMax || bytes + commit.bytes > groupBytesMax)) break
      taken++
      bytes += commit.bytes
    }
    const group = this.#commits.splice(0, taken)
    this.#bytes -= bytes
    return group
  }

  /** All that wait, to be refused. */
  takeAll(): WaitingCommit[] {
    const all = this.#commits
    this.#commits = []
    this.#bytes = 0
    return all
  }
}
