// Filtered lists against a filter that reads every token, over random names in many scripts, renames, evictions and analyses.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { RANKED_PER_READ_MAX } from '../../src/market/rankings/limits.ts'
import { SEARCH_PENDING_MAX } from '../../src/market/tokens/limits.ts'
import type { FrozenList, ListFilter } from '../../src/market/types.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import type { MarketItem } from '../../src/schema/market-item.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { ORDERS, SORTS, TABS } from '../../src/schema/vocabulary.ts'

const START_MS = 1_772_000_000_000
const RUNS = Number(process.env.MINTLAKE_TEST_RUNS ?? 25)
/** More tokens than share a text of the index, and fewer than there are mints. */
const TOKENS_MAX = 70
/** With little to allocate, since there are many such markets. */
const SMALL = { tokensMax: TOKENS_MAX, barsPerTokenMax: 64, changeLogEntriesMax: 1_024 }
const MINTS = Array.from({ length: 90 }, (_, index) => mintOfSymbol(`mint ${index}`))
const NAMES = [
  ...[
    'Soggy Narwhal',
    'SOGGY',
    'soggy-narwhal_coin',
    'Narwhal Soggy',
    '$WIF',
    'dog wif hat',
    'Ｗｉｆ',
    'a',
    'A1 b2',
  ],
  ...[
    'Straße',
    'ﬁne',
    'ΟΔΟΣ',
    'ΟΔΟΣΑΒ',
    'pépé',
    'pe\u0301pe\u0301',
    'İstanbul',
    '狗狗币',
    'ｶﾞ',
    '½',
    'नमस्ते',
    '🚀moon',
    '🇺🇸',
    '❤️',
  ],
  ...['👨‍👩‍👧', '???', ' ', '', '\ud800x', 'x\udc00', 'new\nline', '{"meta":{"x":1}}', 'ﷺ'.repeat(100)],
]

/** The words of a text, character by character. */
function wordsOf(text: string): string[] {
  const words: string[] = []
  let isOpen = false
  for (const character of text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ')) {
    const isStart = /[\p{L}\p{N}]/u.test(character)
    if (isOpen && (isStart || /\p{M}/u.test(character))) words[words.length - 1] += character
    else if (isStart || /\p{So}/u.test(character)) words.push(character)
    isOpen = isStart || (isOpen && /\p{M}/u.test(character))
  }
  return words
}

function finds(text: string, search: string): boolean {
  const [words, wanted] = [wordsOf(text), wordsOf(search)]
  return words.some((_, from) =>
    wanted.every((word, at) => {
      const found = words[from + at] ?? ''
      return at === wanted.length - 1 ? found.startsWith(word) : found === word
    }),
  )
}

const passes = ({ search, analysesMax }: ListFilter, { mint, name, symbol, analysis_count }: MarketItem) =>
  (search === null || [mint, name, symbol].some((text) => finds(text, search))) &&
  (analysesMax === null || analysis_count <= analysesMax)

const mint = fc.constantFrom(...MINTS)
const name = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...NAMES) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
)
const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('token'), mint, name, symbol: name }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('patch'),
      mint,
      fields: fc.record({ name, symbol: name, holderCount: fc.nat(9) }, { requiredKeys: [] }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('analysisCount'), mint, count: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('live'), mint, isLive: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('trade'),
      mint,
      side: fc.constant('buy'),
      tokenAmount: fc.constantFrom(1, 10, 100),
      priceUsd: fc.constant(1),
    }),
  },
)
/** Searches that begin a word of some text, or nearly do, or have none: every token has those. */
const search = fc
  .oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(fc.constantFrom(...NAMES, MINTS[0]), fc.nat(9), fc.integer({ min: 1, max: 14 })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.string({ unit: 'grapheme', maxLength: 6 }), fc.constant(0), fc.constant(6)),
    },
  )
  .map(([text, from, length]) => text.slice(from, from + length))
const filter: fc.Arbitrary<ListFilter> = fc.record({
  search: fc.option(search),
  analysesMax: fc.option(fc.nat(3)),
})

function apply(market: Market, events: readonly object[]): void {
  for (const fields of events) {
    const event = { ...fields, ts: market.timeMs } as MarketEvent
    market.apply(event, market.timeMs)
  }
}

const rowsOf = (ndjson: Buffer): MarketItem[] =>
  ndjson
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
const mintsOf = (list: FrozenList, offset = 0, limit = 1_000, order: 'asc' | 'desc' = 'desc') =>
  rowsOf(list.page(order, offset, limit).ndjson).map(({ mint }) => mint)

it('a filtered list is its tab’s tokens that pass, in their order, and every page a part of it', () => {
  const property = fc.property(
    fc.nat(MINTS.length),
    fc.array(fc.tuple(event, fc.option(filter)), { minLength: 1, maxLength: 40 }),
    fc.record({
      tab: fc.constantFrom(...TABS),
      sort: fc.constantFrom(...SORTS),
      order: fc.constantFrom(...ORDERS),
    }),
    fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 5 })),
    (count, steps, { tab, sort, order }, [offset, limit]) => {
      const market = new Market(SMALL)
      market.advanceTo(START_MS)
      apply(
        market,
        MINTS.slice(0, count).map((mint, at) => ({
          type: 'token',
          mint,
          name: NAMES[at % NAMES.length],
          symbol: 'S',
        })),
      )
      for (const [change, filter] of steps) {
        apply(market, [change])
        if (filter === null) continue
        const list = market.freeze(tab, sort, filter)
        const all = rowsOf(market.page({ tab, sort, order, offset: 0, limit: 1_000 }).ndjson)
        const expected = all.filter((row) => passes(filter, row)).map(({ mint }) => mint)
        expect(mintsOf(list, 0, 1_000, order), JSON.stringify(filter)).toEqual(expected)
        expect(mintsOf(list, offset, limit, order)).toEqual(expected.slice(offset, offset + limit))
        expect([list.size, list.page(order, offset, limit).total]).toEqual([expected.length, expected.length])
      }
    },
  )
  fc.assert(property, { numRuns: RUNS })
})

