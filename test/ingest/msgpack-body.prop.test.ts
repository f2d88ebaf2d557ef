// Checks that pushed msgpack is read as NDJSON is, and that values which feeds do not send (extensions, texts that are not UTF-8, odd
// keys, cut ends, any bytes) change nothing of the records beside them.
import fc from 'fast-check'
import { Packr } from 'msgpackr'
import { expect, test } from 'vitest'
import type { IngestResult } from '../../src/ingest/push/ingest-batch.ts'
import { ingest } from '../../src/ingest/push/push.ts'
import { skipRecord } from '../../src/ingest/push/skip-record.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { MemorySink } from './memory-sink.ts'

const MSGPACK = 'application/msgpack'
const NOW_MS = 1_772_000_000_000
const packr = new Packr({ useRecords: false })
const mint = fc.constantFrom(...Array.from({ length: 10 }, (_, index) => mintOfSymbol(`body ${index}`)))
const ts = fc.constant(NOW_MS)
const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 90 }),
  fc.string({ minLength: 100, maxLength: 300 }),
  fc.constantFrom('é'.repeat(70), '漢'.repeat(200)),
)
// msgpackr names it otherwise, so that no object gets another prototype.
const name = text.filter((each) => each !== '__proto__')
const json = fc.jsonValue({ stringUnit: 'binary', maxDepth: 3 })
const trade = fc.record(
  {
    ...{ type: fc.constant('trade'), mint, ts, side: fc.constantFrom('buy', 'sell'), tokenAmount: fc.nat() },
    priceUsd: fc.option(fc.double({ min: 1e-9, max: 1e6, noNaN: true })),
    ...{ solAmount: fc.option(fc.nat()), quoteMint: mint, quoteAmount: fc.nat() },
    ...{ wallet: fc.option(text), tx: fc.option(text), note: json },
  },
  { requiredKeys: ['type', 'mint', 'ts', 'side', 'tokenAmount'] },
)
const record = fc.oneof(
  trade,
  fc.record({ type: fc.constant('token'), mint, ts, name: text, symbol: text, note: json }),
  fc.record({
    ...{ type: fc.constant('patch'), mint, ts },
    fields: fc.dictionary(fc.oneof(name, fc.constantFrom('holderCount', 'description', 'twitter')), json),
  }),
  fc.record({
    ...{ type: fc.constantFrom('disconnect', 'reconnect'), ts },
    ...{ sinceMs: json, healed: json, missing: json },
  }),
  fc.record({ type: fc.constant('solPrice'), ts, usd: fc.constantFrom(1, -1) }),
  fc.dictionary(name, json),
  json,
)

interface Read {
  result: IngestResult
  events: readonly MarketEvent[]
}
function read(body: Buffer, type = MSGPACK): Read {
  const sink = new MemorySink()
  return { result: ingest(body, type, sink, NOW_MS), events: sink.events }
}

const pack = (value: unknown): Buffer => Buffer.from(packr.pack(value))
/** A marker, and a length of some bytes behind it. */
function head(marker: number, length: number, bytes: number): Buffer {
  const buffer = Buffer.from([marker, ...Array(bytes).fill(0)])
  buffer.writeUIntBE(length, 1, bytes)
  return buffer
}
const arrayOf = (items: readonly Buffer[]) => Buffer.concat([head(0xdd, items.length, 4), ...items])

test('any values at all are the same events and errors as in NDJSON', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 30 }), fc.boolean(), (records, isArray) => {
      const lines = Buffer.from(records.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
      // As JSON has them: without -0.
      const values = records.map((entry) => pack(JSON.parse(JSON.stringify(entry))))
      // A body that begins with an array is one.
      const isSequence = !isArray && !Array.isArray(records[0])
      expect(read(isSequence ? Buffer.concat(values) : arrayOf(values))).toEqual(
        read(lines, 'application/x-ndjson'),
      )
    }),
    { numRuns: 500 },
  )
})

