import fc from 'fast-check'
import { expect, it } from 'vitest'
import { KeyedSums } from '../../../src/lib/collections/keyed-sums.ts'

it('gives the sum of what was added to each key, also where so many are zero that they are forgotten', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: -3, max: 3 })))
  fc.assert(
    fc.property(steps, fc.constantFrom(0, 2_000), (taken, others) => {
      const sums = new KeyedSums()
      for (let index = 0; index < others; index++) sums.add(`other ${index}`, 1)
      const expected = new Map<string, number>()
      for (const [key, amount] of taken) {
        sums.add(key, amount)
        expected.set(key, (expected.get(key) ?? 0) + amount)
      }
      for (const key of ['a', 'b', 'c']) expect(sums.get(key)).toBe(expected.get(key) ?? 0)
    }),
    { numRuns: 50 },
  )
})
