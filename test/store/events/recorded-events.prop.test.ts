// What is recorded comes back from the lake as it was, whatever it is and however it was flushed and merged.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { MarketEvent, TradeEvent } from '../../../src/schema/event.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { anyCharacter } from '../../support/any-character.ts'
import { fewAndMany } from '../../support/cases.ts'
import { allEvents, spanOf } from '../../support/lake/all-events.ts'
import { NOON_MS, removeFolder, temporaryFolder } from '../support.ts'
import { MINT, openWorld } from './world.ts'

const MINTS = [MINT, 'So11111111111111111111111111111111111111113']
/** Texts as they are after the bounds of feeds: whole code points, NUL and others included. */
const text = fc.string({ unit: anyCharacter, maxLength: 12 }).map((value) => value.toWellFormed())
const positive = fc.double({ min: 1e-30, max: 1e30, noNaN: true })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const time = fc.integer({ min: 1_000, max: 8.64e15 })

/** Every member of a trade: the compiler misses one that is left out. */
const trade: fc.Arbitrary<TradeEvent> = fc.record({
  type: fc.constant('trade' as const),
  mint: fc.constantFrom(...MINTS),
  ts: time,
  side: fc.constantFrom('buy' as const, 'sell' as const),
  tokenAmount: fc.double({ min: 1e-10, max: 1e10, noNaN: true }),
  priceUsd: maybe(fc.double({ min: 1e-10, max: 1e10, noNaN: true })),
  solAmount: fc.double({ min: 1e-10, max: 1e10, noNaN: true }),
  vSol: maybe(positive),
  vTokens: maybe(positive),
  wallet: maybe(text),
  tx: maybe(text),
  quoteMint: maybe(fc.constantFrom(...MINTS)),
  quoteAmount: maybe(positive),
  vQuote: maybe(positive),
  quoteReserve: maybe(positive),
  curveTokens: maybe(positive),
  slot: maybe(fc.nat()),
  eventIndex: maybe(fc.nat()),
} satisfies { [Member in keyof Required<TradeEvent>]: fc.Arbitrary<TradeEvent[Member]> })
const other: fc.Arbitrary<MarketEvent> = fc.oneof(
  fc.record({
    type: fc.constant('token' as const),
    mint: fc.constantFrom(...MINTS),
    ts: time,
    name: text,
    symbol: text,
    uri: maybe(text),
  }),
  fc.record({
    type: fc.constant('solPrice' as const),
    ts: time,
    usd: positive,
    source: fc.constantFrom('birdeye' as const, 'setting' as const),
  }),
  fc.record({
    type: fc.constant('analysisCount' as const),
    mint: fc.constantFrom(...MINTS),
    ts: time,
    count: fc.nat(),
  }),
  fc.record({
    type: fc.constant('patch' as const),
    mint: fc.constantFrom(...MINTS),
    ts: time,
    fields: fc.record(
      { liquidity: fc.option(positive), description: fc.option(text), holderCount: fc.option(fc.nat()) },
      { requiredKeys: [] },
    ),
  }),
)
/** Batches, each followed by a flush, a merge or neither, and the market time that passes before it. */
const history = fc.array(
  fc.record({
    events: fc.array(fc.oneof({ weight: 4, arbitrary: trade }, { weight: 1, arbitrary: other }), {
      minLength: 1,
      maxLength: 40,
    }),
    passedMs: fc.oneof(fc.nat({ max: 60_000 }), fc.constant(86_400_000)),
    next: fc.constantFrom('flush', 'flush', 'compact', 'nothing'),
  }),
  { minLength: 1, maxLength: 12 },
)

/** Members that are null or undefined are absent to the engine. */
const withoutAbsent = (event: MarketEvent): unknown =>
  Object.fromEntries(Object.entries(event).filter(([, value]) => value !== null && value !== undefined))

for (const { runs, tags } of fewAndMany(1, 6))
  test(`every event comes back in its order, exactly: ${runs} cases`, {
    tags,
    timeout: runs * 20_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const dataDir = temporaryFolder()
        const world = await openWorld(dataDir)
        try {
          let atMs = NOON_MS
          for (const { events, passedMs, next } of steps) {
            atMs += passedMs
            world.journal.append(events, atMs)
            if (next !== 'nothing') await world.flush()
            if (next === 'compact') await world.compact()
          }
          await world.flush()
          const { recorded } = world.journal
          const found = []
          for await (const batch of allEvents(dataDir)) found.push(...batch)
          const plain = (each: (typeof recorded)[number]) => ({ ...each, event: withoutAbsent(each.event) })
          expect(found.map(plain)).toEqual(recorded.map(plain))
          expect(await spanOf(dataDir)).toEqual({ from: 1, to: recorded.length, lost: [] })
          await world.close()
          expect((await verifyLake({ dataDir, nowMs: atMs })).findings).toEqual([])
        } finally {
          await world.close().catch(() => undefined)
          removeFolder(dataDir)
        }
      }),
      { numRuns: runs },
    )
  })