const bytesOf = (maxLength: number) => fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes))
/** Of msgpack's own kinds and of msgpackr's, whose end can be found. */
const value = fc.letrec<{ any: Buffer }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom(0xc0, 0xc2, 0x00, 0x40, 0x7f, 0xe0).map((byte) => Buffer.from([byte])),
    text.map(pack),
    fc.double().map(pack),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }).map(pack),
    // Texts of any bytes, and bytes.
    fc
      .tuple(fc.constantFrom([0xd9, 1], [0xda, 2], [0xdb, 4], [0xc4, 1], [0xc6, 4]), bytesOf(250))
      .map(([[marker, width], bytes]) => Buffer.concat([head(marker, bytes.length, width), bytes])),
    // Nothing, integers of any size, typed arrays, times, and a type that nobody has.
    fc
      .tuple(fc.constantFrom(0, 0x42, 0x74, 0xff, 0x41), bytesOf(60))
      .map(([type, bytes]) => Buffer.concat([head(0xc7, bytes.length, 1), Buffer.of(type), bytes])),
    fc
      .tuple(fc.constantFrom(0, 0x42, 0x74, 0xff, 0x41), fc.nat(4))
      .map(([type, power]) => Buffer.from([0xd4 + power, type, ...Array(1 << power).fill(0xa5)])),
    // Errors, values with an id (of four bytes), sets and patterns, of what follows.
    fc
      .tuple(fc.constantFrom([0xd4, 0x65], [0xd6, 0x69], [0xd5, 0x73], [0xd4, 0x78]), tie('any'))
      .map(([[marker, type], each]) =>
        Buffer.from([marker, type, ...Array(1 << (marker - 0xd4)).fill(0xa5), ...each]),
      ),
    fc
      .array(fc.tuple(tie('any'), tie('any')), { maxLength: 4 })
      .map((members) => Buffer.concat([Buffer.of(0x80 | members.length), ...members.flat()])),
    fc.array(tie('any'), { maxLength: 5 }).map(arrayOf),
  ),
})).any
/** A trade with members that nobody knows. */
const withMembers = fc
  .tuple(trade, fc.array(fc.tuple(text.map(pack), value), { minLength: 1, maxLength: 3 }))
  .map(([each, members]) => {
    const own = Object.entries(each).flat().map(pack)
    return Buffer.concat([head(0xde, own.length / 2 + members.length, 2), ...own, ...members.flat()])
  })
const item = fc.oneof(trade.map(pack), withMembers, value)

test('each record is what it is alone, and spoils no other, whatever it is', () => {
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 25 }), (items) => {
      for (const each of items) expect(skipRecord(each, 0)).toBe(each.length)
      const alone = items.map((each) => read(arrayOf([each])))
      const { result, events } = read(arrayOf(items))
      expect(events).toEqual(alone.flatMap((each) => each.events))
      expect(result.errors).toEqual(
        alone.flatMap((each, index) => each.result.errors.map((error) => ({ ...error, index }))),
      )
    }),
    { numRuns: 500 },
  )
})

test('of a body that is cut, the whole records are taken, and the cut one is told', () => {
  fc.assert(
    fc.property(fc.array(trade, { minLength: 1, maxLength: 10 }), fc.nat(), (trades, at) => {
      const packed = trades.map(pack)
      const whole = Buffer.concat(packed)
      const cut = at % whole.length
      const ends = packed.map((_, index) => Buffer.concat(packed.slice(0, index + 1)).length)
      const count = ends.filter((end) => end <= cut).length
      const { result, events } = read(whole.subarray(0, cut))
      const expected = read(Buffer.concat(packed.slice(0, count)))
      expect(events).toEqual(expected.events)
      const codes = cut === 0 || ends.includes(cut) ? [] : ['invalid_msgpack']
      expect(result.errors.slice(expected.result.errors.length).map(({ code }) => code)).toEqual(codes)
      expect(read(arrayOf(packed).subarray(0, 5 + cut)).events).toEqual(expected.events)
    }),
    { numRuns: 300 },
  )
})

test('after any bytes another body is read as ever', () => {
  const own = new Packr()
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 })
  const packed = fc.tuple(fc.array(record, { minLength: 1, maxLength: 5 }), fc.constantFrom(packr, own))
  const honest = { type: 'trade', mint: mintOfSymbol('honest'), ts: NOW_MS, side: 'buy', tokenAmount: 64 }
  const body = pack([{ ...honest, priceUsd: 1, note: { a: [70, 71], tx: 'x' } }])
  const expected = [{ ...honest, priceUsd: 1 }]
  fc.assert(
    fc.property(packed, bytesOf(40), changes, ([records, by], more, list) => {
      const bytes = Buffer.concat([...records.map((each) => by.pack(each)), more])
      for (const [at, byte] of list) bytes[at % bytes.length] = byte
      const { result, events } = read(bytes)
      expect(events.length).toBe(result.accepted)
      expect(result.accepted + result.rejected).toBeGreaterThan(0)
      expect(read(body).events).toEqual(expected)
    }),
    { numRuns: 1_000 },
  )
})
