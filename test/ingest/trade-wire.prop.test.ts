// Checks the reader of lines against JSON.parse, with trades as feeds write them and with some of their bytes changed, and where
// records of msgpack end.
import fc from 'fast-check'
import { Packr } from 'msgpackr'
import { expect, test } from 'vitest'
import { ingest } from '../../src/ingest/push/push.ts'
import { readTrade, timeFault } from '../../src/ingest/push/record.ts'
import { skipRecord } from '../../src/ingest/push/skip-record.ts'
import type { TradeEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { MemorySink } from './memory-sink.ts'

const packr = new Packr({ useRecords: false })
/** Behind nearly all times of the records below. */
const NOW_MS = 1e15
const MINTS = Array.from({ length: 40 }, (_, index) => mintOfSymbol(`wire ${index}`))

const amount = fc.oneof(
  fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  fc.nat(),
  fc.integer({ min: 0, max: 100_000_000 }).map((units) => units / 1e6),
  fc.constantFrom(0, -0, 1e-9, 5e-324, 1.7e308, 2 ** 53 - 1, 2 ** 53, 2 ** 53 + 2, 123456789012345.6),
)
const odd = fc.constantFrom<unknown>(
  -1,
  '',
  'x',
  true,
  false,
  [],
  {},
  'é',
  '"',
  '\\',
  '\u0001',
  'a'.repeat(300),
)
const orOdd = (usual: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: odd })
const optional = (usual: fc.Arbitrary<unknown>) => orOdd(fc.option(usual))
const word = fc.oneof(fc.constantFrom(...MINTS), fc.string({ maxLength: 140 }))
const fields = {
  type: orOdd(fc.constantFrom('trade', 'trade', 'trade', 'traded', 'patch')),
  mint: orOdd(fc.constantFrom(...MINTS, MINTS[0].slice(1), '1'.repeat(32), '1'.repeat(44))),
  ts: orOdd(fc.integer({ min: 0, max: 1e15 })),
  side: orOdd(fc.constantFrom('buy', 'sell', 'sold')),
  tokenAmount: orOdd(amount),
  priceUsd: optional(amount),
  solAmount: optional(amount),
  vSol: optional(amount),
  vTokens: optional(amount),
  wallet: optional(word),
  tx: optional(word),
  pool: optional(fc.oneof(word, amount, fc.boolean())),
}
type Entry = [string, unknown]
/** The members of a record in any order, some missing, some repeated. */
const entries: fc.Arbitrary<Entry[]> = fc
  .record(fields, { requiredKeys: ['type', 'mint', 'ts', 'side', 'tokenAmount'] })
  .chain((record) => {
    const usual = Object.entries(record) as Entry[]
    const repeated = fc.subarray(usual, { maxLength: 1 })
    return repeated.chain((twice) =>
      fc.oneof(
        fc.constant(usual),
        fc.shuffledSubarray([...usual, ...twice], { minLength: usual.length + twice.length }),
      ),
    )
  })

/** The market treats absent and null members alike. */
const told = (trade: object | null) =>
  trade && Object.fromEntries(Object.entries(trade).filter(([, value]) => value != null))
const ours = (record: unknown): TradeEvent | null =>
  typeof record === 'object' && record !== null && (record as { type?: unknown }).type === 'trade'
    ? readTrade(record as Record<string, unknown>)
    : null

const lineOf = (members: readonly Entry[], [comma, colon]: readonly string[]) =>
  `{${members.map(([name, value]) => JSON.stringify(name) + colon + numeral(value)).join(comma)}}`
/** JSON.stringify loses the sign of zero. */
const numeral = (value: unknown) => (Object.is(value, -0) ? '-0' : JSON.stringify(value))

/** Some bytes changed; an empty list leaves them as they are. */
const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 2 })
function changed(bytes: Buffer, list: readonly (readonly [number, number])[]): Buffer {
  const copy = Buffer.from(bytes)
  for (const [at, byte] of list) copy[at % copy.length] = byte
  return copy
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

test('a trade of a line is the one that JSON.parse and the check make of it', () => {
  const separators = fc.constantFrom([',', ':'], [', ', ': '])
  fc.assert(
    fc.property(entries, separators, changes, (members, separator, list) => {
      const line = changed(Buffer.from(lineOf(members, separator)), list)
      if (line.includes('\n')) return
      const sink = new MemorySink()
      ingest(line, 'application/x-ndjson', sink, NOW_MS)
      const record = line.equals(Buffer.from(line.toString())) ? parsed(line.toString()) : undefined
      const trade = ours(record)
      expect(sink.events.map(told)).toEqual(
        trade === null || timeFault(trade.ts, NOW_MS) ? [] : [told(trade)],
      )
    }),
    { numRuns: 2_000 },
  )
})

test('the end of a record is found where the library ends it, and nowhere when it is cut short', () => {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.string({ maxLength: 70_000, size: 'max' }),
    fc.array(fc.nat(), { minLength: 60_000, maxLength: 70_000, size: 'max' }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  )
  fc.assert(
    fc.property(value, fc.nat(), (record, cut) => {
      const bytes = Buffer.from(packr.pack(record))
      expect(skipRecord(Buffer.concat([bytes, bytes]), 0)).toBe(bytes.length)
      expect(skipRecord(bytes.subarray(0, cut % bytes.length), 0)).toBe(-1)
    }),
  )
})
