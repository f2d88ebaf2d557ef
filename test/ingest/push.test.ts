// Tests of pushed bodies and frames without a server or a market.
import { Packr, Unpackr } from 'msgpackr'
import { expect, test, vi } from 'vitest'
import {
  INGEST_BODY_BYTES_MAX,
  INGEST_FRAME_BYTES_MAX,
  INGEST_RECORD_BYTES_MAX,
  INGEST_SLICE_BYTES,
} from '../../src/ingest/limits.ts'
import { ingest, ingestFrame, ingestInSlices } from '../../src/ingest/push/push.ts'
import { LATE_GRACE_MS } from '../../src/market/time/limits.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { MemorySink } from './memory-sink.ts'

const NOW = 1_772_000_000_000
const NDJSON = 'application/x-ndjson'
const MSGPACK = 'application/msgpack'
const mint = mintOfSymbol('push test')
const trade = { type: 'trade', mint, ts: NOW, side: 'buy', tokenAmount: 5, priceUsd: 0.25 }
const packr = new Packr({ useRecords: false })

function send(body: string | Uint8Array, contentType = NDJSON) {
  const sink = new MemorySink()
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return { sink, result: ingest(bytes, contentType, sink, NOW) }
}
const lines = (...records: unknown[]) => records.map((record) => `${JSON.stringify(record)}\n`).join('')
const codesOf = (result: { errors: { code: string }[] }) => result.errors.map(({ code }) => code)

test('every kind of record becomes its event, stamped with the time of receipt', () => {
  const records = [
    { type: 'token', mint, ts: NOW, name: 'Name', symbol: 'SYM', description: 'text' },
    trade,
    { type: 'patch', mint, ts: NOW, fields: { holderCount: 0, website: null } },
    { type: 'graduated', mint, ts: NOW, pool: 'pump-amm' },
    { type: 'live', mint, ts: NOW, isLive: true, viewerCount: 3 },
    { type: 'solPrice', ts: NOW, usd: 150 },
  ]
  const { sink, result } = send(lines(...records))
  expect(result).toEqual({ accepted: 6, rejected: 0, errors: [] })
  expect(sink.events).toEqual(records)
  expect(sink.received.every(({ receivedAtMs }) => receivedAtMs === NOW)).toBe(true)
})

test('who pushes may tell of a loss of its own, from the time at which it last had data', () => {
  const { sink, result } = send(
    lines(
      { type: 'disconnect', ts: NOW, sinceMs: NOW - 5_000 },
      { type: 'disconnect', ts: NOW, sinceMs: null },
      { type: 'reconnect', ts: NOW },
      { type: 'disconnect', ts: NOW, sinceMs: NOW + 1 },
      { type: 'reconnect', ts: 'now' },
    ),
  )
  expect(sink.events).toEqual([
    { type: 'disconnect', ts: NOW, sinceMs: NOW - 5_000, feed: 'push' },
    { type: 'disconnect', ts: NOW, sinceMs: NOW, feed: 'push' },
    { type: 'reconnect', ts: NOW, feed: 'push' },
  ])
  expect(codesOf(result)).toEqual(['since_after_ts', 'invalid_type'])
})

test('who pushes may say until when what was missed is sent, and what of it stays missing', () => {
  const part = { fromMs: NOW - 4_000, toMs: NOW - 3_000, reason: 'pruned' }
  const { sink, result } = send(
    lines(
      { type: 'disconnect', ts: NOW, sinceMs: NOW - 5_000, healUntilMs: NOW + 60_000, isDowntime: true },
      { type: 'disconnect', ts: NOW, healUntilMs: NOW + 60_000, missing: [part], heldFromMs: NOW },
      // Without `healUntilMs` all of it is missing.
      { type: 'disconnect', ts: NOW, missing: [part] },
      { type: 'disconnect', ts: NOW, healUntilMs: NOW + 60_000, missing: [{ ...part, fromMs: NOW }] },
      { type: 'reconnect', ts: NOW, healed: true },
      { type: 'reconnect', ts: NOW, healed: true, missing: [part] },
      { type: 'reconnect', ts: NOW, healed: true, missing: [] },
      // Without `healed` all of it is missing.
      { type: 'reconnect', ts: NOW, healed: false, missing: [part] },
      { type: 'reconnect', ts: NOW, healed: true, missing: [{ ...part, reason: 'tired' }] },
      { type: 'reconnect', ts: NOW, healed: true, missing: [{ ...part, fromMs: NOW }] },
      { type: 'reconnect', ts: NOW, healed: true, missing: Array.from({ length: 257 }, () => part) },
    ),
  )
  expect(sink.events).toEqual([
    { type: 'disconnect', ts: NOW, feed: 'push', sinceMs: NOW - 5_000, healUntilMs: NOW + 60_000 },
    { type: 'disconnect', ts: NOW, feed: 'push', sinceMs: NOW, healUntilMs: NOW + 60_000, missing: [part] },
    { type: 'disconnect', ts: NOW, feed: 'push', sinceMs: NOW },
    { type: 'reconnect', ts: NOW, feed: 'push', healed: true },
    { type: 'reconnect', ts: NOW, feed: 'push', healed: true, missing: [part] },
    { type: 'reconnect', ts: NOW, feed: 'push', healed: true },
    { type: 'reconnect', ts: NOW, feed: 'push' },
  ])
  expect(codesOf(result)).toEqual(['from_after_to', 'invalid_value', 'from_after_to', 'too_big'])
})

