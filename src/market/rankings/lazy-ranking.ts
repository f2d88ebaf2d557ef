// In: ids whose keys change, again and again. Out: any page of them in order, exact whenever it is read. A change is noted
// and carried out when somebody looks where it matters, or when enough have gathered to be carried out at once: an id
// that changes a hundred times meanwhile moves once. Never holds more than a fixed number of notes.
import { Ranking, type RankingSnapshot } from './ranking.ts'

/** Noted changes of a kind; at the maximum all are carried out. Bounds what the next reader may have to wait for. */
export const PENDING_MAX = 8_192
/** At most this share of the list is noted: so a pass over it is shared by many, and most of a list lies below the top
 *  and all that may be noted meanwhile. */
const PENDING_SHARE = 1 / 4
/** From this share of the list on, changes are carried out in one pass over it. */
const MANY_SHARE = 1 / 64
/** Fewer than this go one by one whatever their share: a pass over the list makes its chunks anew, which a small list
 *  pays for in garbage. */
const MANY_MIN = 8
/** Pages up to this place are read without carrying out what happens far below them. */
const TOP_MAX = 1_024

/** By id: where its change is noted. */
const NOWHERE = 0
/** Not looked at yet. */
const DIRTY = 1
/** It stands below the floor, and will. */
const BELOW_FLOOR = 2
const MOVING = 3

export interface LazyRankingOptions {
  /** Ids are below this. */
  capacity: number
  /** The newest key of each id. The caller writes it, then says `changed`. */
  keys: Float64Array
  /** True when `a` comes before `b` at equal keys. */
  before(a: number, b: number): boolean
  pendingMax?: number
  topMax?: number
}

export class LazyRanking {
  readonly #list: Ranking
  readonly #keys: Float64Array
  /** By id: the key it stands with in the list. */
  readonly #indexedKeys: Float64Array
  readonly #state: Uint8Array
  readonly #pendingMax: number
  readonly #topMax: number
  readonly #dirty: Uint32Array
  #dirtyCount = 0
  /** May hold an id twice, or one that is noted elsewhere by now. */
  readonly #belowFloor: Uint32Array
  #belowFloorCount = 0
  /** A key so deep that nothing below it can be in the top while it is only noted. */
  #floor = Number.NEGATIVE_INFINITY

  constructor(options: LazyRankingOptions) {
    const { capacity, keys, before, pendingMax = PENDING_MAX, topMax = TOP_MAX } = options
    this.#pendingMax = pendingMax
    this.#topMax = topMax
    this.#dirty = new Uint32Array(pendingMax)
    this.#belowFloor = new Uint32Array(pendingMax)
    this.#list = new Ranking(before)
    this.#keys = keys
    this.#indexedKeys = new Float64Array(capacity)
    this.#state = new Uint8Array(capacity)
  }

  get size(): number {
    return this.#list.size
  }

  insert(id: number): void {
    this.#indexedKeys[id] = this.#keys[id]
    this.#list.insert(id, this.#keys[id])
  }

  remove(id: number): void {
    // Its note stays in the list of notes and is passed over there.
    this.#state[id] = NOWHERE
    this.#list.remove(id, this.#indexedKeys[id])
  }

  /** The key of `id`, which stands here, has changed. */
  changed(id: number): void {
    const state = this.#state[id]
    if (state === DIRTY || (state === BELOW_FLOOR && this.#keys[id] < this.#floor)) return
    this.#state[id] = DIRTY
    this.#dirty[this.#dirtyCount++] = id
    if (this.#dirtyCount >= this.#pendingLimit()) this.#settle()
  }

  /** How many changes of a kind may be noted now. */
  #pendingLimit(): number {
    return Math.min(this.#pendingMax, Math.max(MANY_MIN, this.#list.size * PENDING_SHARE))
  }

  /** The id at the lowest end, or -1. */
  last(): number {
    this.#settle()
    return this.#list.last()
  }

  /** Up to `limit` ids from `offset` on; ascending is the exact reverse of descending. */
  slice(offset: number, limit: number, descending: boolean): Uint32Array {
    if (descending && offset + limit <= this.#topMax) this.#settleTop(offset + limit)
    else this.#settle()
    return this.#list.slice(offset, limit, descending)
  }

  /** Freezes the present order. */
  snapshot(): RankingSnapshot {
    this.#settle()
    return this.#list.snapshot()
  }

  /**
   * Carries out what concerns the first `count` places: whoever is noted, stands below the floor and will stand below it
   * is not among them, now or then, while that many entries that are not noted are at or above the floor.
   */
  #settleTop(count: number): void {
    if (this.#dirtyCount + this.#belowFloorCount === 0) return
    const pendingLimit = this.#pendingLimit()
    if (this.#belowFloorCount === 0) this.#floor = this.#list.keyAt(this.#topMax + 2 * pendingLimit)
    else if (this.#list.keyAt(count + this.#belowFloorCount + this.#dirtyCount) < this.#floor) this.#settle()
    const floor = this.#floor
    for (let at = 0; at < this.#dirtyCount; at++) {
      const id = this.#dirty[at]
      if (this.#state[id] !== DIRTY) continue
      if (this.#indexedKeys[id] < floor && this.#keys[id] < floor && this.#belowFloorCount < pendingLimit) {
        this.#state[id] = BELOW_FLOOR
        this.#belowFloor[this.#belowFloorCount++] = id
      } else this.#move(id)
    }
    this.#dirtyCount = 0
    if (this.#belowFloorCount >= pendingLimit) this.#settle()
  }

  /** Carries out what was noted. */
  #settle(): void {
    if (this.#dirtyCount + this.#belowFloorCount === 0) return
    const ids = this.#pending()
    if (ids.length < Math.max(MANY_MIN, this.#list.size * MANY_SHARE)) for (const id of ids) this.#move(id)
    else {
      for (const id of ids) this.#indexedKeys[id] = this.#keys[id]
      this.#list.updateMany(ids, this.#state, this.#keys)
      for (const id of ids) this.#state[id] = NOWHERE
    }
    this.#dirtyCount = 0
    this.#belowFloorCount = 0
  }

  /** Every id that is noted, once. */
  #pending(): Uint32Array {
    const ids = new Uint32Array(this.#dirtyCount + this.#belowFloorCount)
    let count = 0
    for (const pending of [
      this.#dirty.subarray(0, this.#dirtyCount),
      this.#belowFloor.subarray(0, this.#belowFloorCount),
    ]) {
      for (const id of pending) {
        // One that was removed has no note; one that came back since, or rose and fell, has two.
        if (this.#state[id] === NOWHERE || this.#state[id] === MOVING) continue
        this.#state[id] = MOVING
        ids[count++] = id
      }
    }
    return ids.subarray(0, count)
  }

  #move(id: number): void {
    this.#state[id] = NOWHERE
    this.#list.update(id, this.#indexedKeys[id], this.#keys[id])
    this.#indexedKeys[id] = this.#keys[id]
  }
}
