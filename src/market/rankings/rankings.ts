import { recordFrom } from '../../lib/record.ts'
import { SORTS, type Sort, TABS, type Tab } from '../../schema/vocabulary.ts'
import { numbersSection, type Saved, type Section, type SectionReader } from '../checkpoint/sections.ts'
import { LazyRanking, PENDING_MAX } from './lazy-ranking.ts'
import type { MintOrder } from './mint-order.ts'

/** Ranks behind every known key. */
export const KEY_UNKNOWN = Number.NEGATIVE_INFINITY

/** The rankings hold different numbers of pending changes, so that they do not all apply them at the same event. */
const PENDING_STEP = 256

const tabBit = (tab: Tab): number => 1 << TABS.indexOf(tab)

/** One ranking of tokens for each tab and sort. Tokens with equal keys are ordered by mint. */
export class Rankings implements Saved {
  /** By sort and slot. */
  readonly #keys: Record<Sort, Float64Array>
  /** By slot: a bit for each tab that the token is in. */
  readonly #tabs: Uint8Array
  readonly #rankings: Record<Tab, Record<Sort, LazyRanking>>
  /** True when `a` comes before `b` at equal keys. */
  readonly #before: (a: number, b: number) => boolean
  /** The same rankings, by a tab's index in TABS. */
  readonly #byTabIndex: Record<Sort, LazyRanking[]>
  /** By sort: a bit for each tab whose ranking holds its tokens. Until the first reader asks it does not: a market that is restored and
   *  brought up to date need not keep its lists in order meanwhile. */
  readonly #rankedTabs: Record<Sort, number>

  constructor(tokensMax: number, mintOrder: MintOrder) {
    const keys = recordFrom(SORTS, () => new Float64Array(tokensMax))
    const before = (a: number, b: number) => mintOrder.isBefore(a, b)
    this.#before = before
    let pendingMax = PENDING_MAX
    const rankings = recordFrom(TABS, () =>
      recordFrom(SORTS, (sort) => {
        pendingMax -= PENDING_STEP
        return new LazyRanking({ capacity: tokensMax, keys: keys[sort], before, pendingMax })
      }),
    )
    this.#keys = keys
    this.#tabs = new Uint8Array(tokensMax)
    this.#rankings = rankings
    this.#rankedTabs = recordFrom(SORTS, () => 0)
    this.#byTabIndex = recordFrom(SORTS, (sort) => TABS.map((tab) => rankings[tab][sort]))
  }

  of(tab: Tab, sort: Sort): LazyRanking {
    if ((this.#rankedTabs[sort] & tabBit(tab)) === 0) this.#rank(tab, sort)
    return this.#rankings[tab][sort]
  }

  has(slot: number, tab: Tab): boolean {
    return (this.#tabs[slot] & tabBit(tab)) !== 0
  }

  key(slot: number, sort: Sort): number {
    return this.#keys[sort][slot]
  }

  /** Adds a token to the tab `all`. */
  add(slot: number, keys: Record<Sort, number>): void {
    for (const sort of SORTS) this.#keys[sort][slot] = keys[sort]
    this.#tabs[slot] = 0
    this.setTab(slot, 'all', true)
  }

  *save(slotsUsed: number): Iterable<Section> {
    for (const sort of SORTS)
      yield numbersSection(`rankings.${sort}`, this.#keys[sort].subarray(0, slotsUsed))
    yield numbersSection('rankings.tabs', this.#tabs.subarray(0, slotsUsed))
  }

  /** The rankings follow from keys and tabs. */
  restore(sections: SectionReader, slotsUsed: number): void {
    for (const sort of SORTS) sections.fill(`rankings.${sort}`, this.#keys[sort].subarray(0, slotsUsed))
    sections.fill('rankings.tabs', this.#tabs.subarray(0, slotsUsed))
  }

  /** Makes all rankings, as the first reader of each would: for 100 000 tokens that takes a quarter of a second. */
  rank(): void {
    for (const _ of this.ranking());
  }

  /** The same, and yields after each ranking. No event may come meanwhile. */
  *ranking(): Iterable<void> {
    for (const tab of TABS)
      for (const sort of SORTS) {
        this.of(tab, sort)
        yield
      }
  }

  #rank(tab: Tab, sort: Sort): void {
    const keys = this.#keys[sort]
    const members: number[] = []
    for (let slot = 0; slot < this.#tabs.length; slot++) if (this.has(slot, tab)) members.push(slot)
    const slots = Uint32Array.from(members)
    slots.sort((a, b) => (keys[a] === keys[b] ? (a !== b && this.#before(a, b) ? -1 : 1) : keys[b] - keys[a]))
    this.#rankings[tab][sort].insertSorted(slots)
    this.#rankedTabs[sort] |= tabBit(tab)
  }

  /** Takes a token out of all tabs. */
  remove(slot: number): void {
    for (const tab of TABS) this.setTab(slot, tab, false)
  }

  setTab(slot: number, tab: Tab, isMember: boolean): void {
    if (this.has(slot, tab) === isMember) return
    this.#tabs[slot] ^= tabBit(tab)
    for (const sort of SORTS) {
      if ((this.#rankedTabs[sort] & tabBit(tab)) === 0) continue
      const ranking = this.#rankings[tab][sort]
      if (isMember) ranking.insert(slot)
      else ranking.remove(slot)
    }
  }

  /** @param key NaN for unknown. */
  setKey(slot: number, sort: Sort, key: number): void {
    const ranked = Number.isNaN(key) ? KEY_UNKNOWN : key
    if (ranked === this.#keys[sort][slot]) return
    this.#keys[sort][slot] = ranked
    const tabs = this.#tabs[slot] & this.#rankedTabs[sort]
    for (let index = 0; index < TABS.length; index++) {
      if ((tabs & (1 << index)) !== 0) this.#byTabIndex[sort][index].changed(slot)
    }
  }
}