test('CRLF, blank lines, a byte order mark and a missing last newline are accepted', () => {
  const line = JSON.stringify(trade)
  const { result } = send(`\ufeff${line}\r\n\r\n  \n\n${line}\n${line}`)
  expect(result).toEqual({ accepted: 3, rejected: 0, errors: [] })
})

test('an empty body holds no record', () => {
  expect(send('').result).toEqual({ accepted: 0, rejected: 0, errors: [] })
  expect(send(new Uint8Array(0), MSGPACK).result).toEqual({ accepted: 0, rejected: 0, errors: [] })
})

test('a bad line is reported with its index and code, and its neighbours are applied', () => {
  const body = [
    JSON.stringify(trade),
    '{"type":"trade",',
    JSON.stringify({ ...trade, mint: 'short' }),
    JSON.stringify({ ...trade, tokenAmount: -1 }),
    JSON.stringify({ ...trade, priceUsd: undefined }),
    JSON.stringify({ ...trade, type: 'swap' }),
    '[]',
    'null',
    JSON.stringify(trade),
  ].join('\n')
  const { sink, result } = send(body)
  expect(result.accepted).toBe(2)
  expect(sink.events).toHaveLength(2)
  expect(result.rejected).toBe(7)
  expect(result.errors.map(({ index }) => index)).toEqual([1, 2, 3, 4, 5, 6, 7])
  expect(codesOf(result)).toEqual([
    'invalid_json',
    'invalid_mint',
    'too_small',
    'price_missing',
    'unknown_type',
    'invalid_type',
    'invalid_type',
  ])
  expect(result.errors[2].message).toMatch(/^tokenAmount: /)
})

test('an unknown field of a patch is dropped, and a patch with a wrong type is rejected', () => {
  const { sink, result } = send(
    lines(
      { type: 'patch', mint, ts: NOW, fields: { holderCount: 7, unheardOf: 1 } },
      { type: 'patch', mint, ts: NOW, fields: { holderCount: 'seven' } },
    ),
  )
  expect(sink.events).toEqual([{ type: 'patch', mint, ts: NOW, fields: { holderCount: 7 } }])
  expect(result.errors).toEqual([
    { index: 1, code: 'invalid_type', message: expect.stringMatching(/^fields\.holderCount: /) },
  ])
})

test('a rejection by the market is reported with its code', () => {
  const sink = new MemorySink()
  sink.reject = (event) => (event.ts < NOW ? 'late' : null)
  const result = ingest(Buffer.from(lines({ ...trade, ts: NOW - 1 }, trade)), NDJSON, sink, NOW)
  expect(result).toMatchObject({ accepted: 1, rejected: 1, errors: [{ index: 0, code: 'late' }] })
  expect(result.errors[0].message).toContain(`more than ${LATE_GRACE_MS / 1_000} s older`)
})

test('a time 60 s ahead of the receipt is accepted, and 1 ms more is ts_in_future', () => {
  const { result } = send(lines({ ...trade, ts: NOW + 60_000 }, { ...trade, ts: NOW + 60_001 }))
  expect(result).toMatchObject({ accepted: 1, errors: [{ index: 1, code: 'ts_in_future' }] })
})

test('seconds and microseconds instead of milliseconds get a hint', () => {
  const { result } = send(lines({ ...trade, ts: NOW / 1000 }, { ...trade, ts: NOW * 1000 }))
  expect(result.errors[0]).toMatchObject({
    code: 'ts_in_seconds',
    message: expect.stringContaining('seconds'),
  })
  expect(result.errors[1]).toMatchObject({
    code: 'ts_in_future',
    message: expect.stringContaining('microseconds'),
  })
})

