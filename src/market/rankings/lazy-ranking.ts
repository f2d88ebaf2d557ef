import { Ranking, type RankingSnapshot } from './ranking.ts'

/** The most pending changes of each kind, dirty and below the floor; at the maximum all are applied. Bounds what a reader may have
 *  to wait for. */
const PENDING_MAX = 8_192
/** The most pending changes as a share of the list, so that most of the list lies below the top and everything pending. */
const PENDING_SHARE = 1 / 4
/** From this share of the list on, changes are applied in one pass over it. */
const MANY_SHARE = 1 / 64
/** Fewer changes than this are applied one by one, whatever their share: a pass allocates new chunks, too much for a small list. */
const MANY_MIN = 8
/** Pages that end within this many places are the top: they are read without applying changes far below them. */
const TOP_MAX = 1_024

// States of an id; see LazyRanking.
const CLEAN = 0
const DIRTY = 1
const BELOW_FLOOR = 2
const MOVING = 3

export interface LazyRankingOptions {
  /** Ids are below this. */
  capacity: number
  /** The newest key of each id. The caller writes it, then calls `changed`. */
  keys: Float64Array
  /** True when `a` comes before `b` at equal keys. */
  before(a: number, b: number): boolean
  pendingMax?: number
  /** Which part of the most pending changes may be pending here, of a short list too. */
  pendingPart?: number
  topMax?: number
}

/**
 * A ranking whose keys change far more often than it is read. A change is only noted; it is applied when a reader needs it, or
 * together with others when many are pending. An id that changes a hundred times in between moves once. Every read is exact.
 *
 * Most reads want the top. They apply only changes that can affect it: below the floor, a key deep in the list, a change from one
 * key to another leaves the top as it is. The states of an id:
 *
 *            changed()                      read of the top, old and new key below the floor
 *   CLEAN ───────────────► DIRTY ─────────────────────────────────────────────► BELOW_FLOOR
 *     ▲                     │  ▲                                                    │   │
 *     │   read of the top,  │  └──────── changed() to a key above the floor ────────┘   │
 *     ├─────────────────────┘                                                           │
 *     │        any other read, or too many are pending (MOVING during the pass)         │
 *     └─────────────────────────────────────────────────────────────────────────────────┘
 *
 * The floor is chosen when no id is below it, so deep that the top and as many ids as may become pending lie above it. It stays
 * until all changes are applied.
 */
export class LazyRanking {
  readonly #list: Ranking
  readonly #keys: Float64Array
  /** By id: the key that it has in the list. */
  readonly #indexedKeys: Float64Array
  /** By id. */
  readonly #state: Uint8Array
  readonly #pendingMax: number
  readonly #pendingShare: number
  readonly #topMax: number
  readonly #dirty: Uint32Array
  #dirtyCount = 0
  /** As `#dirty`, may hold an id twice, or one that has another state by now. */
  readonly #belowFloor: Uint32Array
  #belowFloorCount = 0
  #floor = Number.NEGATIVE_INFINITY

  constructor(options: LazyRankingOptions) {
    const { capacity, keys, before, pendingPart = 1, topMax = TOP_MAX } = options
    const pendingMax = Math.ceil((options.pendingMax ?? PENDING_MAX) * pendingPart)
    this.#pendingMax = pendingMax
    this.#pendingShare = PENDING_SHARE * pendingPart
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

  /** Inserts ids, which are in order, into a list that is empty. */
  insertSorted(ids: Uint32Array): void {
    for (const id of ids) this.#indexedKeys[id] = this.#keys[id]
    this.#list.insertSorted(ids, this.#keys)
  }

  remove(id: number): void {
    // It may stay in the lists of pending ids, which are checked against the state.
    this.#state[id] = CLEAN
    this.#list.remove(id, this.#indexedKeys[id])
  }

  /** The key of `id`, which is in the list, has changed. */
  changed(id: number): void {
    const state = this.#state[id]
    if (state === DIRTY || (state === BELOW_FLOOR && this.#keys[id] < this.#floor)) return
    this.#state[id] = DIRTY
    this.#dirty[this.#dirtyCount++] = id
    if (this.#dirtyCount >= this.#pendingLimit()) this.#applyAll()
  }

  /** How many changes of each kind may be pending now. */
  #pendingLimit(): number {
    const share = Math.floor(this.#list.size * this.#pendingShare)
    return Math.min(this.#pendingMax, Math.max(MANY_MIN, share))
  }

  /** The id at the lowest end, or -1. */
  last(): number {
    this.#applyAll()
    return this.#list.last()
  }

  /** See `sliceChunks`. */
  slice(offset: number, limit: number, descending: boolean): Uint32Array {
    if (descending && offset + limit <= this.#topMax) this.#applyTop(offset + limit)
    else this.#applyAll()
    return this.#list.slice(offset, limit, descending)
  }

  /** Freezes the present order. */
  snapshot(): RankingSnapshot {
    this.#applyAll()
    return this.#list.snapshot()
  }

  /**
   * Applies the pending changes that can affect the first `count` places. An id whose old and new keys are below the floor cannot,
   * while at least `count` entries that are not pending are at or above the floor.
   */
  #applyTop(count: number): void {
    if (this.#dirtyCount + this.#belowFloorCount === 0) return
    const pendingLimit = this.#pendingLimit()
    if (this.#belowFloorCount === 0) this.#floor = this.#list.keyAt(this.#topMax + 2 * pendingLimit)
    else if (this.#list.keyAt(count + this.#belowFloorCount + this.#dirtyCount) < this.#floor)
      this.#applyAll()
    const floor = this.#floor
    for (let at = 0; at < this.#dirtyCount; at++) {
      const id = this.#dirty[at]
      if (this.#state[id] !== DIRTY) continue
      if (this.#indexedKeys[id] < floor && this.#keys[id] < floor && this.#belowFloorCount < pendingLimit) {
        this.#state[id] = BELOW_FLOOR
        this.#belowFloor[this.#belowFloorCount++] = id
      } else this.#apply(id)
    }
    this.#dirtyCount = 0
    if (this.#belowFloorCount >= pendingLimit) this.#applyAll()
  }

  /** Applies all pending changes. */
  #applyAll(): void {
    if (this.#dirtyCount + this.#belowFloorCount === 0) return
    const ids = this.#takePending()
    if (ids.length < Math.max(MANY_MIN, this.#list.size * MANY_SHARE)) for (const id of ids) this.#apply(id)
    else {
      for (const id of ids) this.#indexedKeys[id] = this.#keys[id]
      this.#list.updateMany(ids, this.#state, this.#keys)
      for (const id of ids) this.#state[id] = CLEAN
    }
    this.#dirtyCount = 0
    this.#belowFloorCount = 0
  }

  /** All pending ids, each once and in the state MOVING. */
  #takePending(): Uint32Array {
    const ids = new Uint32Array(this.#dirtyCount + this.#belowFloorCount)
    let count = 0
    for (const pending of [
      this.#dirty.subarray(0, this.#dirtyCount),
      this.#belowFloor.subarray(0, this.#belowFloorCount),
    ]) {
      for (const id of pending) {
        // The lists may hold removed ids, which are CLEAN, and an id twice, which is MOVING at the second time.
        if (this.#state[id] === CLEAN || this.#state[id] === MOVING) continue
        this.#state[id] = MOVING
        ids[count++] = id
      }
    }
    return ids.subarray(0, count)
  }

  #apply(id: number): void {
    this.#state[id] = CLEAN
    this.#list.update(id, this.#indexedKeys[id], this.#keys[id])
    this.#indexedKeys[id] = this.#keys[id]
  }
}
