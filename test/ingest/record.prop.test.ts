// Property test: the hand-written check of trades agrees with the schema.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readRecord, readTrade } from '../../src/ingest/push/record.ts'
import { QUOTE_FIELDS, tradeEventSchema } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

const mint = mintOfSymbol('record property')
const anyValue = fc.oneof(
  fc.constantFrom<unknown>(undefined, null, 0, -0, -1, 1, 0.5, '', '1', true, {}, [], 5e-324, 1.7e308),
  fc.constantFrom<unknown>(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1n),
  fc.constantFrom<unknown>(2 ** 53, 2 ** 53 - 1, 8.64e15, 8.64e15 + 1, 8.64e15 - 1, 1.5),
  fc.double(),
  fc.string({ maxLength: 300 }),
)
const orAny = <T>(usual: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary: usual as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: anyValue })
const amount = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true })
const optional = <T>(usual: fc.Arbitrary<T>) =>
  orAny(fc.oneof(usual as fc.Arbitrary<unknown>, fc.constantFrom<unknown>(null, undefined)))
const mintLike = fc.constantFrom<unknown>(
  mint,
  mint.slice(1),
  `${mint}1`,
  mint.replace(/./, '0'),
  '1'.repeat(32),
)

const tradeLike = fc.record(
  {
    type: fc.constant('trade'),
    mint: orAny(mintLike),
    ts: orAny(fc.integer({ min: 0 })),
    side: orAny(fc.constantFrom('buy', 'sell')),
    tokenAmount: orAny(amount),
    priceUsd: optional(amount),
    solAmount: optional(amount),
    vSol: optional(amount),
    vTokens: optional(amount),
    wallet: optional(fc.string({ maxLength: 200 })),
    tx: optional(fc.string({ maxLength: 200 })),
    extra: fc.anything(),
  },
  { requiredKeys: ['type'] },
)

test('the quick check of a trade accepts exactly what the schema accepts, with the same values', () => {
  fc.assert(
    fc.property(tradeLike, (record) => {
      const parsed = tradeEventSchema.safeParse(record)
      const quick = readTrade(record)
      expect(quick !== null).toBe(parsed.success)
      if (parsed.success) expect(quick).toEqual(parsed.data)
    }),
    { numRuns: 3_000 },
  )
})

test.each(QUOTE_FIELDS)('a trade with %s and nothing else of a quote keeps it', (name) => {
  const ts = 1_772_000_000_000
  const value = name === 'quoteMint' ? mint : 7
  const record = { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1, [name]: value }
  expect(readRecord(record, ts)).toEqual(record)
})

test('any value becomes an event of a known type or a fault with a code and a message', () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true }), (record) => {
      const outcome = readRecord(record, 1_772_000_000_000)
      if ('code' in outcome) expect(outcome.message.length).toBeGreaterThan(0)
      else expect(outcome.type).toBe((record as { type: string }).type)
    }),
    { numRuns: 1_000 },
  )
})
