// @module-tag drill
// Pages read while trades are pushed as fast as possible: each shows one version of its list, for any tab, sort,
// order, offset and format.
import { tableFromIPC } from 'apache-arrow'
import { unpack } from 'msgpackr'
import { afterEach, expect, it } from 'vitest'
import { random } from '../../../bench/datasets/random.ts'
import type { MarketItem } from '../../../src/schema/market-item.ts'
import {
  KEPT_SORTS,
  type KeptSort,
  ORDERS,
  type Order,
  TABS,
  type Tab,
} from '../../../src/schema/vocabulary.ts'
import { newMint } from '../../support/submission.ts'
import { checkedFetch, openTestServer, type TestServer } from '../../support/test-server.ts'

const TOKENS = 400
const BATCH = 200
const READS = 300
const READERS = 6
const ROWS = 50
const FORMATS = ['json', 'ndjson', 'msgpack', 'arrow'] as const

let server: TestServer
const mints = Array.from({ length: TOKENS }, newMint)
afterEach(() => server.remove())
const token = (mint: string, index: number) => ({
  type: 'token',
  mint,
  ts: Date.now() - index * 1_000,
  name: `Token ${index}`,
  symbol: 'T',
  totalSupply: 1_000_000,
})

/** Trades that reorder every list, and tokens that enter and leave tabs. Half of the events are on a tenth of the tokens. */
function batch(next: () => number): object[] {
  const ts = Date.now()
  return Array.from({ length: BATCH }, () => {
    const mint = mints[Math.floor(next() * (next() < 0.5 ? TOKENS / 10 : TOKENS))]
    if (next() < 0.1) return { type: 'live', mint, ts, isLive: next() < 0.5 }
    if (next() < 0.01) return { type: 'graduated', mint, ts }
    const priceUsd = 10 ** (next() * 6 - 6)
    return { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1 + next() * 1_000, priceUsd }
  })
}

/** Pushes one batch after another until `isOver`. */
async function storm(isOver: () => boolean): Promise<number> {
  const next = random(1)
  let pushed = 0
  for (; !isOver(); pushed += BATCH) await server.client.push(...batch(next))
  return pushed
}

const KEYS = {
  hot: (item: MarketItem) => item.hot_score,
  market_cap: (item: MarketItem) => item.usd_market_cap,
  created_timestamp: (item: MarketItem) => item.created_timestamp,
}
const BELONGS = {
  all: () => true,
  live: (item: MarketItem) => item.is_currently_live,
  new: () => true,
  graduated: (item: MarketItem) => item.complete,
}

/** The rows of a page in any format. */
function rowsOf(format: string, body: Buffer): MarketItem[] {
  if (format === 'json') return JSON.parse(body.toString()).data
  if (format === 'msgpack') return unpack(body).data
  if (format === 'arrow')
    return tableFromIPC(body)
      .toArray()
      .map((row) => row.toJSON() as MarketItem)
  return body
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

interface PageRead {
  tab: Tab
  sort: KeptSort
  order: Order
  offset: number
  format: string
}

/** Reads one page and checks it. @returns its version. */
async function check({ tab, sort, order, offset, format }: PageRead): Promise<number> {
  const query = `tab=${tab}&sort=${sort}&order=${order}&offset=${offset}&limit=${ROWS}&format=${format}`
  const response = await checkedFetch(`${server.url}/api/v1/market?${query}`)
  expect(response.status, query).toBe(200)
  const rows = rowsOf(format, Buffer.from(await response.arrayBuffer()))
  expect(rows, query).toHaveLength(Number(response.headers.get('x-result-count')))
  if (tab === 'all') expect(rows, query).toHaveLength(Math.min(ROWS, TOKENS - offset))
  expect(new Set(rows.map(({ mint }) => mint)).size, query).toBe(rows.length)
  expect(rows.every(BELONGS[tab]), query).toBe(true)
  // What is not known comes last in either order.
  const unknown = order === 'desc' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  const keys = rows.map((row) => KEYS[sort](row) ?? unknown)
  const sorted = keys.toSorted((a, b) => (order === 'desc' ? b - a : a - b))
  expect(keys, query).toEqual(sorted)
  return Number(response.headers.get('x-list-version'))
}

it.each([0, 20])(
  'under many pushes a page of at most %i ms of age shows one version of its list, sorted and without repeats, and versions never go back',
  async (pageAgeMs) => {
    server = await openTestServer({ 'page-age-ms': `${pageAgeMs}` })
    await server.client.push(...mints.map(token))
    const next = random(2)
    const pick = <Word>(words: readonly Word[]): Word => words[Math.floor(next() * words.length)]
    let isOver = false
    const pushed = storm(() => isOver)
    /** The newest version seen so far: of the same page, or of any page if answers are not cached. */
    const newest = new Map<string, number>()
    const seen = new Set<number>()
    const read = async () => {
      for (let count = 0; count < READS / READERS; count++) {
        const page = {
          tab: pick(TABS),
          sort: pick(KEPT_SORTS),
          order: pick(ORDERS),
          offset: pick([0, 0, 0, 7, TOKENS - 10]),
          format: pick(FORMATS),
        }
        const name = pageAgeMs === 0 ? 'any' : JSON.stringify(page)
        const floor = newest.get(name) ?? 0
        const version = await check(page)
        expect(version, name).toBeGreaterThanOrEqual(floor)
        newest.set(name, Math.max(version, newest.get(name) ?? 0))
        seen.add(version)
      }
    }
    try {
      await Promise.all(Array.from({ length: READERS }, read))
    } finally {
      isOver = true
    }
    expect(await pushed).toBeGreaterThan(BATCH * 10)
    expect(seen.size).toBeGreaterThan(10)
  },
)
