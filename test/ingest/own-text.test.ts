// In: records with texts far longer than what is kept of them, by each way in. Out: proof that what is kept has memory of
// its own, and is well-formed.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Packr } from 'msgpackr'
import { expect, test } from 'vitest'
import { readFrame } from '../../src/ingest/pumpportal/pumpportal-frame.ts'
import { ingest } from '../../src/ingest/push/push.ts'
import { type TradeBatch, TradeTranslator } from '../../src/ingest/replay/trade-translator.ts'
import { ownText } from '../../src/lib/own-text.ts'
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
/** Not ASCII: the reader of bytes leaves it to the library. */
const trade = (at: number) => ({
  ...{ type: 'trade', mint, ts: NOW, side: 'buy', tokenAmount: 1, priceUsd: 1 },
  tx: `é${long(at)}`,
})
/** Its texts are short enough to be kept as JSON.parse made them. */
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
])('what is kept of %s does not hold the text that it was cut from', (_, take) => {
  const sink = new MemorySink()
  take(0, sink)
  const before = heapBytes()
  for (let at = 1; at <= RECORDS; at++) take(at, sink)
  expect(sink.events).toHaveLength(RECORDS + 1)
  expect(heapBytes() - before).toBeLessThan((RECORDS * TEXT_CHARS) / 10)
})

test('what is kept of a replayed row and of a frame does not hold the text that it was cut from', () => {
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
    }
    kept.push(new TradeTranslator().translate(batch, 0, 0))
    const frame = {
      txType: 'create',
      signature: `${at}`,
      mint,
      traderPublicKey: 'k',
      name: `${at}`.padStart(900, 'x'),
    }
    kept.push(readFrame(frame, NOW))
  }
  expect(heapBytes() - before).toBeLessThan((RECORDS * TEXT_CHARS) / 10)
})

test('a cut never halves a character, and what is none is U+FFFD', () => {
  expect(ownText('ab🐕', 3)).toBe('ab')
  expect(ownText('ab🐕', 4)).toBe('ab🐕')
  expect(ownText('ab🐕c', 4)).toBe('ab🐕')
  expect(ownText('a\ud800b', 3)).toBe('a\ufffdb')
  expect(ownText('', 3)).toBe('')
  const sink = new MemorySink()
  push({ type: 'token', mint, ts: NOW, name: `${'x'.repeat(127)}🐕`, symbol: '\ud800' }, sink)
  expect(sink.events).toMatchObject([{ name: 'x'.repeat(127), symbol: '\ufffd' }])
})
