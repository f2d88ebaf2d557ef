import type { Market } from '../../market/market.ts'
import type { DataPoint } from '../../schema/datapoint.ts'
import { NO_BYTES } from '../context.ts'
import { pickJson } from '../request/fields.ts'
import { type Channel, leftChunk, rowsChunk, type StreamSnapshot, singleSnapshot } from './channel.ts'
import { type Chunk, ChunkCache, positionAt, type StreamPosition } from './chunk.ts'

const NEWLINE = Buffer.from('\n')

/** One token: its DataPoint at each change of its row, and a message that it left once it was evicted. */
export class TokenChannel implements Channel {
  readonly name: string
  readonly key: string
  readonly isPaced = false
  readonly mint: string
  readonly #market: Market
  readonly #fields: readonly (keyof DataPoint)[] | null
  readonly #chunks = new ChunkCache()

  /** @param fields null: all */
  constructor(market: Market, mint: string, fields: readonly (keyof DataPoint)[] | null = null) {
    this.name = `token:${mint}`
    this.key = fields === null ? this.name : `${this.name} ${fields.join()}`
    this.#fields = fields
    this.mint = mint
    this.#market = market
  }

  /** Only the newest DataPoint is sent, so any position of this run will do. */
  isLost({ seq }: Pick<StreamPosition, 'seq'>): boolean {
    return seq < this.#market.firstSeq || seq > this.#market.seq
  }

  changes(position: StreamPosition): Chunk | null {
    if (!this.#market.has(this.mint)) return leftChunk(this.name, this.mint, position, this.#market.seq)
    const changedSeq = this.#market.changedSeq(this.mint)
    if (changedSeq <= position.seq) return null
    return this.#chunks.get(changedSeq, 0, () => this.#chunk('changes'))
  }

  reopen(): StreamSnapshot {
    return singleSnapshot(this.#chunk('snapshot'))
  }

  /** The newest DataPoint. */
  #chunk(event: 'changes' | 'snapshot'): Chunk {
    const found = this.#market.datapointJson(this.mint)
    const json = found && (this.#fields === null ? found.json : pickJson(found.json, this.#fields))
    const rows = json === null ? NO_BYTES : Buffer.concat([json, NEWLINE])
    return rowsChunk(event, this.name, rows, positionAt(this.#market.seq))
  }
}
