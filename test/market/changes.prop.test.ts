// Readers follow a market from position to position, and lose answers on the way. Each must end with exactly the tokens of its
// tab, each row as it is in the market.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { TABS, type Tab } from '../../src/schema/vocabulary.ts'

const MINTS = Array.from({ length: 9 }, (_, index) => mintOfSymbol(`token ${index}`))
const TOKENS_MAX = 5
const READERS = 4
const NEW_WINDOW_MS = 40
const FIRST_SEQ = 2 ** 52

const mint = fc.nat(MINTS.length - 1)
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ change: mint }) },
  { weight: 6, arbitrary: fc.record({ live: mint, isLive: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ graduated: mint }) },
  { weight: 2, arbitrary: fc.record({ waitMs: fc.nat(30) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      read: fc.nat(READERS - 1),
      rowsMax: fc.integer({ min: 1, max: 4 }),
      cutAfter: fc.nat(4),
    }),
  },
)

class Reader {
  readonly tab: Tab
  resyncs = 0
  #rows = new Map<string, Record<string, unknown>>()
  #seq: number

  constructor(tab: Tab, market: Market) {
    this.tab = tab
    this.#seq = market.seq
  }

  isUpToDate(market: Market): boolean {
    return this.#seq === market.seq
  }

  /** Takes the first `cutAfter` changes; the rest is lost on the way. */
  read(market: Market, rowsMax: number, cutAfter: number): void {
    if (this.#seq < market.oldestSince) {
      this.resyncs++
      this.#rows = rowsOf(market, this.tab)
      this.#seq = market.seq
      return
    }
    const { parts, nextSeq } = market.changesSince(this.#seq, this.tab, rowsMax)
    const entries = parts.flatMap((part) =>
      'left' in part
        ? [part]
        : part.rows
            .toString()
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line)),
    )
    expect(entries.length).toBeLessThanOrEqual(rowsMax)
    for (const entry of entries.slice(0, cutAfter)) this.#take(entry)
    if (cutAfter >= entries.length) this.#seq = nextSeq
  }

  #take({ seq, left, ...row }: { seq: number; left?: string; mint?: string }): void {
    expect(seq).toBeGreaterThan(this.#seq)
    this.#seq = seq
    if (left === undefined) this.#rows.set(row.mint!, row)
    else this.#rows.delete(left)
  }

  /** The rows of the tab; a row that left it shows so itself. */
  tokens(market: Market): Map<string, Record<string, unknown>> {
    const isMember = ({ is_currently_live, complete, created_timestamp }: Record<string, unknown>) =>
      this.tab === 'all' ||
      (this.tab === 'live' && is_currently_live) ||
      (this.tab === 'graduated' && complete) ||
      (this.tab === 'new' && market.timeMs - (created_timestamp as number) < NEW_WINDOW_MS)
    return new Map([...this.#rows].filter(([, row]) => isMember(row)))
  }
}

const rowsOf = (market: Market, tab: Tab) =>
  new Map(
    market
      .page({ tab, sort: 'hot', order: 'desc', offset: 0, limit: TOKENS_MAX })
      .lines.map((line) => JSON.parse(line.toString()))
      .map((row) => [row.mint as string, row as Record<string, unknown>]),
  )

/** @returns how often a reader was too far behind and began anew. */
function run(
  steps: object[],
  tabs: readonly Tab[],
  changeLogEntriesMax: number,
  evictionsMax: number,
): number {
  const market = new Market({
    tokensMax: TOKENS_MAX,
    newWindowMs: NEW_WINDOW_MS,
    changeLogEntriesMax,
    evictionsMax,
    firstSeq: FIRST_SEQ,
  })
  const readers = tabs.map((tab) => new Reader(tab, market))
  let ts = 1_000_000
  let name = 0
  for (const one of steps as Record<string, number>[]) {
    if ('change' in one)
      market.apply({ type: 'token', mint: MINTS[one.change], ts, name: `name ${++name}`, symbol: 'S' }, ts)
    if ('live' in one)
      market.apply({ type: 'live', mint: MINTS[one.live], ts, isLive: Boolean(one.isLive) }, ts)
    if ('graduated' in one) market.apply({ type: 'graduated', mint: MINTS[one.graduated], ts }, ts)
    if ('waitMs' in one) {
      ts += one.waitMs
      market.advanceTo(ts)
    }
    if ('read' in one) readers[one.read].read(market, one.rowsMax, one.cutAfter)
  }
  for (const reader of readers) {
    while (!reader.isUpToDate(market)) reader.read(market, 2, 2)
    expect(reader.tokens(market), reader.tab).toEqual(rowsOf(market, reader.tab))
  }
  return readers.reduce((sum, { resyncs }) => sum + resyncs, 0)
}

const steps = fc.array(step, { minLength: 50, maxLength: 400, size: 'max' })
const tabs = fc.array(fc.constantFrom(...TABS), { minLength: READERS, maxLength: READERS })

it('a reader who goes on from any position it was given misses nothing, evictions and tabs left included', () => {
  fc.assert(
    fc.property(steps, tabs, (steps, tabs) => {
      expect(run(steps, tabs, 4_096, 512)).toBe(0)
    }),
    { numRuns: 25 },
  )
})

it('a reader who is behind the oldest change or eviction held begins anew, and misses nothing either', () => {
  let resyncs = 0
  fc.assert(
    fc.property(
      steps,
      tabs,
      fc.constantFrom(8, 64),
      fc.constantFrom(1, 4),
      (steps, tabs, entries, departures) => {
        resyncs += run(steps, tabs, entries, departures)
      },
    ),
    { numRuns: 25 },
  )
  expect(resyncs).toBeGreaterThan(0)
})

it('readers of each tab that an evicted token was in get the eviction once, and no others do', () => {
  const market = new Market({ tokensMax: 2, firstSeq: FIRST_SEQ })
  const [a, b, c] = MINTS
  const live = (of: string, isLive: boolean) =>
    market.apply({ type: 'live', mint: of, ts: 1_000, isLive }, 1_000)
  live(a, true)
  const whileLive = market.seq
  live(a, false)
  const afterLive = market.seq
  live(b, false)
  live(c, false)
  const evicted = market.seq - 1
  const left = (since: number, tab: Tab) =>
    market.changesSince(since, tab, 10).parts.filter((part) => 'left' in part)
  expect(market.has(a)).toBe(false)
  expect(left(whileLive, 'all')).toEqual([{ left: a, seq: evicted }])
  // Its last row in the tab is gone, so the eviction stands in its place; a reader who has seen that row does not get it.
  expect(left(whileLive, 'live')).toEqual([{ left: a, seq: afterLive }])
  expect(left(afterLive, 'live')).toEqual([])
  expect(left(FIRST_SEQ, 'graduated')).toEqual([])
  expect(left(evicted, 'all')).toEqual([])
})
