// In: random operations. Out: proof that the small parts of the feeds keep their word: draws follow the weights, the
// bounded map forgets only what is old, a curve loses and makes nothing.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { buy, freshCurve, sell } from '../../src/ingest/simulator/curve.ts'
import { Popularity } from '../../src/ingest/simulator/popularity.ts'
import { Random } from '../../src/ingest/simulator/random.ts'

test('a slot is drawn exactly where a walk over the weights would find it, and never an empty one', () => {
  const settings = fc.array(fc.tuple(fc.nat(19), fc.constantFrom(0, 0.001, 0.5, 1, 7, 250)), { minLength: 1 })
  fc.assert(
    fc.property(
      settings,
      fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
      (sets, draws) => {
        const popularity = new Popularity(20)
        const weights = new Array<number>(20).fill(0)
        for (const [slot, weight] of [...sets, [3, 1] as const]) {
          popularity.set(slot, weight)
          weights[slot] = weight === 0 ? 0 : Math.max(1, Math.round(weight * 1_024))
        }
        const total = weights.reduce((sum, weight) => sum + weight, 0)
        for (const uniform of draws) {
          let left = Math.floor(uniform * total)
          const expected = weights.findIndex((weight) => {
            left -= weight
            return left < 0
          })
          expect(popularity.draw(uniform)).toBe(expected)
        }
      },
    ),
  )
})

test('whoever buys and sells back on a curve gets no more SOL than was paid, and the curve is as before', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.001, max: 20, noNaN: true }), { minLength: 1, maxLength: 30 }),
      (sols) => {
        const curve = freshCurve()
        const fills = sols.map((sol) => buy(curve, sol, Number.POSITIVE_INFINITY))
        const paid = fills.reduce((sum, { sol }) => sum + sol, 0)
        const back = fills.reduceRight((sum, { tokens }) => sum + sell(curve, tokens).sol, 0)
        expect(Math.abs(back - paid)).toBeLessThan(1e-6)
        expect(curve.sol).toBeCloseTo(30, 6)
        expect(curve.tokens).toBeCloseTo(1_073_000_000, 3)
      },
    ),
  )
})

test('the numbers of a seed are its own: even, in range, and far apart for neighbouring seeds', () => {
  const random = new Random(1)
  const draws = Array.from({ length: 20_000 }, () => random.next())
  expect(draws.every((draw) => draw >= 0 && draw < 1)).toBe(true)
  expect(draws.reduce((sum, draw) => sum + draw, 0) / draws.length).toBeCloseTo(0.5, 2)
  const firsts = new Set(Array.from({ length: 1_000 }, (_, seed) => new Random(seed).next()))
  expect(firsts.size).toBe(1_000)
  expect(new Random(2 ** 40).next()).not.toBe(new Random(0).next())
})
