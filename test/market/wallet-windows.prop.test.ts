// Wallets in windows of an hour and a day, against a list of all sightings.
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type SectionIndex, SectionReader } from '../../src/lib/sections/sections.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import { WALLETS_EXACT_MAX } from '../../src/market/bars/limits.ts'
import { tokenBlocks } from '../../src/market/bars/token-block.ts'
import { WalletWindows } from '../../src/market/bars/wallet-windows.ts'
import { windowFromMs } from '../../src/market/bars/windows.ts'
import { BLOCK_BITS_MAX, BLOCK_BITS_MIN, WordPool } from '../../src/market/bars/word-pool.ts'
import { Market } from '../../src/market/market.ts'
import { anyCharacter } from '../support/any-character.ts'
import { fewAndMany } from '../support/cases.ts'

const START_MS = 1_772_000_000_000
const SLOTS = 3
const WINDOWS = ['1h', '24h'] as const
/** Of 99 answers in a hundred. */
const ERROR_MAX = 0.06

function restored(wallets: WalletWindows, couponWordsMax?: number): WalletWindows {
  const sections = new Map<string, Buffer>()
  const index: SectionIndex = {}
  for (const { name, bytes } of wallets.save(SLOTS)) {
    sections.set(name, Buffer.from(bytes))
    index[name] = { bytes: bytes.length, crc32: crc32(bytes) }
  }
  const copy = new WalletWindows(SLOTS, tokenBlocks(SLOTS), couponWordsMax)
  for (const _ of copy.restore(new SectionReader((name) => sections.get(name) ?? null, index), SLOTS));
  return copy
}

const savedBytes = (wallets: WalletWindows): string[] =>
  [...wallets.save(SLOTS)].map(({ name, bytes }) => `${name} ${Buffer.from(bytes).toString('base64')}`)

interface Sighting {
  slot: number
  wallet: string
  tsMs: number
}

/** How many wallets traded since then, by the list. */
const counted = (sightings: readonly Sighting[], slot: number, fromMs: number): number =>
  new Set(sightings.filter((each) => each.slot === slot && each.tsMs >= fromMs).map(({ wallet }) => wallet))
    .size

const burst = fc.record({
  slot: fc.nat(SLOTS - 1),
  /** So many wallets trade, of so many that there are. */
  wallets: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 50, max: 80 }), fc.constant(400)),
  first: fc.nat(500),
  everyMs: fc.constantFrom(0, 700, 20_000, 3 * MINUTE_MS),
  pauseMs: fc.constantFrom(0, 10 * MINUTE_MS, HOUR_MS, 7 * HOUR_MS, DAY_MS, 50 * DAY_MS),
  isRestored: fc.boolean(),
})

for (const { runs, tags } of fewAndMany(12, 400))
  it(`counts exactly what is at most ${WALLETS_EXACT_MAX}, and nearly what is more, in any order, ${runs} cases`, {
    tags,
  }, () => {
    fc.assert(
      fc.property(fc.array(burst, { minLength: 1, maxLength: 12 }), fc.nat(5_000), (bursts, lateMs) => {
        let wallets = new WalletWindows(SLOTS)
        const late = new WalletWindows(SLOTS)
        const sightings: Sighting[] = []
        let nowMs = START_MS
        for (const { slot, wallets: count, first, everyMs, pauseMs, isRestored } of bursts) {
          nowMs += pauseMs
          const added = Array.from({ length: count }, (_, index) => ({
            slot,
            wallet: `wallet ${first + index}`,
            tsMs: nowMs + index * everyMs,
          }))
          nowMs += count * everyMs
          for (const { wallet, tsMs } of added) wallets.add(slot, wallet, tsMs, tsMs)
          // The same in another order, all after the last has come.
          for (const { wallet, tsMs } of added.toSorted(
            (a, b) => ((a.tsMs ^ lateMs) % 7) - ((b.tsMs ^ lateMs) % 7),
          ))
            late.add(slot, wallet, tsMs, nowMs)
          sightings.push(...added)
          if (isRestored) {
            const copy = restored(wallets)
            expect(savedBytes(copy)).toEqual(savedBytes(wallets))
            wallets = copy
          }
          for (const window of WINDOWS) {
            const fromMs = windowFromMs(window, nowMs)
            const expected = counted(sightings, slot, fromMs)
            const found = wallets.countSince(slot, fromMs) ?? Number.NaN
            expect(late.countSince(slot, fromMs)).toBe(found)
            if (expected <= WALLETS_EXACT_MAX) expect(found).toBe(expected)
            else {
              expect(found).toBeGreaterThan(WALLETS_EXACT_MAX)
              // Far beyond what is promised, as there are many cases.
              expect(Math.abs(found / expected - 1)).toBeLessThan(2 * ERROR_MAX)
            }
          }
        }
      }),
      { numRuns: runs },
    )
  })

