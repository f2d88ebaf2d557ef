// Reads change nothing: a market that was read between its events gives the same bytes at the end as one that was not.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { HOUR_MS } from '../../src/lib/time.ts'
import { Market } from '../../src/market/market.ts'
import { RANKED_PER_READ_MAX } from '../../src/market/rankings/limits.ts'
import type { FigureRange, Page, PageQuery } from '../../src/market/types.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { fewAndMany } from '../support/cases.ts'
import { KINDS, MINTS, READS } from './answers.ts'

const START_MS = 1_772_000_000_000
const RUNS = Number(process.env.MINTLAKE_TEST_RUNS ?? 25)

/** One token has most of the events, as differences show only where several events of a token come together. */
const mint = fc.oneof(
  { weight: 4, arbitrary: fc.constant(MINTS[0]) },
  { weight: 1, arbitrary: fc.constantFrom(...MINTS) },
)
/** Often across the end of an interval of a window, or of a window itself. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 1_500 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(300_000, 600_000, 900_000, 3_600_000, 21_600_000, 85_800_000, 86_400_000),
  },
)
/** Sums of these depend on the order in which they are added up. */
const amount = fc.constantFrom(0.1, 0.3, 0.7, 1 / 3)
const payload = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('trade' as const),
      mint,
      side: fc.constantFrom('buy' as const, 'sell' as const),
      tokenAmount: amount,
      priceUsd: amount,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('token' as const),
      mint,
      name: fc.constantFrom('A', 'B'),
      symbol: fc.constant('S'),
      totalSupply: fc.constantFrom(1e6, 1e9),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('patch' as const),
      mint,
      fields: fc.record(
        {
          volume1m: fc.option(amount),
          volume24h: fc.option(amount),
          buys24h: fc.option(fc.nat(9)),
          tradeRate1m: fc.option(fc.nat(9)),
          priceUsd: fc.option(amount),
          marketCap: fc.option(amount),
          solPriceUsd: fc.constantFrom(100, 150),
          liquidity: fc.option(amount),
        },
        { requiredKeys: [] },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('solPrice' as const), usd: fc.constantFrom(100, 150) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('graduated' as const), mint }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('live' as const), mint, isLive: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('analysisCount' as const), mint, count: fc.nat(9) }),
  },
)

const act = fc.record({ step, payload: fc.option(payload, { freq: 8 }), reads: fc.subarray(KINDS) })

function run(acts: { step: number; payload: object | null; reads: string[] }[], isRead: boolean): Market {
  // Fewer places than tokens: some give way and come back.
  const market = new Market({ tokensMax: 4, newWindowMs: 3_600_000, changeLogEntriesMax: 4_096 })
  let atMs = START_MS
  for (const { step, payload, reads } of acts) {
    atMs += step
    if (payload === null) market.advanceTo(atMs)
    else market.apply({ ...payload, ts: atMs } as MarketEvent, atMs)
    if (isRead) for (const kind of reads) READS[kind as keyof typeof READS](market)
  }
  return market
}

for (const { runs, tags } of fewAndMany(8, 60))
  it(`every answer is byte for byte the same with any reads before it as without them: ${runs} cases`, {
    tags,
  }, () => {
    fc.assert(
      fc.property(
        fc.array(act, { minLength: 1, maxLength: 40, size: 'max' }),
        fc.shuffledSubarray(KINDS, { minLength: KINDS.length }),
        (acts, order) => {
          const read = run(acts, true)
          const unread = run(acts, false)
          for (const kind of order)
            expect(JSON.stringify(READS[kind](read)), kind).toBe(JSON.stringify(READS[kind](unread)))
        },
      ),
      { numRuns: runs },
    )
  })

it('a page that says that its rows are current shows what a new page shows of each of them', () => {
  fc.assert(
    fc.property(fc.array(payload, { minLength: 1, maxLength: 40, size: 'max' }), (payloads) => {
      const market = new Market({ tokensMax: 3, newWindowMs: 3_600_000, changeLogEntriesMax: 4_096 })
      const query = { tab: 'all', sort: 'market_cap', order: 'desc', offset: 0 } as const
      const rows = () => market.page({ ...query, limit: 3 }).lines.map(String)
      const kept = []
      for (const event of payloads) {
        market.apply({ ...event, ts: START_MS } as MarketEvent, START_MS)
        kept.push(market.page({ ...query, limit: 2 }))
        const now = rows()
        for (const page of kept)
          if (page.isCurrent()) expect(page.lines.every((line) => now.includes(`${line}`))).toBe(true)
      }
      expect(kept.at(-1)?.isCurrent()).toBe(true)
    }),
    { numRuns: RUNS },
  )
})

