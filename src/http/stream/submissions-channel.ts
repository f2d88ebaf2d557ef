import type { Market } from '../../market/market.ts'
import { SUBMISSIONS_SNAPSHOT_ROWS } from '../limits.ts'
import { type Channel, rowsChunk, type StreamSnapshot, singleSnapshot } from './channel.ts'
import { type Chunk, ChunkCache, type StreamPosition } from './chunk.ts'
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

  /** Any position of this run will do after which none was forgotten. */
  isLost({ seq, state }: StreamPosition): boolean {
    if (seq < this.#market.firstSeq || seq > this.#market.seq) return true
    return state === '' ? this.#log.forgottenSeq >= seq : this.#log.forgotten > Number(state)
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

  reopen(): StreamSnapshot {
    return singleSnapshot(this.#chunk('snapshot', this.#log.newest(SUBMISSIONS_SNAPSHOT_ROWS)))
  }

  #chunk(event: 'changes' | 'snapshot', rows: Buffer): Chunk {
    const { seq } = this.#market
    return rowsChunk(event, this.name, rows, { seq, barMs: 0, state: `${this.#log.count}` })
  }
}
