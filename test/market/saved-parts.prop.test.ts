// Parts of the market with bounds so small that a test reaches them: each is saved and restored at any time, and goes on as one that
// was not.
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Saved, type SectionIndex, SectionReader } from '../../src/lib/sections/sections.ts'
import { encodeTexts, TextColumn } from '../../src/lib/sections/text-column.ts'
import { BAR_STRIDE, BarRing } from '../../src/market/bars/bar-ring.ts'
import { AnalysisCounts } from '../../src/market/tokens/analysis-counts.ts'
import { EvictedMints } from '../../src/market/tokens/evicted-mints.ts'
import { RecentTrades } from '../../src/market/tokens/recent-trades.ts'
import { VersionHistory } from '../../src/market/tokens/version-history.ts'
import { RECENT_TRADES_MAX } from '../../src/schema/datapoint.ts'
import { anyCharacter } from '../support/any-character.ts'

const SLOTS = 5

function restored<Part extends Saved>(part: Part, empty: Part): Part {
  const sections = new Map<string, Buffer>()
  const index: SectionIndex = {}
  for (const { name, bytes } of part.save(SLOTS)) {
    sections.set(name, Buffer.from(bytes))
    index[name] = { bytes: bytes.length, crc32: crc32(bytes) }
  }
  for (const _ of empty.restore(new SectionReader((name) => sections.get(name) ?? null, index), SLOTS) ?? []);
  return empty
}

const slot = fc.nat(SLOTS - 1)

it('recent trades are those of a list, with whatever texts they have', () => {
  const text = fc.oneof(
    fc.constant(null),
    fc.string({ unit: 'grapheme-ascii', maxLength: 140, size: 'max' }),
    fc.string({ unit: anyCharacter, maxLength: 60, size: 'max' }),
  )
  const trade = fc.record({
    ts: fc.integer({ min: 1, max: 40 }),
    side: fc.constantFrom('buy', 'sell'),
    solAmount: fc.option(fc.double({ noNaN: true, min: 0 })),
    tx: text,
    wallet: text,
  })
  const act = fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({ add: slot, trades: fc.array(trade, { maxLength: 12, size: 'max' }) }),
    },
    { weight: 4, arbitrary: fc.record({ insert: slot, trades: fc.tuple(trade) }) },
    { weight: 2, arbitrary: fc.record({ clear: slot }) },
    { weight: 2, arbitrary: fc.constant({ save: true }) },
  )
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40, size: 'max' }), (acts) => {
      const lists = Array.from({ length: SLOTS }, (): object[] => [])
      const latestOf = (at: number): object[] => lists[at] ?? []
      let recent = new RecentTrades(SLOTS)
      for (const each of acts) {
        if ('save' in each) recent = restored(recent, new RecentTrades(SLOTS))
        else if ('clear' in each) {
          recent.clear(each.clear)
          lists[each.clear] = []
        } else
          for (const { ts, side, solAmount: sol, tx, wallet } of each.trades) {
            const at = 'add' in each ? each.add : each.insert
            const event = {
              type: 'trade' as const,
              mint: '',
              tokenAmount: 1,
              ts,
              side,
              solAmount: sol,
              tx,
              wallet,
            }
            const list = latestOf(at) as { timestamp: number }[]
            const firstNotLater = list.findIndex(({ timestamp }) => timestamp <= ts)
            const later = 'add' in each ? 0 : firstNotLater === -1 ? list.length : firstNotLater
            if ('add' in each) recent.add(at, event)
            else recent.insert(at, event)
            if (later < RECENT_TRADES_MAX)
              lists[at] = list.toSpliced(later, 0, { tx, type: side, sol, wallet, timestamp: ts } as never)
            lists[at] = latestOf(at).slice(0, RECENT_TRADES_MAX)
          }
        for (let at = 0; at < SLOTS; at++) expect(recent.read(at)).toEqual(lists[at])
      }
    }),
  )
})

it('a ring of bars keeps its bars and the order in which their chunks are taken away', () => {
  const act = fc.oneof(
    { weight: 12, arbitrary: fc.record({ push: slot, times: fc.integer({ min: 1, max: 6 }) }) },
    { weight: 1, arbitrary: fc.record({ clear: slot }) },
    { weight: 4, arbitrary: fc.record({ pop: slot }) },
    { weight: 2, arbitrary: fc.constant({ save: true }) },
  )
  const newRing = () =>
    new BarRing({ name: 'ring', tokensMax: SLOTS, poolBars: 24, chunkBars: 4, barsPerTokenMax: 9 })
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60, size: 'max' }), (acts) => {
      const lived = newRing()
      let other = newRing()
      let bar = 0
      for (const each of acts) {
        if ('save' in each) other = restored(other, newRing())
        else if ('clear' in each) for (const ring of [lived, other]) ring.clear(each.clear)
        else if ('pop' in each)
          for (const ring of [lived, other]) {
            const [held, [, ...bars]] = [ring.held, contentOf(ring).bars[each.pop] ?? []]
            if (bars.length === 0) continue
            ring.pop(each.pop)
            expect(ring.held).toBe(held - 1)
            expect(contentOf(ring).bars[each.pop]?.slice(1)).toEqual(bars.slice(2))
          }
        else
          for (let time = 0; time < each.times; time++) {
            bar++
            for (const ring of [lived, other]) ring.values.fill(bar, ...placeOf(ring.push(each.push)))
          }
        expect(contentOf(other)).toEqual(contentOf(lived))
      }
    }),
    { numRuns: 300 },
  )
})