it('a page or a list that says that it is the newest is what would be read now, after events and as time passes', () => {
  const done = fc.oneof(payload, step)
  fc.assert(
    fc.property(fc.array(done, { minLength: 1, maxLength: 40, size: 'max' }), (steps) => {
      const market = new Market({ tokensMax: 3, newWindowMs: 3_600_000, changeLogEntriesMax: 4_096 })
      const queries = (['all', 'new'] as const).flatMap((tab) =>
        (['hot', 'volume_1h', 'created_timestamp'] as const).map((sort) => ({
          ...{ tab, sort, order: 'desc', offset: 0, limit: 2 },
        })),
      ) as PageQuery[]
      const ranges = (['change_5m', 'volume_1h', 'age_ms'] as const).map((figure) => [
        { figure, min: 1, max: 400_000 },
      ])
      const filters = [null, ...ranges.map((each) => ({ search: null, analysesMax: null, ranges: each }))]
      const lists = queries.flatMap(({ tab, sort }) => filters.map((filter) => ({ tab, sort, filter })))
      const freeze = ({ tab, sort, filter }: (typeof lists)[number]) => market.freeze(tab, sort, filter)
      const told = ({ ndjson, total, contentVersion }: Page) => [`${ndjson}`, total, contentVersion]
      let nowMs = START_MS
      for (const act of steps) {
        const before = queries.map((query) => ({ query, page: market.page(query) }))
        const frozen = lists.map((asked) => ({ asked, list: freeze(asked) }))
        for (const { page } of before.filter(({ query }) => query.sort === 'hot'))
          expect(page.isNewest()).toBe(true)
        if (typeof act === 'number') {
          nowMs += act
          market.advanceTo(nowMs)
        } else market.apply({ ...act, ts: nowMs } as MarketEvent, nowMs)
        for (const { query, page } of before)
          if (page.isNewest()) expect(told(page)).toEqual(told(market.page(query)))
        for (const { asked, list } of frozen)
          if (list.isNewest())
            expect(told(list.page('desc', 0, 2))).toEqual(told(freeze(asked).page('desc', 0, 2)))
      }
    }),
    { numRuns: RUNS },
  )
})

it('all reads of one market time find the same order, also where time has moved more than are ranked at once', () => {
  const market = new Market({ tokensMax: 3 * RANKED_PER_READ_MAX })
  const startMs = Math.ceil(START_MS / HOUR_MS) * HOUR_MS
  for (let at = 0; at < 3 * RANKED_PER_READ_MAX; at++) {
    const mint = mintOfSymbol(`moved ${at}`)
    market.apply({ type: 'trade', mint, ts: startMs, side: 'buy', tokenAmount: 1, priceUsd: 1 + at }, startMs)
  }
  const query = { tab: 'all', sort: 'volume_1h', order: 'asc', limit: 1, offset: 0 } as const
  const read = () => {
    const page = market.page(query)
    const found = market.freeze('all', 'hot', {
      ...{ search: null, analysesMax: null, ranges: [{ figure: 'volume_1h', min: 1, max: null }] },
    })
    expect(page.isNewest()).toBe(true)
    return [`${page.ndjson}`, page.contentVersion, found.size]
  }
  // An order that nobody has read for a while is made anew, and exact.
  market.advanceTo(startMs + HOUR_MS - 1)
  const before = read()
  market.advanceTo(startMs + HOUR_MS)
  const reads = [read(), read(), read()]
  expect(reads[0]).not.toEqual(before)
  for (const again of reads) expect(again).toEqual(reads[0])
  // The others follow.
  for (const ms of [1, 2]) {
    market.advanceTo(startMs + HOUR_MS + ms)
    read()
  }
  expect(read()[2]).toBe(0)
})