it('are the same wallets, however their trades come: newest or late, short, long or no ASCII', () => {
  const market = new Market({ tokensMax: 1 })
  const wallets = ['w', 'w2', 'x'.repeat(43), 'x'.repeat(44), 'x'.repeat(45), 'wället', '财']
  const buy = (wallet: string, ts: number) =>
    market.apply(
      { type: 'trade', mint: 'mint', ts, side: 'buy', tokenAmount: 1, priceUsd: 1, wallet },
      START_MS + 1_000,
    )
  market.apply({ type: 'token', mint: 'mint', ts: START_MS, name: 'n', symbol: 's' }, START_MS)
  for (const ts of [START_MS + 1_000, START_MS + 500])
    for (const wallet of wallets) expect(buy(wallet, ts)).toBeNull()
  expect(market.enriched('mint')).toMatchObject({ unique_wallet_24h: wallets.length })
})

describe('estimates', () => {
  for (const count of [65, 100, 300, 1_000, 3_000, 10_000])
    it(`of ${count} wallets have a standard error of 2 % at most, and are within 6 % in 99 of 100`, () => {
      const tokens = Math.min(100, Math.ceil(200_000 / count))
      const wallets = new WalletWindows(1)
      const errors = Array.from({ length: tokens }, (_, token) => {
        wallets.clear(0)
        for (let index = 0; index < count; index++)
          wallets.add(0, `wallet ${index} of ${token}`, START_MS + index, START_MS + index)
        return (wallets.countSince(0, START_MS - HOUR_MS) ?? Number.NaN) / count - 1
      })
      const standardError = Math.sqrt(errors.reduce((sum, error) => sum + error ** 2, 0) / tokens)
      const sorted = errors.map(Math.abs).sort((a, b) => a - b)
      expect(standardError).toBeLessThan(0.02)
      expect(sorted[Math.floor(0.99 * tokens) - 1]).toBeLessThan(ERROR_MAX)
    })

  it('slide with the window, hour by hour for two days, and are exact again once few trade', () => {
    const wallets = new WalletWindows(1)
    const sightings: Sighting[] = []
    for (let hour = 0; hour < 50; hour++) {
      // From 30 to 900 wallets an hour, a third of whom have traded before; then few.
      const many = hour < 24 ? 30 * (1 + (hour % 30)) : 10
      for (let index = 0; index < many; index++) {
        const id = index % 3 === 0 ? index : hour * 1_000 + index
        const tsMs = START_MS + hour * HOUR_MS + Math.floor((index * HOUR_MS) / many)
        sightings.push({ slot: 0, wallet: `${id}`, tsMs })
        wallets.add(0, `${id}`, tsMs, tsMs)
      }
      const nowMs = START_MS + (hour + 1) * HOUR_MS - 1
      for (const window of WINDOWS) {
        const fromMs = windowFromMs(window, nowMs)
        const expected = counted(sightings, 0, fromMs)
        const found = wallets.countSince(0, fromMs) ?? Number.NaN
        if (expected <= WALLETS_EXACT_MAX) expect(found).toBe(expected)
        else expect(Math.abs(found / expected - 1)).toBeLessThan(ERROR_MAX)
      }
    }
    expect(counted(sightings, 0, windowFromMs('24h', START_MS + 50 * HOUR_MS - 1))).toBeGreaterThan(100)
  })

  it('need room: where there is none, few are counted and more are not known, until a window is covered again', () => {
    const wallets = new WalletWindows(SLOTS, tokenBlocks(SLOTS), 2 ** BLOCK_BITS_MIN)
    const trade = (slot: number, from: number, count: number, atMs: number) => {
      for (let index = 0; index < count; index++) wallets.add(slot, `${from + index}`, atMs, atMs)
    }
    const counts = (slot: number, nowMs: number) =>
      WINDOWS.map((window) => wallets.countSince(slot, windowFromMs(window, nowMs)))
    trade(0, 0, 70, START_MS)
    trade(1, 0, 70, START_MS)
    expect(counts(0, START_MS).every((count) => (count ?? 0) > WALLETS_EXACT_MAX)).toBe(true)
    expect(counts(1, START_MS)).toEqual([null, null])
    expect(counts(0, START_MS)).toEqual(
      WINDOWS.map((window) => restored(wallets).countSince(0, windowFromMs(window, START_MS))),
    )
    expect(restored(wallets, 0).countSince(0, windowFromMs('24h', START_MS))).toBeNull()
    trade(1, 0, 10, START_MS + 2 * HOUR_MS)
    expect(counts(1, START_MS + 2 * HOUR_MS)).toEqual([10, null])
    wallets.clear(0)
    trade(1, 0, 80, START_MS + 25 * HOUR_MS)
    expect(
      counts(1, START_MS + 25 * HOUR_MS).every((count) => Math.abs((count ?? 0) / 80 - 1) < ERROR_MAX),
    ).toBe(true)
  })
})