const placeOf = (address: number): [number, number] => [address, address + BAR_STRIDE]

const contentOf = (ring: BarRing) => ({
  held: ring.held,
  reclaimed: ring.reclaimedBars,
  bars: Array.from({ length: SLOTS }, (_, of) => {
    const bars: number[] = []
    ring.backwards(of, (address) => {
      bars.push(ring.values[address], ring.values[address + BAR_STRIDE - 1])
      return true
    })
    return [ring.oldest(of) === -1 ? null : ring.values[ring.oldest(of)], ...bars]
  }),
})

it('a ring with a smaller pool takes the newest chunks', () => {
  const ringOf = (poolBars: number) =>
    new BarRing({ name: 'ring', tokensMax: SLOTS, poolBars, chunkBars: 2, barsPerTokenMax: 20 })
  const large = ringOf(20)
  for (let bar = 1; bar <= 9; bar++) large.values.fill(bar, ...placeOf(large.push(bar % 2)))
  const small = restored(large, ringOf(6))
  expect(contentOf(small).bars.slice(0, 2)).toEqual([
    [6, 8, 8, 6, 6],
    [5, 9, 9, 7, 7, 5, 5],
  ])
  expect(small.held).toBe(5)
})

it('versions are found, expire and are dropped early as before, those of evicted tokens too', () => {
  const historyOf = () =>
    new VersionHistory({ tokensMax: SLOTS, retentionMs: 400, versionsMax: 3 * 16_384, evictedMax: 3 })
  const lived = historyOf()
  let other = historyOf()
  const values = new Float64Array(9)
  let atMs = 1_000
  const beganAtMs = new Array<number>(SLOTS).fill(atMs)
  const found = (history: VersionHistory, of: number, ms: number) => {
    const version = history.find(of, ms)
    return version && [...version.values.subarray(version.at, version.at + 9)]
  }
  for (let count = 0; count < 150_000; count++) {
    // At first time passes and records expire; later there are too many of one moment.
    if (count % 30 === 0 && count < 90_000) atMs++
    const of = count % SLOTS
    values.fill(count)
    for (const history of [lived, other]) history.push(of, values, beganAtMs[of] ?? 0, atMs)
    beganAtMs[of] = atMs
    if (count % 997 === 0)
      for (const history of [lived, other]) {
        history.evict(of, `${count % 7}`)
        history.admit(of, `${count % 5}`)
      }
    if (count % 23_456 !== 0) continue
    other = restored(other, historyOf())
    expect([other.held, other.droppedEarly]).toEqual([lived.held, lived.droppedEarly])
    for (let ms = atMs - 900; ms <= atMs; ms += 7)
      for (let slot = 0; slot < SLOTS; slot++) expect(found(other, slot, ms)).toEqual(found(lived, slot, ms))
  }
  expect(lived.droppedEarly).toBeGreaterThan(0)
})

it('analysed and evicted mints are forgotten in the same order', () => {
  const mint = fc.constantFrom('a', 'b', 'c', 'd', 'é', '\udc00')
  const act = fc.oneof(
    { weight: 6, arbitrary: fc.record({ mint, value: fc.nat(99), take: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant(null) },
  )
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      const lived = { counts: new AnalysisCounts(3), evicted: new EvictedMints(3) }
      let other = { counts: new AnalysisCounts(3), evicted: new EvictedMints(3) }
      for (const each of acts) {
        if (each === null) {
          const counts = restored(other.counts, new AnalysisCounts(3))
          other = { counts, evicted: restored(other.evicted, new EvictedMints(3)) }
          continue
        }
        const [a, b] = [lived, other].map(({ counts, evicted }) => [
          counts.set(each.mint, each.value),
          counts.get('a'),
          each.take ? evicted.take(each.mint) : evicted.add(each.mint, each.value),
        ])
        expect(b).toEqual(a)
      }
    }),
    { numRuns: 300 },
  )
})

it('any texts come back as they were', () => {
  const text = fc.option(
    fc.oneof(fc.string(), fc.string({ unit: anyCharacter }), fc.constant('\ud800\ud800')),
  )
  fc.assert(
    fc.property(fc.array(text), (texts) => {
      const column = new TextColumn('texts', encodeTexts(texts))
      expect(texts.map((_, index) => column.at(index))).toEqual(texts)
      expect(texts.map((_, index) => column.isNull(index))).toEqual(texts.map((each) => each === null))
    }),
  )
})
