// @module-tag drill
// Tests that truncated texts are copies, which do not keep the original text in memory, and that they are well-formed.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Packr } from 'msgpackr'
import { expect, test } from 'vitest'
import { parseFrame } from '../../src/ingest/pumpportal/pumpportal-frame.ts'
import { ingest } from '../../src/ingest/push/push.ts'
import type { TradeBatch } from '../../src/ingest/replay/trade-batch.ts'
import { TradeTranslator } from '../../src/ingest/replay/trade-translator.ts'
import { truncateText } from '../../src/lib/text/truncate-text.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { MemorySink } from './memory-sink.ts'

const NOW = 1_772_000_000_000
const RECORDS = 200
const TEXT_CHARS = 100_000
const mint = mintOfSymbol('own text')
const packr = new Packr({ useRecords: false })
const long = (at: number) => `${at}`.padStart(TEXT_CHARS, 'x')

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const heapBytes = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

const token = (at: number) => ({
  type: 'token',
  mint,
  ts: NOW,
  name: long(at),
  symbol: 'S',
  image_uri: long(at),
})
const patch = (at: number) => ({
  type: 'patch',
  mint,
  ts: NOW,
  fields: { description: long(at), primaryDex: long(at) },
})
const trade = (at: number) => ({
  ...{ type: 'trade', mint, ts: NOW, side: 'buy', tokenAmount: 1, priceUsd: 1 },
  tx: long(at),
})
/** Its texts are short enough to be kept as JSON.parse created them. */
const shortTrade = (at: number) => ({
  ...{ type: 'trade', mint, ts: NOW, side: 'buy', tokenAmount: 1, priceUsd: 1, pool: long(at) },
  tx: `signature of the transaction ${at}`,
})
const push = (record: object, sink: MemorySink) =>
  ingest(Buffer.from(JSON.stringify(record)), 'application/x-ndjson', sink, NOW)
const pack = (record: object, sink: MemorySink) =>
  ingest(packr.pack([record]), 'application/msgpack', sink, NOW)

test.each([
  ['tokens of NDJSON', (at: number, sink: MemorySink) => push(token(at), sink)],
  ['patches of NDJSON', (at: number, sink: MemorySink) => push(patch(at), sink)],
  ['trades of NDJSON', (at: number, sink: MemorySink) => push(trade(at), sink)],
  ['short texts of trades on long lines', (at: number, sink: MemorySink) => push(shortTrade(at), sink)],
  ['tokens of msgpack', (at: number, sink: MemorySink) => pack(token(at), sink)],
  ['trades of msgpack', (at: number, sink: MemorySink) => pack(trade(at), sink)],
])('%s keep truncated texts without the original text', (_, take) => {
  const sink = new MemorySink()
  take(0, sink)
  const before = heapBytes()
  for (let at = 1; at <= RECORDS; at++) take(at, sink)
  expect(sink.events).toHaveLength(RECORDS + 1)
  expect(heapBytes() - before).toBeLessThan((RECORDS * TEXT_CHARS) / 10)
})

test('replayed rows and frames keep truncated texts without the original text', () => {
  const kept: unknown[] = []
  const before = heapBytes()
  for (let at = 0; at < RECORDS; at++) {
    const batch: TradeBatch = {
      rows: 1,
      tsMs: Float64Array.of(NOW),
      price: Float64Array.of(1),
      size: Float64Array.of(1),
      symbolCode: Uint32Array.of(0),
      symbols: [long(at)],
      side: null,
      wallet: [long(at)],
      tx: [long(at)],
      faults: new Map(),
    }
    kept.push(new TradeTranslator().translate(batch, 0, 0))
    const frame = {
      txType: 'create',
      signature: `${at}`,
      mint,
      traderPublicKey: 'k',
      name: `${at}`.padStart(900, 'x'),
    }
    kept.push(parseFrame(frame, NOW))
  }
  expect(heapBytes() - before).toBeLessThan((RECORDS * TEXT_CHARS) / 10)
})

test('truncating never splits a character, and lone surrogates become U+FFFD', () => {
  expect(truncateText('ab🐕', 3)).toBe('ab')
  expect(truncateText('ab🐕', 4)).toBe('ab🐕')
  expect(truncateText('ab🐕c', 4)).toBe('ab🐕')
  expect(truncateText('a\ud800b', 3)).toBe('a\ufffdb')
  expect(truncateText('', 3)).toBe('')
  const sink = new MemorySink()
  push({ type: 'token', mint, ts: NOW, name: `${'x'.repeat(127)}🐕`, symbol: '\ud800' }, sink)
  expect(sink.events).toMatchObject([{ name: 'x'.repeat(127), symbol: '\ufffd' }])
})
