// Checks the bounded map against a list that does the same the slow way.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedMap } from '../../../src/lib/collections/bounded-map.ts'

const ENTRIES_MAX = 5
const WEIGHT_MAX = 40

type Pair = readonly [key: number, weight: number]

const operation = fc.tuple(
  fc.constantFrom('set', 'set', 'set', 'get', 'renew', 'delete', 'clear'),
  fc.nat(9),
  fc.nat(60),
)

/** The oldest entry first. */
class SlowMap {
  pairs: Pair[] = []
  readonly evicted: Pair[] = []

  without(key: number): Pair[] {
    return this.pairs.filter(([other]) => other !== key)
  }

  weight(): number {
    return this.pairs.reduce((sum, [, weight]) => sum + weight, 0)
  }

  run(kind: string, key: number, weight: number): void {
    const held = this.pairs.find(([other]) => other === key)
    if (kind === 'clear') this.pairs = []
    if (kind === 'delete') this.pairs = this.without(key)
    if (kind === 'renew' && held !== undefined) this.pairs = [...this.without(key), held]
    if (kind !== 'set') return
    this.pairs = [...this.without(key), [key, weight]]
    while (this.pairs.length > 1 && (this.pairs.length > ENTRIES_MAX || this.weight() > WEIGHT_MAX))
      this.evicted.push(this.pairs.shift()!)
  }
}

test('a bounded map evicts the oldest entries, and no more of them than its bounds ask for', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
      const slow = new SlowMap()
      const evicted: Pair[] = []
      const map = new BoundedMap<number, number>({
        entriesMax: ENTRIES_MAX,
        weightMax: WEIGHT_MAX,
        weigh: (weight) => weight,
        onEvict: (...pair) => evicted.push(pair),
      })
      for (const [kind, key, weight] of operations) {
        const held = slow.pairs.find(([other]) => other === key)
        if (kind === 'set') map.set(key, weight)
        else if (kind === 'get') expect(map.get(key)).toBe(held?.[1])
        else if (kind === 'renew') expect(map.renew(key)).toBe(held?.[1])
        else if (kind === 'delete') expect(map.delete(key)).toBe(held !== undefined)
        else map.clear()
        slow.run(kind, key, weight)
        expect([map.size, map.weight]).toEqual([slow.pairs.length, slow.weight()])
        expect(map.oldest?.key).toBe(slow.pairs[0]?.[0])
        expect(map.newest?.key).toBe(slow.pairs.at(-1)?.[0])
        for (let other = 0; other < 10; other++)
          expect(map.has(other)).toBe(slow.pairs.some(([each]) => each === other))
      }
      expect(evicted).toEqual(slow.evicted)
    }),
    { numRuns: 500 },
  )
})
