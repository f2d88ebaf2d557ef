import { base58 } from '@scure/base'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SNAPSHOT_FIELDS, type SnapshotValues } from '../../src/schema/datapoint.ts'
import { isMint } from '../../src/schema/mint.ts'
import { isKey, makeKey } from '../../src/submissions/accounts/api-keys.ts'
import { compareSnapshot } from '../../src/submissions/deviation.ts'
import { RateLimiter } from '../../src/submissions/rate-limits/rate-limiter.ts'
import { SlidingWindow } from '../../src/submissions/rate-limits/sliding-window.ts'

const value = fc.oneof(
  fc.constantFrom(0, 1, 0.5, 4.5e-9, 100, 1e9),
  fc.double({ min: 0, max: 1e12, noNaN: true }),
)
const snapshot = (of: fc.Arbitrary<number | null>) =>
  fc.record(
    Object.fromEntries(SNAPSHOT_FIELDS.map((field) => [field, of])),
  ) as unknown as fc.Arbitrary<SnapshotValues>
const FLOORS: Partial<Record<string, number>> = { priceUsd: 0 }

/** The contract's formula, written as it is there. */
function naive(sent: SnapshotValues, cached: SnapshotValues): number {
  let worst = 0
  for (const field of SNAPSHOT_FIELDS) {
    const [a, b] = [sent[field], cached[field]]
    if (a === null || b === null || a === b) continue
    worst = Math.max(worst, (100 * Math.abs(a - b)) / Math.max(Math.abs(b), FLOORS[field] ?? 1))
  }
  return worst
}

const near = (a: number, b: number) =>
  Math.abs(a - b) <= 1e-8 * Math.max(1, Math.abs(b)) || (a > 1e300 && b > 1e300)

describe('for any snapshots', () => {
  it('the deviation follows the contract’s formula, and is that of the worst field', () => {
    fc.assert(
      fc.property(snapshot(fc.option(value)), snapshot(fc.option(value)), (sent, cached) => {
        const { deviationPct, worstField, deviations } = compareSnapshot(sent, [], cached)
        expect(near(deviationPct, naive(sent, cached))).toBe(true)
        if (worstField !== null) expect(deviations[worstField]).toBe(deviationPct)
      }),
    )
  })

  it('the nearest of the versions counts as a whole', () => {
    const then = fc.array(snapshot(value), { maxLength: 4 })
    fc.assert(
      fc.property(snapshot(value), then, snapshot(value), (sent, versions, now) => {
        const { deviationPct, compared, version } = compareSnapshot(sent, versions, now)
        const all = [...versions, now]
        expect(near(deviationPct, Math.min(...all.map((each) => naive(sent, each))))).toBe(true)
        expect(near(deviationPct, naive(sent, compared))).toBe(true)
        expect(version === 'current' ? compared === now : versions.includes(compared)).toBe(true)
      }),
    )
  })
})

it('a rate limiter allows as many requests as a scan of all earlier ones', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.nat(40), { maxLength: 80 }), (max, steps) => {
      const limiter = new RateLimiter(max, 100)
      const taken: number[] = []
      let nowMs = 1_000
      for (const step of steps) {
        nowMs += step
        const used = taken.filter((atMs) => atMs > nowMs - 100 && atMs <= nowMs).length
        const quota = limiter.quota('key', { wallMs: nowMs, monotonicMs: nowMs })
        expect(quota?.remaining).toBe(max - used)
        if (quota?.remaining === 0) continue
        limiter.take('key', nowMs)
        taken.push(nowMs)
      }
    }),
  )
})

it('a sliding window counts what is within it, in whatever order it was added and removed', () => {
  const step = fc.record({ passMs: fc.nat(40), lateMs: fc.nat(20), removes: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const window = new SlidingWindow(100, 1_000)
      let added: number[] = []
      let nowMs = 1_000
      for (const { passMs, lateMs, removes } of steps) {
        nowMs += passMs
        const atMs = nowMs - lateMs
        window.add('key', atMs)
        if (removes) window.remove('key', atMs)
        else added.push(atMs)
        added = added.filter((each) => each > nowMs - 100)
        expect(window.count('key', nowMs)).toBe(added.length)
        expect(window.earliestMs('key', nowMs)).toBe(added.toSorted((a, b) => a - b)[0] ?? null)
      }
    }),
  )
})

it('the highest limit that settings accept is looked at as a low one is', () => {
  const limiter = new RateLimiter(1e6, 60_000)
  for (let count = 0; count < 200_000; count++) limiter.take('key', count / 10)
  const quota = (nowMs: number) => limiter.quota('key', { wallMs: nowMs, monotonicMs: nowMs })
  expect(quota(20_000)).toMatchObject({ remaining: 800_000, resetMs: 40_000 })
  expect(quota(70_000)).toMatchObject({ remaining: 900_001, resetMs: 1 })
})

it('the checksum of a key detects any one changed character', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 3, max: 50 }),
      fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789'),
      fc.infiniteStream(fc.nat(255)),
      (at, letter, bytes) => {
        const key = makeKey((count) => Uint8Array.from({ length: count }, () => bytes.next().value as number))
        expect(isKey(key)).toBe(true)
        if (key[at] !== letter) expect(isKey(key.slice(0, at) + letter + key.slice(at + 1))).toBe(false)
      },
    ),
    { numRuns: 200 },
  )
})

it('a text is a mint exactly if it decodes to 32 bytes', () => {
  const length = fc.oneof(
    { weight: 3, arbitrary: fc.constant(32) },
    { weight: 1, arbitrary: fc.integer({ min: 30, max: 34 }) },
  )
  const byte = fc.oneof(
    { weight: 4, arbitrary: fc.nat(255) },
    { weight: 1, arbitrary: fc.constantFrom(0, 1, 255) },
  )
  const bytes = length.chain((count) =>
    fc.oneof(
      fc.array(byte, { minLength: count, maxLength: count }),
      fc
        .tuple(fc.nat(count), fc.constantFrom(1, 255), byte)
        .map(([zeros, first, rest]) =>
          Array.from({ length: count }, (_, at) => (at < zeros ? 0 : at === zeros ? first : rest)),
        ),
      fc
        .constantFrom(0, 1, 255)
        .chain((first) => fc.constantFrom(0, 255).map((rest) => [first, ...Array(count - 1).fill(rest)])),
    ),
  )
  fc.assert(
    fc.property(bytes, fc.constantFrom('', '0', 'O', 'l', '1', 'z'), (decoded, more) => {
      const text = base58.encode(Uint8Array.from(decoded)) + more
      const isOne =
        more === '' ? decoded.length === 32 : /[1z]/.test(more) && base58.decode(text).length === 32
      expect(isMint(text)).toBe(isOne)
    }),
    { numRuns: 500 },
  )
})