it('a patched sum expires when its window moves, whether the list was read before or not', () => {
  const read = new Market({ tokensMax: 2 })
  const unread = new Market({ tokensMax: 2 })
  const patch: MarketEvent = { type: 'patch', mint: MINTS[0], ts: START_MS, fields: { volume24h: 9 } }
  const volumes = (market: Market) =>
    READS.pages(market).map(([ndjson]) => JSON.parse(`${ndjson || '{}'}`).volume_24h_usd)
  for (const market of [read, unread]) market.apply(patch, START_MS)
  // The window's end lies 100 s on: the patch is of the interval before it.
  for (const [ms, volume] of [
    [86_399_999, 9],
    [86_400_000 + 99_999, 0],
  ]) {
    for (const market of [read, unread]) market.advanceTo(START_MS - 800_000 + ms)
    expect(volumes(read)).toContain(volume)
  }
  expect(volumes(read)).toEqual(volumes(unread))
})

it('a DataPoint that was read in the same second shows the new price of SOL, under another version', () => {
  const market = new Market({ tokensMax: 2 })
  market.apply({ type: 'token', mint: MINTS[0], ts: START_MS, name: 'A', symbol: 'A' }, START_MS)
  const before = market.datapointJson(MINTS[0])!.version
  market.apply({ type: 'solPrice', ts: START_MS, usd: 150 }, START_MS)
  const after = market.datapointJson(MINTS[0])!
  expect(JSON.parse(after.json.toString()).solPriceUsd).toBe(150)
  expect(after.version).not.toBe(before)
})

