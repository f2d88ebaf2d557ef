// What is encoded is decoded as it was, whatever the texts and numbers.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeBatch, decodeBatchHead } from '../../src/journal/batch/batch-decoder.ts'
import { BatchEncoder } from '../../src/journal/batch/batch-encoder.ts'
import { BATCH_EVENTS_MAX, TEXT_CHARACTERS_MAX } from '../../src/journal/limits.ts'
import { isWhole, readFrameHead } from '../../src/journal/segments/format.ts'
import { QUOTE_FIELDS } from '../../src/schema/event.ts'
import { events, eventsOf, NOON_MS, tradeAt } from './support.ts'

const recorded = fc.array(
  fc.record({
    event: events,
    atMs: fc.integer({ min: 1_000, max: 8e15 }),
    receivedAtMs: fc.integer({ min: 1_000, max: 8e15 }),
    feed: fc.constantFrom('push', 'pumpportal', 'größe'),
    solPriceUsd: fc.oneof(fc.constant(Number.NaN), fc.double({ min: 1, max: 1e6, noNaN: true })),
  }),
  { minLength: 1, maxLength: 60 },
)

test('a batch is decoded as it was encoded, and the encoder is empty afterwards', () => {
  const encoder = new BatchEncoder()
  fc.assert(
    fc.property(recorded, fc.integer({ min: 1, max: 2 ** 50 }), (each, firstEventNo) => {
      for (const { event, atMs, receivedAtMs, feed, solPriceUsd } of each)
        encoder.add(event, atMs, receivedAtMs, feed, solPriceUsd)
      const frame = encoder.encode(firstEventNo, firstEventNo - 1)
      const lastEventNo = firstEventNo + each.length - 1
      const hasQuotes = each.some(
        ({ event }) => event.type === 'trade' && QUOTE_FIELDS.some((name) => event[name] != null),
      )
      expect(readFrameHead(frame, 0)).toEqual({
        kind: hasQuotes ? 'quotedBatch' : 'batch',
        bytes: frame.length,
      })
      expect(isWhole(frame)).toBe(true)
      expect(decodeBatchHead(frame)).toEqual({
        kind: 'entries',
        firstNo: firstEventNo,
        lastNo: lastEventNo,
        durableNo: firstEventNo - 1,
      })
      const batch = decodeBatch(frame)!
      expect(batch).toMatchObject({ firstEventNo, lastEventNo })
      expect(eventsOf(batch)).toEqual(
        each.map(({ event, atMs, receivedAtMs, feed }, index) => ({
          ...{ eventNo: firstEventNo + index, atMs, receivedAtMs, feed, event },
        })),
      )
      const prices = each.filter(({ event }) => event.type === 'trade').map(({ solPriceUsd }) => solPriceUsd)
      expect([...batch.trades.solPriceUsd]).toEqual(prices)
      expect(encoder.count).toBe(0)
    }),
  )
})

test('a frame of which any byte was changed is not whole', () => {
  const encoder = new BatchEncoder()
  for (let index = 0; index < 20; index++) encoder.add(tradeAt(index), NOON_MS, NOON_MS, 'push', 1)
  const frame = encoder.encode(1, 0)
  fc.assert(
    fc.property(fc.nat(frame.length - 1), fc.integer({ min: 1, max: 255 }), (at, flipped) => {
      const changed = Buffer.from(frame)
      changed[at] ^= flipped
      const head = readFrameHead(changed, 0)
      expect(head !== null && head.bytes === changed.length && isWhole(changed)).toBe(false)
    }),
  )
})

test('frames with valid checksums and any content are decoded or refused, and never crash', () => {
  const encoder = new BatchEncoder()
  for (let index = 0; index < 5; index++) encoder.add(tradeAt(index), NOON_MS, NOON_MS, 'push', 1)
  encoder.add({ type: 'solPrice', ts: NOON_MS, usd: 1 }, NOON_MS, NOON_MS, 'push', 1)
  const frame = encoder.encode(1, 0)
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 16, max: frame.length - 1 }), fc.nat(255)), {
        minLength: 1,
        maxLength: 9,
      }),
      (changes) => {
        const changed = Buffer.from(frame)
        for (const [at, byte] of changes) changed[at] = byte
        const batch = decodeBatch(changed)
        if (batch !== null)
          expect(batch.lastEventNo - batch.firstEventNo + 1).toBe(batch.trades.count + batch.events.length)
      },
    ),
  )
})

test('a batch is full at its number of events, and long texts are cut', () => {
  const encoder = new BatchEncoder()
  encoder.add({ ...tradeAt(1), wallet: 'x'.repeat(TEXT_CHARACTERS_MAX + 5) }, NOON_MS, NOON_MS, 'push', 1)
  while (!encoder.isFull) encoder.add(tradeAt(1), NOON_MS, NOON_MS, 'push', 1)
  expect(encoder.count).toBe(BATCH_EVENTS_MAX)
  expect(() => encoder.add(tradeAt(1), NOON_MS, NOON_MS, 'push', 1)).toThrow('full')
  const { trades } = decodeBatch(encoder.encode(1, 0))!
  expect(trades.wallet[0]).toHaveLength(TEXT_CHARACTERS_MAX)
})