test('the first 100 errors are listed and all are counted', () => {
  const { result } = send(`${'x\n'.repeat(150)}${JSON.stringify(trade)}\n${lines({ type: 'trade' })}`)
  expect(result.rejected).toBe(151)
  expect(result.accepted).toBe(1)
  expect(result.errors).toHaveLength(100)
})

test('a line that is not UTF-8 is rejected alone', () => {
  const good = Buffer.from(lines(trade))
  const bad = Buffer.concat([Buffer.from('{"type":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n')])
  const { result } = send(Buffer.concat([good, bad, good]))
  expect(result).toMatchObject({ accepted: 2, rejected: 1, errors: [{ index: 1, code: 'invalid_json' }] })
})

test('text that is not ASCII arrives unchanged', () => {
  const name = 'köpek 🐕 犬'
  const { sink } = send(lines({ type: 'token', mint, ts: NOW, name, symbol: '犬' }))
  expect(sink.events[0]).toMatchObject({ name, symbol: '犬' })
})

test('msgpack: an array of records and a sequence of records give the same events', () => {
  const records = [trade, { ...trade, side: 'sell' }, { type: 'solPrice', ts: NOW, usd: 1.5 }]
  const many = Array.from({ length: 70_000 }, () => ({ type: 'solPrice', ts: NOW, usd: 2 }))
  const sequence = Buffer.concat(records.map((record) => Buffer.from(packr.pack(record))))
  expect(send(packr.pack(records), MSGPACK).sink.events).toEqual(records)
  expect(send(sequence, MSGPACK).sink.events).toEqual(records)
  expect(send(packr.pack(many), MSGPACK).result.accepted).toBe(70_000)
})

test('msgpack: 64-bit integers are accepted as times', () => {
  const body = packr.pack([{ ...trade, ts: BigInt(NOW) }])
  expect(send(body, MSGPACK).sink.events).toEqual([trade])
})

test('msgpack: an extension costs its own bytes, whichever it is, and records with one are read together', () => {
  const extra = [
    ...[new Date(NOW), new Date(1_000), new Date(1e15), 2n ** 70n, new Set([1, [2]]), /x/, new Error('no')],
    ...[1, 2, 4, 8, 16, 300, 70_000].map((bytes) => new Uint8Array(bytes)),
  ]
  const rich = new Packr({ useRecords: false, moreTypes: true })
  const records = [...Array(5).keys()].flatMap(() =>
    [...extra, extra].map((each) => ({ ...trade, extra: each })),
  )
  const given = vi.spyOn(Unpackr.prototype, 'unpackMultiple')
  for (const body of [rich.pack(records), Buffer.concat(records.map((record) => rich.pack(record)))]) {
    given.mockClear()
    expect(send(body, MSGPACK).result).toMatchObject({ accepted: records.length, rejected: 0 })
    const bytes = given.mock.calls.reduce((sum, [source]) => sum + source.byteLength, 0)
    expect(bytes).toBeLessThanOrEqual(body.byteLength)
    expect(given.mock.calls.length).toBeLessThan(records.length)
  }
  given.mockRestore()
})

test('msgpack: what only msgpackr knows the end of is read alone, and its neighbours are applied', () => {
  for (const own of [
    new Packr({ useRecords: true }),
    new Packr({ useRecords: false, bundleStrings: true }),
  ]) {
    const record = own.pack({ ...trade, extra: [{ a: 'text' }, { a: 'other' }] })
    const body = Buffer.concat([packr.pack(trade), record, packr.pack(trade), record])
    expect(send(body, MSGPACK).sink.events).toEqual([trade, trade, trade, trade])
  }
})

test('msgpack: to find the end of records that only msgpackr knows costs few bytes more than they have', () => {
  const own = new Packr()
  const records = Array.from({ length: 300 }, (_, at) => ({
    ...trade,
    note: 'x'.repeat(at === 7 ? 200_000 : at),
  }))
  const body = Buffer.concat(records.map((record) => own.pack(record)))
  const given = vi.spyOn(Unpackr.prototype, 'unpackMultiple')
  expect(send(body, MSGPACK).result).toMatchObject({ accepted: 300, rejected: 0 })
  const bytes = given.mock.calls.reduce((sum, [source]) => sum + source.byteLength, 0)
  given.mockRestore()
  expect(bytes).toBeLessThan(8 * body.byteLength)
})

