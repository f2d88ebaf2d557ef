import { recordFrom } from '../../lib/record.ts'
import { numbersSection, type Saved, type Section, type SectionReader } from '../../lib/sections/sections.ts'
import {
  isFigureSort,
  KEPT_SORTS,
  type KeptSort,
  type Sort,
  TABS,
  type Tab,
} from '../../schema/vocabulary.ts'
import type { MarketTime } from '../time/market-time.ts'
import { KEY_UNKNOWN } from './chunk.ts'
import { sortSlots } from './figure-order.ts'
import { FigureOrders } from './figure-orders.ts'
import { LazyRanking } from './lazy-ranking.ts'
import type { ListFigures } from './list-figures.ts'
import type { MintOrder } from './mint-order.ts'

/** Each ranking holds so much less of the most pending changes than the one before: they do not all apply them at the same event. */
const PENDING_STEP = 1 / 32

const tabBit = (tab: Tab): number => 1 << TABS.indexOf(tab)

export interface RankingsOptions {
  tokensMax: number
  mintOrder: MintOrder
  figures: ListFigures
  time: MarketTime
}

/**
 * The tokens of each tab in order: always by the kept sorts, by a figure from when somebody asks for it. Tokens with equal keys are
 * ordered by mint.
 */
export class Rankings implements Saved {
  /** By sort and slot. */
  readonly #keys: Record<KeptSort, Float64Array>
  /** By slot: a bit for each tab that the token is in. */
  readonly #tabs: Uint8Array
  /** By a tab's index in TABS. */
  readonly #rankings: Record<KeptSort, LazyRanking[]>
  /** True when `a` comes before `b` at equal keys. */
  readonly #before: (a: number, b: number) => boolean
  /** By sort: a bit for each tab whose ranking holds its tokens. Until the first reader asks it does not: a market that is restored and
   *  brought up to date need not keep its lists in order meanwhile. */
  readonly #rankedTabs: Record<KeptSort, number>
  /** A token has a slot below this. */
  #slotsUsed = 0
  readonly figureOrders: FigureOrders

  constructor({ tokensMax, mintOrder, figures, time }: RankingsOptions) {
    const keys = recordFrom(KEPT_SORTS, () => new Float64Array(tokensMax))
    const before = (a: number, b: number) => mintOrder.isBefore(a, b)
    this.#before = before
    this.#keys = keys
    this.#tabs = new Uint8Array(tokensMax)
    this.#rankings = recordFrom(KEPT_SORTS, (sort, sortIndex) =>
      TABS.map((_, tabIndex) => {
        const pendingPart = 1 - PENDING_STEP * (tabIndex * KEPT_SORTS.length + sortIndex + 1)
        return new LazyRanking({ capacity: tokensMax, keys: keys[sort], before, pendingPart })
      }),
    )
    this.#rankedTabs = recordFrom(KEPT_SORTS, () => 0)
    this.figureOrders = new FigureOrders({
      capacity: tokensMax,
      slotsUsed: () => this.#slotsUsed,
      has: (slot, tab) => this.has(slot, tab),
      before,
      figures,
      time,
    })
  }

  /** Reads a number of each line of memory that a trade of the token touches first, see events/prefetch.ts. @returns their sum */
  prefetch(slot: number): number {
    return this.#keys.hot[slot] + this.#keys.market_cap[slot] + this.#tabs[slot]
  }

  of(tab: Tab, sort: Sort): LazyRanking {
    if (isFigureSort(sort)) return this.figureOrders.read(sort).of(tab)
    const tabIndex = TABS.indexOf(tab)
    if ((this.#rankedTabs[sort] & (1 << tabIndex)) === 0) this.#rank(tab, sort)
    return this.#rankings[sort][tabIndex]
  }

  has(slot: number, tab: Tab): boolean {
    return (this.#tabs[slot] & tabBit(tab)) !== 0
  }

  /** Changes when time alone has changed the order by a sort. */
  versionOf(sort: Sort): number {
    return isFigureSort(sort) ? this.figureOrders.read(sort).version : 0
  }

  /** The keys of a sort by slot. Valid until the next event. */
  keysOf(sort: Sort): Float64Array {
    return isFigureSort(sort) ? this.figureOrders.read(sort).keys : this.#keys[sort]
  }

  /** Puts slots in the order of a sort, in place. */
  sort(slots: Uint32Array, sort: Sort): Uint32Array {
    return sortSlots(slots, this.keysOf(sort), this.#before)
  }

  key(slot: number, sort: KeptSort): number {
    return this.#keys[sort][slot]
  }

  /** Adds a token to the tab `all`. */
  add(slot: number, keys: Record<KeptSort, number>): void {
    for (const sort of KEPT_SORTS) this.#keys[sort][slot] = keys[sort]
    this.#tabs[slot] = 0
    this.#slotsUsed = Math.max(this.#slotsUsed, slot + 1)
    this.setTab(slot, 'all', true)
  }

  *save(slotsUsed: number): Iterable<Section> {
    for (const sort of KEPT_SORTS)
      yield numbersSection(`rankings.${sort}`, this.#keys[sort].subarray(0, slotsUsed))
    yield numbersSection('rankings.tabs', this.#tabs.subarray(0, slotsUsed))
  }

  /** The rankings follow from keys and tabs. */
  restore(sections: SectionReader, slotsUsed: number): void {
    for (const sort of KEPT_SORTS) sections.fill(`rankings.${sort}`, this.#keys[sort].subarray(0, slotsUsed))
    sections.fill('rankings.tabs', this.#tabs.subarray(0, slotsUsed))
    this.#slotsUsed = slotsUsed
  }

  /** Makes all rankings, as the first reader of each would: for 100 000 tokens that takes a quarter of a second. It yields after
   *  each. No event may come meanwhile. */
  *ranking(): Iterable<void> {
    for (const tab of TABS)
      for (const sort of KEPT_SORTS) {
        this.of(tab, sort)
        yield
      }
  }

  #rank(tab: Tab, sort: KeptSort): void {
    const keys = this.#keys[sort]
    const members: number[] = []
    for (let slot = 0; slot < this.#tabs.length; slot++) if (this.has(slot, tab)) members.push(slot)
    const ranked = sortSlots(Uint32Array.from(members), keys, this.#before)
    this.#rankings[sort][TABS.indexOf(tab)].insertSorted(ranked)
    this.#rankedTabs[sort] |= tabBit(tab)
  }

  /** Takes a token out of all tabs. */
  remove(slot: number): void {
    for (const tab of TABS) this.setTab(slot, tab, false)
  }

  setTab(slot: number, tab: Tab, isMember: boolean): void {
    if (this.has(slot, tab) === isMember) return
    this.#tabs[slot] ^= tabBit(tab)
    this.figureOrders.setTab(slot, tab, isMember)
    for (const sort of KEPT_SORTS) {
      if ((this.#rankedTabs[sort] & tabBit(tab)) === 0) continue
      const ranking = this.#rankings[sort][TABS.indexOf(tab)]
      if (isMember) ranking.insert(slot)
      else ranking.remove(slot)
    }
  }

  /** @param key NaN for unknown. */
  setKey(slot: number, sort: KeptSort, key: number): void {
    const ranked = Number.isNaN(key) ? KEY_UNKNOWN : key
    if (ranked === this.#keys[sort][slot]) return
    this.#keys[sort][slot] = ranked
    const tabs = this.#tabs[slot] & this.#rankedTabs[sort]
    for (let index = 0; index < TABS.length; index++) {
      if ((tabs & (1 << index)) !== 0) this.#rankings[sort][index].changed(slot)
    }
  }
}