it('a frozen list keeps its tokens and their order, whatever happens, but for those that are evicted', () => {
  const property = fc.property(fc.array(event, { maxLength: 60 }), filter, (events, filter) => {
    const market = new Market(SMALL)
    market.advanceTo(START_MS)
    apply(
      market,
      MINTS.slice(0, 60).map((mint, at) => ({
        type: 'token',
        mint,
        name: NAMES[at % NAMES.length],
        symbol: 'S',
      })),
    )
    const list = market.freeze('all', 'hot', filter)
    const before = mintsOf(list)
    apply(market, events)
    // A mint that was evicted and came back is another entry of the market.
    const evicted = market.stats().evicted
    const after = mintsOf(list)
    expect(before.filter((mint) => after.includes(mint))).toEqual(after)
    expect(before.length - after.length).toBeLessThanOrEqual(evicted)
    expect(list.size).toBe(before.length)
  })
  fc.assert(property, { numRuns: RUNS })
})

it('a search finds what was created and renamed since the last one, however much that is', () => {
  const tokens = 3 * SEARCH_PENDING_MAX
  const market = new Market({ tokensMax: tokens })
  market.advanceTo(START_MS)
  const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`many ${index}`))
  const rename = (prefix: string) =>
    apply(
      market,
      mints.map((mint, index) => ({
        type: 'token',
        mint,
        name: `${prefix} ${index}`,
        symbol: `${prefix}${index}`,
      })),
    )
  const found = (search: string) => market.freeze('all', 'hot', { search, analysesMax: null }).size
  for (const prefix of ['first', 'second']) {
    rename(prefix)
    expect([found(prefix), found(`${prefix} 100`), found(`${prefix} 1535`), found('third')]).toEqual([
      tokens,
      11,
      1,
      0,
    ])
  }
  expect(found('first')).toBe(0)
})

it.each([
  ['Soggy Narwhal', 'SOGGY nar', true],
  ['Soggy Narwhal', 'soggy, narwhal!', true],
  ['Soggy Narwhal', 'sog nar', false],
  ['Soggy Narwhal', 'arwhal', false],
  ['Soggy Narwhal', 'symbol soggy', false],
  ['ΟΔΟΣΑΒ', 'ΟΔΟΣ', true],
  ['$WIF', 'ｗｉｆ', true],
  ['moon🚀', '🚀', true],
  ['❤️ love', '❤ LOVE', true],
  ['pépé', 'pe\u0301p', true],
  ['狗狗币', '狗狗', true],
  ['without a word', '!!', true],
])('the name %j is found by %j: %j', (name, search, isFound) => {
  const market = new Market({ tokensMax: TOKENS_MAX })
  apply(market, [{ type: 'token', mint: MINTS[0], name, symbol: 'SYMBOL' }])
  expect(market.freeze('all', 'hot', { search, analysesMax: null }).size).toBe(isFound ? 1 : 0)
})

it('a mint is found by its beginning, in any case', () => {
  const market = new Market({ tokensMax: TOKENS_MAX })
  apply(market, [{ type: 'token', mint: MINTS[0], name: 'N', symbol: 'S' }])
  const found = (search: string) => market.freeze('all', 'hot', { search, analysesMax: null }).size
  for (const search of [MINTS[0], MINTS[0].slice(0, 5), MINTS[0].toUpperCase()]) expect(found(search)).toBe(1)
  expect(found(MINTS[0].slice(1))).toBe(0)
})

it('a filtered list that rises ends with the tokens whose figure is not known, also where time has moved more than are ranked at once', () => {
  const count = 2 * RANKED_PER_READ_MAX + 1_000
  const mints = Array.from({ length: count }, (_, index) => mintOfSymbol(`moved ${index}`))
  const market = new Market({ tokensMax: count })
  const startMs = Math.ceil(START_MS / 60_000) * 60_000
  const buyAll = (ts: number, priceOf: (index: number) => number) => {
    for (const [index, mint] of mints.entries())
      market.apply({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: priceOf(index) }, ts)
  }
  buyAll(startMs, () => 1)
  buyAll(startMs + 120_000, (index) => 1 + ((index * 7_919) % count) / 1_000)
  // Somebody follows the change of five minutes, which nobody knows yet.
  expect(market.freeze('all', 'change_5m').size).toBe(count)
  market.advanceTo(startMs + 330_000)
  const list = market.freeze('all', 'change_5m', { search: null, analysesMax: 1 })
  const fields = { key: 'change', fields: ['change_5m'] } as const
  const changes = list.page('asc', 0, 1_000, fields).lines.map((line) => JSON.parse(`${line}`).change_5m)
  expect(changes).toEqual(changes.toSorted((a, b) => a - b))
})