test('msgpack: the neighbours of a bad record are applied', () => {
  const body = packr.pack([trade, 7, { ...trade, side: 'hold' }, trade])
  const { result } = send(body, MSGPACK)
  expect(result.accepted).toBe(2)
  expect(result.errors.map(({ index }) => index)).toEqual([1, 2])
})

test('msgpack: a record that is whole and cannot be read spoils no other, in any number', () => {
  const unknown = Buffer.from([0xd4, 0x05, 0x00])
  const withUnknown = Buffer.concat([packr.pack({ ...trade, extra: null }).subarray(0, -1), unknown])
  const deep = Buffer.concat([Buffer.alloc(100_000, 0x91), Buffer.of(0xc0)])
  const keyOfMap = Buffer.from([0x81, 0x80, 0xc0])
  const bad = [unknown, withUnknown, deep, keyOfMap, ...Array(2_000).fill(unknown)]
  const one = packr.pack(trade)
  const sequence = Buffer.concat([one, ...bad.flatMap((each) => [each, one])])
  const records = 2 * bad.length + 1
  const given = vi.spyOn(Unpackr.prototype, 'unpackMultiple')
  for (const body of [
    sequence,
    Buffer.concat([Buffer.from([0xdc, records >> 8, records & 255]), sequence]),
  ]) {
    const { result } = send(body, MSGPACK)
    expect(result).toMatchObject({ accepted: bad.length + 1, rejected: bad.length })
    expect(result.errors.slice(0, 4).map(({ index, code }) => [index, code])).toEqual(
      [1, 3, 5, 7].map((index) => [index, 'invalid_msgpack']),
    )
  }
  const bytes = given.mock.calls.reduce((sum, [source]) => sum + source.byteLength, 0)
  given.mockRestore()
  expect(bytes).toBeLessThan(8 * sequence.byteLength)
})

test('msgpack: records before a malformed or missing end are applied, and the end is reported', () => {
  const whole = packr.pack([trade, trade, trade])
  const cut = send(whole.subarray(0, whole.length - 10), MSGPACK).result
  expect(cut).toMatchObject({ accepted: 2, rejected: 1, errors: [{ index: 2, code: 'invalid_msgpack' }] })
  const one = packr.pack(trade)
  const malformed = send(Buffer.concat([one, one, Buffer.from([0xc1, 0xff])]), MSGPACK).result
  expect(malformed.accepted).toBe(2)
  expect(codesOf(malformed)).toContain('invalid_msgpack')
  const early = send(Buffer.concat([Buffer.from([0x93]), one]), MSGPACK).result
  expect(early).toMatchObject({ accepted: 1, errors: [{ index: 1, code: 'invalid_msgpack' }] })
  const late = send(Buffer.concat([Buffer.from([0x91]), one, one]), MSGPACK).result
  expect(late).toMatchObject({ accepted: 1, errors: [{ index: 1, code: 'invalid_msgpack' }] })
})

test('hostile msgpack (huge announced sizes, deep nesting) is rejected without allocating memory', () => {
  const hugeArray = Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff, 0xdd, 0xff, 0xff, 0xff, 0xff])
  expect(codesOf(send(hugeArray, MSGPACK).result)).toEqual(['invalid_msgpack'])
  const deep = Buffer.alloc(1_000_000, 0x91)
  expect(send(deep, MSGPACK).result.accepted).toBe(0)
})

test('a record over 256 KiB is rejected unparsed, and its neighbours are applied', () => {
  const padded = (bytes: number, record: object = trade) => {
    const pad = 'x'.repeat(bytes - JSON.stringify({ ...record, pad: '' }).length)
    return { ...record, pad }
  }
  const token = { type: 'token', mint, ts: NOW, name: 'Name', symbol: 'SYM' }
  const limit = 256 * 1024
  const body = [
    ...[trade, padded(limit), padded(limit + 1), padded(limit, token), padded(limit + 1, token)].map(
      (record) => JSON.stringify(record),
    ),
    'x'.repeat(3 * limit),
    ' '.repeat(limit + 1),
    JSON.stringify(trade),
  ]
  const { result, sink } = send(body.join('\n'))
  expect(result.errors.map(({ index, code }) => [index, code])).toEqual(
    [2, 4, 5, 6].map((index) => [index, 'record_too_large']),
  )
  expect(result.errors[0].message).toContain('262144 bytes')
  expect(sink.events).toHaveLength(4)
  const maps = [trade, padded(limit - 100), padded(limit + 100), padded(limit + 100, token), token, trade]
  for (const packed of [packr.pack(maps), Buffer.concat(maps.map((record) => packr.pack(record)))]) {
    const { result, sink } = send(packed, MSGPACK)
    expect(result.errors.map(({ index, code }) => [index, code])).toEqual(
      [2, 3].map((index) => [index, 'record_too_large']),
    )
    expect(sink.events).toHaveLength(4)
  }
})