it('a page is current until one of its rows changes, whatever others do', () => {
  const market = new Market({ tokensMax: 4 })
  let atMs = START_MS
  const trade = (mint: string, priceUsd: number) =>
    market.apply({ type: 'trade', mint, ts: ++atMs, side: 'buy', tokenAmount: 1, priceUsd }, atMs)
  const analysed = (mint: string, count: number) =>
    market.apply({ type: 'analysisCount', mint, ts: atMs, count }, atMs)
  const page = () => market.page({ tab: 'all', sort: 'market_cap', order: 'asc', offset: 0, limit: 2 })
  const mintsOf = ({ ndjson }: ReturnType<typeof page>) => `${ndjson}`.match(/(?<="mint":")\w+/g)
  const [first, second, third] = MINTS
  for (const [index, mint] of [first, second, third].entries()) {
    market.apply({ type: 'token', mint, ts: atMs, name: 'A', symbol: 'A', totalSupply: 1e9 }, atMs)
    trade(mint, index + 1)
  }
  const before = page()
  expect(mintsOf(before)).toEqual([first, second])
  analysed(third, 1)
  const unchanged = page()
  expect(unchanged.lines).toEqual(before.lines)
  expect(unchanged.lines.every((line, row) => line === before.lines[row])).toBe(true)
  expect([unchanged.version, unchanged.bytes]).toEqual([market.seq, unchanged.ndjson.length])
  expect(unchanged.version).toBeGreaterThan(before.version)
  expect([before.isCurrent(), unchanged.isCurrent()]).toEqual([true, true])
  analysed(second, 12)
  expect([before.isCurrent(), unchanged.isCurrent()]).toEqual([false, false])
  const changed = page()
  expect(`${changed.ndjson}`.split('\n').map((row) => row && JSON.parse(row).analysis_count)).toEqual([
    0,
    12,
    '',
  ])
  expect(changed.bytes).toBe(changed.ndjson.length)
  trade(first, 9)
  expect(mintsOf(page())).toEqual([second, third])
})

it('a filtered page has another version once time alone lets other tokens pass', () => {
  const market = new Market({ tokensMax: 2 })
  const [mint] = MINTS
  market.apply({ type: 'token', mint, ts: START_MS, name: 'A', symbol: 'A' }, START_MS)
  for (const [ms, priceUsd] of [
    [30_000, 1],
    [200_000, 2],
  ] as const) {
    const ts = START_MS + ms
    market.apply({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd }, ts)
  }
  const versionsOf = (
    range: Partial<FigureRange> & Pick<FigureRange, 'figure'>,
    timesMs: readonly number[],
  ) =>
    timesMs.map((ms) => {
      market.advanceTo(START_MS + ms)
      const filter = { search: null, analysesMax: null, ranges: [{ min: null, max: null, ...range }] }
      const { total, contentVersion } = market.freeze('all', 'hot', filter).page('desc', 0, 10)
      return [total, contentVersion] as const
    })
  const byAge = versionsOf({ figure: 'age_ms', max: 240_000 }, [230_000, 239_000, 250_000])
  expect(byAge.map(([total]) => total)).toEqual([1, 1, 0])
  // The change of five minutes is known once they have passed.
  const byChange = versionsOf({ figure: 'change_5m', min: 50 }, [260_000, 350_000])
  expect(byChange.map(([total]) => total)).toEqual([0, 1])
  for (const [[, before], [, after]] of [byAge.slice(1), byChange] as const) expect(after).not.toBe(before)
  expect(byAge[0]).toEqual(byAge[1])
})

it('recent trades are newest first, whenever they came, and a late one takes no place of a newer one', () => {
  const market = new Market({ tokensMax: 2 })
  const [mint] = MINTS
  const trade = (ts: number, receivedAtMs = ts) =>
    market.apply({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 }, receivedAtMs)
  const times = Array.from({ length: 20 }, (_, index) => START_MS + 1_000 + 100 * index)
  const shown = () => market.datapoint(mint)?.recentTrades.map(({ timestamp }) => timestamp)
  for (const ts of times) trade(ts)
  expect(trade(START_MS, START_MS + 3_000)).toBe(null)
  expect(shown()).toEqual(times.toReversed())
  expect(trade(START_MS + 2_150, START_MS + 3_000)).toBe(null)
  expect(shown()).toEqual([...times.slice(1), START_MS + 2_150].sort((a, b) => b - a))
})

it('a patch makes the number of trades unknown, until another says it', () => {
  const market = new Market({ tokensMax: 2 })
  const [mint] = MINTS
  const apply = (event: object) =>
    expect(market.apply({ mint, ts: START_MS, ...event } as MarketEvent, START_MS)).toBe(null)
  const trade = { type: 'trade', side: 'buy', tokenAmount: 1, priceUsd: 1 }
  const count = () => market.datapoint(mint)?.tradeCount
  apply(trade)
  apply({ type: 'patch', fields: { tradeCount: null } })
  expect(count()).toBe(null)
  apply(trade)
  expect(count()).toBe(null)
  apply({ type: 'patch', fields: { tradeCount: 7 } })
  apply(trade)
  expect(count()).toBe(8)
})

it('a trade in SOL says so, and reserves off the curve leave no progress of before', () => {
  const market = new Market({ tokensMax: 2 })
  const [mint, usdc] = [MINTS[0], 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v']
  const sol = 'So11111111111111111111111111111111111111112'
  let ts = START_MS
  const trade = (fields: object) => {
    market.apply({ type: 'trade', mint, ts: ++ts, side: 'buy', tokenAmount: 1, ...fields } as MarketEvent, ts)
    return market.datapoint(mint)!
  }
  market.apply({ type: 'solPrice', ts, usd: 200 }, ts)
  expect(trade({ priceUsd: 1 }).quoteMint).toBe(null)
  expect(trade({ quoteMint: usdc, quoteAmount: 50 })).toMatchObject({
    quoteMint: usdc,
    recentTrades: [{ sol: null }, {}],
  })
  expect(trade({ solAmount: 0.25 })).toMatchObject({ quoteMint: sol, recentTrades: [{ sol: 0.25 }, {}, {}] })
  expect(trade({ quoteMint: sol, quoteAmount: 0.5 }).recentTrades[0].sol).toBe(0.5)
  const onCurve = trade({ solAmount: 0.1, vSol: 50, vTokens: 643_800_000 })
  expect([onCurve.bondingProgress, onCurve.liquidity]).toEqual([
    expect.closeTo(54.117, 2),
    expect.closeTo(8_000),
  ])
  const off = trade({ solAmount: 0.1, vSol: 50, vTokens: 1e9 })
  expect([off.bondingProgress, off.liquidity, off.virtualTokenReserves]).toEqual([null, null, 1e9])
  // Whoever knows the other curve says how far it is.
  market.apply({ type: 'patch', mint, ts, fields: { bondingProgress: 30 } }, ts)
  expect(trade({ solAmount: 0.1, vSol: 51, vTokens: 9e8 }).bondingProgress).toBe(30)
})
