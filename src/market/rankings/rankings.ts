// In: tokens, their keys and the tabs they belong to. Out: any page of any tab in any order. One ranking for each
// (tab, sort), kept in order as keys change. Never computes a key.
import { SORTS, type Sort, TABS, type Tab } from '../../schema/vocabulary.ts'
import { LazyRanking, PENDING_MAX } from './lazy-ranking.ts'

/** Ranks behind every known key. */
export const KEY_UNKNOWN = Number.NEGATIVE_INFINITY

/** Each ranking takes so many notes fewer than the one before: they do not all come due with the same change. */
const PENDING_STEP = 256

const tabBit = (tab: Tab): number => 1 << TABS.indexOf(tab)

export class Rankings {
  #keys: Record<Sort, Float64Array>
  #tabs: Uint8Array
  #rankings: Record<Tab, Record<Sort, LazyRanking>>

  /** The same, by a tab's place in TABS. */
  #byIndex: Record<Sort, LazyRanking[]>

  /** @param before the tie-breaker: true when token `a` comes before `b` at equal keys. */
  constructor(tokensMax: number, before: (a: number, b: number) => boolean) {
    const bySort = <Value>(make: (sort: Sort) => Value) =>
      Object.fromEntries(SORTS.map((sort) => [sort, make(sort)])) as Record<Sort, Value>
    this.#keys = bySort(() => new Float64Array(tokensMax))
    this.#tabs = new Uint8Array(tokensMax)
    let pendingMax = PENDING_MAX
    const ranking = (sort: Sort) => {
      pendingMax -= PENDING_STEP
      return new LazyRanking({ capacity: tokensMax, keys: this.#keys[sort], before, pendingMax })
    }
    this.#rankings = Object.fromEntries(TABS.map((tab) => [tab, bySort(ranking)])) as Record<
      Tab,
      Record<Sort, LazyRanking>
    >
    this.#byIndex = bySort((sort) => TABS.map((tab) => this.#rankings[tab][sort]))
  }

  of(tab: Tab, sort: Sort): LazyRanking {
    return this.#rankings[tab][sort]
  }

  has(slot: number, tab: Tab): boolean {
    return (this.#tabs[slot] & tabBit(tab)) !== 0
  }

  key(slot: number, sort: Sort): number {
    return this.#keys[sort][slot]
  }

  /** A new token, in the tab `all`. */
  add(slot: number, keys: Record<Sort, number>): void {
    for (const sort of SORTS) this.#keys[sort][slot] = keys[sort]
    this.#tabs[slot] = 0
    this.setTab(slot, 'all', true)
  }

  remove(slot: number): void {
    for (const tab of TABS) this.setTab(slot, tab, false)
  }

  setTab(slot: number, tab: Tab, belongs: boolean): void {
    if (this.has(slot, tab) === belongs) return
    this.#tabs[slot] ^= tabBit(tab)
    for (const sort of SORTS) {
      const ranking = this.#rankings[tab][sort]
      if (belongs) ranking.insert(slot)
      else ranking.remove(slot)
    }
  }

  setKey(slot: number, sort: Sort, key: number): void {
    const known = Number.isNaN(key) ? KEY_UNKNOWN : key
    if (known === this.#keys[sort][slot]) return
    this.#keys[sort][slot] = known
    const tabs = this.#tabs[slot]
    for (let index = 0; index < TABS.length; index++) {
      if ((tabs & (1 << index)) !== 0) this.#byIndex[sort][index].changed(slot)
    }
  }
}
