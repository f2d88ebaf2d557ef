import type { Market } from '../../market/market.ts'
import { SUBMISSIONS_SNAPSHOT_ROWS } from '../limits.ts'
import { type Channel, type StreamSnapshot, singleSnapshot } from './channel.ts'
import { Chunk, ChunkCache, type StreamPosition } from './chunk.ts'
import type { SubmissionLog } from './submission-log.ts'

/** Every submission the moment it is durable. Its positions are those of the market; `state` is the number of the last one sent. */
export class SubmissionsChannel implements Channel {
  readonly name = 'submissions'
  readonly key = 'submissions'
  readonly isPaced = false
  readonly mint = null
  readonly #market: Market
  readonly #log: SubmissionLog
  readonly #chunks = new ChunkCache()

  constructor(market: Market, log: SubmissionLog) {
    this.#market = market
    this.#log = log
  }

  /** Any position of this run will do. */
  isLost({ seq }: Pick<StreamPosition, 'seq'>): boolean {
    return seq < this.#market.firstSeq || seq > this.#market.seq
  }

  changes(position: StreamPosition): Chunk | null {
    const { seq } = this.#market
    const { count } = this.#log
    const { state } = position
    if (position.seq === seq && state === `${count}`) return null
    // A position to resume from has no number yet: it shares nothing.
    if (state === '') return this.#chunk('changes', this.#log.since(position.seq))
    return this.#chunks.get(`${seq} ${count}`, Number(state), () =>
      this.#chunk('changes', this.#log.after(Number(state))),
    )
  }

  open(): StreamSnapshot {
    return singleSnapshot(this.#chunk('snapshot', this.#log.newest(SUBMISSIONS_SNAPSHOT_ROWS), true))
  }

  reopen(): StreamSnapshot {
    return this.open()
  }

  hasMoved(): boolean {
    return false
  }

  #chunk(event: 'changes' | 'snapshot', rows: Buffer, isLast?: true): Chunk {
    const { seq } = this.#market
    const next = { seq, barMs: 0, state: `${this.#log.count}` }
    const head = { event, channel: this.name, seq, ...(isLast && { last: true }) }
    return new Chunk(rows.length > 0 || isLast ? [{ head, rows, next }] : [], next)
  }
}
