import { TABS, type Tab } from '../../schema/vocabulary.ts'
import { KEY_UNKNOWN } from './chunk.ts'
import { LazyRanking } from './lazy-ranking.ts'
import { RANKED_PER_READ_MAX } from './limits.ts'

/** What is known of a token's key. */
const CURRENT = 0
const CHANGED = 1
const MOVED = 2

export interface FigureOrderSources {
  capacity: number
  /** Slots from here on have never been used. */
  slotsUsed(): number
  has(slot: number, tab: Tab): boolean
  /** True when `a` comes before `b` at equal keys. */
  before(a: number, b: number): boolean
  /** A token's figure now; NaN for unknown. */
  value(slot: number): number
  /** Start of the figure's window now; 0: time alone does not move it. */
  fromMs(): number
  /** Whether time may have moved the figure of a token whose window began at `fromMs` before. */
  mayMove(slot: number, fromMs: number): boolean
  /** A number that no order had before. */
  nextVersion(): number
}

/**
 * The tokens by one figure, from its first reader on until nobody has read it for a while. An event costs a mark; figures are read
 * again when somebody reads the order. When the figure's window moves, tokens that traded in it are read again in small steps.
 */
export class FigureOrder {
  readonly #sources: FigureOrderSources
  /** By slot; KEY_UNKNOWN for unknown. */
  readonly keys: Float64Array
  readonly #state: Uint8Array
  /** By a tab's index in TABS; those that were asked for. */
  readonly #rankings: (LazyRanking | null)[] = TABS.map(() => null)
  readonly #changed: number[] = []
  /** Where the rest of `#moved` begins. */
  #movedAt = 0
  #moved: number[] = []
  #fromMs: number
  /** Another one whenever the passing of time has changed the order. */
  version: number
  /** Market time of its last reader. */
  usedAtMs: number

  constructor(sources: FigureOrderSources, nowMs: number) {
    this.#sources = sources
    this.keys = new Float64Array(sources.capacity)
    this.#state = new Uint8Array(sources.capacity)
    this.usedAtMs = nowMs
    this.version = sources.nextVersion()
    this.#fromMs = sources.fromMs()
    for (let slot = 0; slot < sources.slotsUsed(); slot++)
      this.keys[slot] = sources.has(slot, 'all') ? this.#read(slot) : KEY_UNKNOWN
  }

  /**
   * Before a read: all that events have changed is read again. Of what time has moved a part is, once at each market time, so that all
   * who read then find the same order.
   */
  settleForReader(nowMs: number): void {
    this.settle(nowMs === this.usedAtMs ? 0 : RANKED_PER_READ_MAX)
    this.usedAtMs = nowMs
  }

  /** The order of a tab. */
  of(tab: Tab): LazyRanking {
    const index = TABS.indexOf(tab)
    const ranking = this.#rankings[index] ?? this.#rank(tab)
    this.#rankings[index] = ranking
    return ranking
  }

  #rank(tab: Tab): LazyRanking {
    const { capacity, before, slotsUsed, has } = this.#sources
    const keys = this.keys
    const ranking = new LazyRanking({ capacity, keys, before })
    const slots: number[] = []
    for (let slot = 0; slot < slotsUsed(); slot++) if (has(slot, tab)) slots.push(slot)
    ranking.insertSorted(sortSlots(Uint32Array.from(slots), keys, before))
    return ranking
  }

  /** An event has changed the token. */
  changed(slot: number): void {
    if ((this.#state[slot] & CHANGED) !== 0) return
    this.#state[slot] |= CHANGED
    this.#changed.push(slot)
  }

  setTab(slot: number, tab: Tab, isMember: boolean): void {
    const ranking = this.#rankings[TABS.indexOf(tab)]
    if (tab === 'all') this.keys[slot] = KEY_UNKNOWN
    if (isMember) ranking?.insert(slot)
    else ranking?.remove(slot)
  }

  /** Reads the figures of all tokens that events have changed, and of at most `movedMax` that time has moved. */
  settle(movedMax: number): void {
    this.#findMoved()
    for (const slot of this.#changed) this.#update(slot)
    this.#changed.length = 0
    const end = Math.min(this.#moved.length, this.#movedAt + movedMax)
    for (; this.#movedAt < end; this.#movedAt++) {
      const slot = this.#moved[this.#movedAt]
      if ((this.#state[slot] & MOVED) !== 0 && this.#update(slot)) this.version = this.#sources.nextVersion()
    }
    if (this.#movedAt === this.#moved.length && this.#movedAt > 0) {
      this.#moved = []
      this.#movedAt = 0
    }
  }

  /** Where the figure's window has moved: collects the tokens that it concerns. */
  #findMoved(): void {
    const { fromMs, slotsUsed, mayMove } = this.#sources
    const now = fromMs()
    if (now === this.#fromMs) return
    for (let slot = 0; slot < slotsUsed(); slot++) {
      if (this.#state[slot] === CURRENT && mayMove(slot, this.#fromMs)) {
        this.#state[slot] = MOVED
        this.#moved.push(slot)
      }
    }
    this.#fromMs = now
  }

  /** @returns whether the key has changed. */
  #update(slot: number): boolean {
    this.#state[slot] = CURRENT
    if (!this.#sources.has(slot, 'all')) return false
    const key = this.#read(slot)
    if (key === this.keys[slot]) return false
    this.keys[slot] = key
    for (let index = 0; index < TABS.length; index++)
      if (this.#sources.has(slot, TABS[index])) this.#rankings[index]?.changed(slot)
    return true
  }

  #read(slot: number): number {
    const value = this.#sources.value(slot)
    return Number.isNaN(value) ? KEY_UNKNOWN : value
  }
}

/** Sorts slots by their keys, descending, in place. */
export const sortSlots = (
  slots: Uint32Array,
  keys: Float64Array,
  before: (a: number, b: number) => boolean,
): Uint32Array =>
  slots.sort((a, b) => (keys[a] === keys[b] ? (a !== b && before(a, b) ? -1 : 1) : keys[b] - keys[a]))
