// Property tests of the small parts of the feeds: weighted draws, the curve, the random generator.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { buy, newCurve, sell } from '../../src/ingest/simulator/curve.ts'
import { Popularity } from '../../src/ingest/simulator/popularity.ts'
import { Random } from '../../src/ingest/simulator/random.ts'

test('a draw finds the same slot as a linear walk over the weights, and never a slot without weight', () => {
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

test('buying and selling back on a curve returns the SOL that was paid and restores the curve', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.001, max: 20, noNaN: true }), { minLength: 1, maxLength: 30 }),
      (sols) => {
        const curve = newCurve()
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

test('random numbers are uniform, in range, and different for neighbouring seeds', () => {
  const random = new Random(1)
  const draws = Array.from({ length: 20_000 }, () => random.next())
  expect(draws.every((draw) => draw >= 0 && draw < 1)).toBe(true)
  expect(draws.reduce((sum, draw) => sum + draw, 0) / draws.length).toBeCloseTo(0.5, 2)
  const firsts = new Set(Array.from({ length: 1_000 }, (_, seed) => new Random(seed).next()))
  expect(firsts.size).toBe(1_000)
  expect(new Random(2 ** 40).next()).not.toBe(new Random(0).next())
})
