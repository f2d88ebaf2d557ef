// In: ids whose keys change, again and again. Out: any page of them in order, exact whenever it is read. A change is noted
// and carried out when somebody looks, or when enough have gathered: an id that changes a hundred times between two
// reads moves once. Never holds more than PENDING_MAX noted changes.
import { Ranking, type RankingSnapshot } from './ranking.ts'

/** Noted changes; at the maximum they are carried out. Bounds what the next reader may have to wait for. */
const PENDING_MAX = 2_048

export interface DeferredRankingOptions {
  /** Ids are below this. */
  capacity: number
  /** The newest key of each id. The caller writes it, then says `changed`. */
  keys: Float64Array
  /** True when `a` comes before `b` at equal keys. */
  before(a: number, b: number): boolean
}

export class DeferredRanking {
  readonly #list: Ranking
  readonly #keys: Float64Array
  /** By id: the key it stands with in the list. */
  readonly #standing: Float64Array
  /** By id: 1 while its change is noted only. */
  readonly #isPending: Uint8Array
  readonly #pending = new Uint32Array(PENDING_MAX)
  #pendingCount = 0

  constructor({ capacity, keys, before }: DeferredRankingOptions) {
    this.#list = new Ranking(before)
    this.#keys = keys
    this.#standing = new Float64Array(capacity)
    this.#isPending = new Uint8Array(capacity)
  }

  get size(): number {
    return this.#list.size
  }

  insert(id: number): void {
    this.#standing[id] = this.#keys[id]
    this.#list.insert(id, this.#keys[id])
  }

  remove(id: number): void {
    // Its note stays in the list of notes and is passed over there.
    this.#isPending[id] = 0
    this.#list.remove(id, this.#standing[id])
  }

  /** The key of `id`, which stands here, has changed. */
  changed(id: number): void {
    if (this.#isPending[id] === 1) return
    this.#isPending[id] = 1
    this.#pending[this.#pendingCount++] = id
    if (this.#pendingCount === PENDING_MAX) this.#settle()
  }

  /** The id at the lowest end, or -1. */
  last(): number {
    this.#settle()
    return this.#list.last()
  }

  /** Up to `limit` ids from `offset` on; ascending is the exact reverse of descending. */
  slice(offset: number, limit: number, descending: boolean): Uint32Array {
    this.#settle()
    return this.#list.slice(offset, limit, descending)
  }

  /** Freezes the present order. */
  snapshot(): RankingSnapshot {
    this.#settle()
    return this.#list.snapshot()
  }

  /** Carries out what was noted. */
  #settle(): void {
    if (this.#pendingCount === 0) return
    const noted = this.#pending.subarray(0, this.#pendingCount)
    for (const id of noted) {
      if (this.#isPending[id] === 0) continue
      this.#isPending[id] = 0
      this.#list.update(id, this.#standing[id], this.#keys[id])
      this.#standing[id] = this.#keys[id]
    }
    this.#pendingCount = 0
  }
}