test('other content types and bodies above the maximum are rejected as a whole', () => {
  expect(() => send(lines(trade), 'text/plain')).toThrow(
    expect.objectContaining({ code: 'unsupported_media_type' }),
  )
  expect(send(lines(trade), 'Application/X-NDJSON; charset=utf-8').result.accepted).toBe(1)
  expect(() => send(new Uint8Array(INGEST_BODY_BYTES_MAX + 1))).toThrow(
    expect.objectContaining({ code: 'payload_too_large' }),
  )
})

test('a body read in slices gives the same result as one read at once', async () => {
  const records = Array.from({ length: 10_000 }, (_, i) => ({ ...trade, tokenAmount: i % 7 ? i : -1 }))
  for (const [body, type] of [
    [Buffer.from(lines(...records)), NDJSON],
    [packr.pack(records), MSGPACK],
  ] as const) {
    const atOnce = new MemorySink()
    const sliced = new MemorySink()
    const expected = ingest(body, type, atOnce, NOW)
    expect(await ingestInSlices(body, type, sliced, sliced, { now: () => NOW })).toEqual(expected)
    expect(sliced.events).toEqual(atOnce.events)
    expect(expected.errors).toHaveLength(100)
  }
})

test('large records, valid or not, hold others up for no more bytes than a slice has, in either form', async () => {
  const large = { ...trade, note: 'x'.repeat(150_000) }
  const records = Array.from({ length: 100 }, () => large)
  const given = vi.spyOn(Unpackr.prototype, 'unpackMultiple')
  for (const [body, type] of [
    [Buffer.from(lines(...records)), NDJSON],
    [packr.pack(records), MSGPACK],
    [Buffer.concat(records.map((record) => packr.pack(record))), MSGPACK],
  ] as const) {
    let slices = 0
    const sink = new MemorySink()
    const room = () => {
      slices++
      return null
    }
    const { accepted } = await ingestInSlices(body, type, sink, sink, { now: () => NOW }, room)
    expect(accepted).toBe(100)
    expect(slices).toBeGreaterThanOrEqual(
      Math.floor(body.length / (INGEST_SLICE_BYTES + INGEST_RECORD_BYTES_MAX)),
    )
  }
  const largest = Math.max(...given.mock.calls.map(([source]) => source.byteLength))
  given.mockRestore()
  expect(largest).toBeLessThan(INGEST_SLICE_BYTES + INGEST_RECORD_BYTES_MAX)
})

test('an exception in the market is thrown and not reported as bad input', () => {
  const sink = new MemorySink()
  sink.reject = () => {
    throw new Error('assertion failed: a bug')
  }
  expect(() => ingest(Buffer.from(lines(trade)), NDJSON, sink, NOW)).toThrow('a bug')
  expect(() => ingest(packr.pack([trade, trade]), MSGPACK, sink, NOW)).toThrow('a bug')
})

test('a text frame holds one record, an array or one record per line; a binary frame holds msgpack', () => {
  const take = (frame: string | Uint8Array) => {
    const bytes = typeof frame === 'string' ? Buffer.from(frame) : frame
    return ingestFrame(bytes, typeof frame !== 'string', new MemorySink(), NOW)
  }
  expect(take(JSON.stringify(trade)).accepted).toBe(1)
  expect(take(JSON.stringify([trade, trade])).accepted).toBe(2)
  expect(take(lines(trade, trade, trade)).accepted).toBe(3)
  for (const value of [trade, [trade]])
    for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)])
      for (const frame of [text, `\ufeff${text}`, `\n${text}\n`])
        expect(take(frame), frame).toEqual({ accepted: 1, rejected: 0, errors: [] })
  const large = JSON.stringify({ ...trade, extra: 'x'.repeat(INGEST_RECORD_BYTES_MAX) }, null, 2)
  expect(take(large)).toMatchObject({ accepted: 0 })
  expect(take(packr.pack(trade)).accepted).toBe(1)
  expect(take(packr.pack([trade, trade])).accepted).toBe(2)
  expect(codesOf(take('[{"type":'))).toEqual(['invalid_json'])
  expect(() => take(new Uint8Array(INGEST_FRAME_BYTES_MAX + 1))).toThrow(
    expect.objectContaining({ code: 'payload_too_large' }),
  )
})