it('any two texts are two wallets', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ unit: anyCharacter, maxLength: 12 }), { maxLength: 40 }),
      (texts) => {
        const wallets = new WalletWindows(1)
        for (const text of [...texts, ...texts]) wallets.add(0, text, START_MS, START_MS)
        expect(wallets.countSince(0, START_MS - HOUR_MS)).toBe(texts.length)
      },
    ),
  )
})

it('blocks of words are apart, begin empty, and are all one again once they are given back', () => {
  const act = fc.record({
    bits: fc.integer({ min: BLOCK_BITS_MIN, max: BLOCK_BITS_MAX }),
    released: fc.option(fc.nat(), { freq: 2 }),
  })
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      const pool = new WordPool(3 * 2 ** 20)
      const taken: { address: number; bits: number; mark: number }[] = []
      const wordsOf = ({ address, bits }: { address: number; bits: number }) => {
        const start = pool.offsetOf(address)
        return pool.words(address).subarray(start, start + 2 ** bits)
      }
      const release = (index: number) => {
        const [block] = taken.splice(index, 1)
        expect(new Set(wordsOf(block))).toEqual(new Set([block.mark]))
        pool.release(block.address, block.bits)
      }
      for (const [index, { bits, released }] of acts.entries()) {
        if (released !== null && taken.length > 0) release(released % taken.length)
        const before = pool.takenWords
        const address = pool.take(bits)
        expect(address === -1).toBe(before + 2 ** bits > 3 * 2 ** 20)
        if (address === -1) continue
        const block = { address, bits, mark: index + 1 }
        expect(new Set(wordsOf(block))).toEqual(new Set([0]))
        wordsOf(block).fill(block.mark)
        taken.push(block)
      }
      while (taken.length > 0) release(0)
      expect(pool.takenWords).toBe(0)
      // The largest blocks fit in again, one beside the other, in the memory that there is.
      expect(pool.take(BLOCK_BITS_MAX) % 2 ** BLOCK_BITS_MAX).toBe(0)
    }),
    { numRuns: 30 },
  )
})
