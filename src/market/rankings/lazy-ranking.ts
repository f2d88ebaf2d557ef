// In: ids whose keys change, again and again. Out: any page of them in order, exact whenever it is read. A change is noted
// and carried out when somebody looks where it matters, or when enough have gathered to be carried out at once: an id
// that changes a hundred times meanwhile moves once. Never holds more than a fixed number of notes.
import { Ranking, type RankingSnapshot } from './ranking.ts'

/** Noted changes of a kind; at the maximum all are carried out. Bounds what the next reader may have to wait for. */
export const NOTED_MAX = 8_192
/** At most this share of the list is noted: so a pass over it is shared by many, and most of a list lies below the top
 *  and all that may be noted meanwhile. */
const NOTED_SHARE = 1 / 4
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
const FRESH = 1
/** It stands below the floor, and will. */
const BELOW = 2
const MOVING = 3

export interface DeferredRankingOptions {
  /** Ids are below this. */
  capacity: number
  /** The newest key of each id. The caller writes it, then says `changed`. */
  keys: Float64Array
  /** True when `a` comes before `b` at equal keys. */
  before(a: number, b: number): boolean
  notedMax?: number
  topMax?: number
}

export class DeferredRanking {
  readonly #list: Ranking
  readonly #keys: Float64Array
  /** By id: the key it stands with in the list. */
  readonly #standing: Float64Array
  readonly #state: Uint8Array
  readonly #notedMax: number
  readonly #topMax: number
  readonly #fresh: Uint32Array
  #freshCount = 0
  /** May hold an id twice, or one that is noted elsewhere by now. */
  readonly #below: Uint32Array
  #belowCount = 0
  /** A key so deep that nothing below it can be in the top while it is only noted. */
  #floor = Number.NEGATIVE_INFINITY

  constructor(options: DeferredRankingOptions) {
    const { capacity, keys, before, notedMax = NOTED_MAX, topMax = TOP_MAX } = options
    this.#notedMax = notedMax
    this.#topMax = topMax
    this.#fresh = new Uint32Array(notedMax)
    this.#below = new Uint32Array(notedMax)
    this.#list = new Ranking(before)
    this.#keys = keys
    this.#standing = new Float64Array(capacity)
    this.#state = new Uint8Array(capacity)
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
    this.#state[id] = NOWHERE
    this.#list.remove(id, this.#standing[id])
  }

  /** The key of `id`, which stands here, has changed. */
  changed(id: number): void {
    const state = this.#state[id]
    if (state === FRESH || (state === BELOW && this.#keys[id] < this.#floor)) return
    this.#state[id] = FRESH
    this.#fresh[this.#freshCount++] = id
    if (this.#freshCount >= this.#room()) this.#settle()
  }

  /** How many changes of a kind may be noted now. */
  #room(): number {
    return Math.min(this.#notedMax, Math.max(MANY_MIN, this.#list.size * NOTED_SHARE))
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
    if (this.#freshCount + this.#belowCount === 0) return
    const room = this.#room()
    if (this.#belowCount === 0) this.#floor = this.#list.keyAt(this.#topMax + 2 * room)
    else if (this.#list.keyAt(count + this.#belowCount + this.#freshCount) < this.#floor) this.#settle()
    const floor = this.#floor
    for (let at = 0; at < this.#freshCount; at++) {
      const id = this.#fresh[at]
      if (this.#state[id] !== FRESH) continue
      if (this.#standing[id] < floor && this.#keys[id] < floor && this.#belowCount < room) {
        this.#state[id] = BELOW
        this.#below[this.#belowCount++] = id
      } else this.#move(id)
    }
    this.#freshCount = 0
    if (this.#belowCount >= room) this.#settle()
  }

  /** Carries out what was noted. */
  #settle(): void {
    if (this.#freshCount + this.#belowCount === 0) return
    const ids = this.#noted()
    if (ids.length < Math.max(MANY_MIN, this.#list.size * MANY_SHARE)) for (const id of ids) this.#move(id)
    else {
      for (const id of ids) this.#standing[id] = this.#keys[id]
      this.#list.updateMany(ids, this.#state, this.#keys)
      for (const id of ids) this.#state[id] = NOWHERE
    }
    this.#freshCount = 0
    this.#belowCount = 0
  }

  /** Every id that is noted, once. */
  #noted(): Uint32Array {
    const ids = new Uint32Array(this.#freshCount + this.#belowCount)
    let count = 0
    for (const noted of [
      this.#fresh.subarray(0, this.#freshCount),
      this.#below.subarray(0, this.#belowCount),
    ]) {
      for (const id of noted) {
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
    this.#list.update(id, this.#standing[id], this.#keys[id])
    this.#standing[id] = this.#keys[id]
  }
}
