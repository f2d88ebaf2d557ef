import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { random as seeded } from '../../bench/datasets/random.ts'
import { LazyRanking } from '../../src/market/rankings/lazy-ranking.ts'
import { Ranking } from '../../src/market/rankings/ranking.ts'

const IDS = 3_000

/** Plays `steps` random changes; few distinct keys make many ties, many make few. */
function play(
  seed: number,
  steps: number,
  distinctKeys: number,
  check: (ranking: Ranking, keys: Map<number, number>) => void,
): void {
  const next = seeded(seed)
  const ranking = new Ranking((a, b) => a < b)
  const keys = new Map<number, number>()
  const key = () => Math.floor(next() * distinctKeys) - (next() < 0.01 ? Number.POSITIVE_INFINITY : 0)
  for (let step = 0; step < steps; step++) {
    const id = Math.floor(next() * 3_000)
    const old = keys.get(id)
    if (old === undefined) {
      keys.set(id, key())
      ranking.insert(id, keys.get(id)!)
    } else if (next() < (step > steps / 2 ? 0.6 : 0.2)) {
      ranking.remove(id, old)
      keys.delete(id)
    } else {
      keys.set(id, next() < 0.5 ? old + 1 : key())
      ranking.update(id, old, keys.get(id)!)
    }
    if (step % 1_000 === 999) check(ranking, keys)
  }
}

const sorted = (keys: Map<number, number>): number[] =>
  [...keys].sort(([a, aKey], [b, bKey]) => (aKey === bKey ? a - b : bKey > aKey ? 1 : -1)).map(([id]) => id)

/** Ascending is the reverse, but unknown keys stay last. */
const ascending = (keys: Map<number, number>): number[] => {
  const ids = sorted(keys)
  const isKnown = (id: number) => keys.get(id) !== Number.NEGATIVE_INFINITY
  return [...ids.filter(isKnown).toReversed(), ...ids.filter((id) => !isKnown(id))]
}

describe('a ranking', () => {
  it('equals a full sort after any changes, in both orders and at any offset', () => {
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(1, 5, 1_000, 1e9), (seed, distinctKeys) => {
        play(seed, 10_000, distinctKeys, (ranking, keys) => {
          const expected = sorted(keys)
          expect(ranking.size).toBe(expected.length)
          expect([...ranking.slice(0, 1e9, true)]).toEqual(expected)
          const offset = Math.floor(expected.length / 3)
          expect([...ranking.slice(offset, 50, true)]).toEqual(expected.slice(offset, offset + 50))
          for (const from of [offset, Math.max(0, expected.length - 20)])
            expect([...ranking.slice(from, 50, false)]).toEqual(ascending(keys).slice(from, from + 50))
          expect(ranking.last()).toBe(expected.length === 0 ? -1 : expected[expected.length - 1])
        })
      }),
      { numRuns: 6 },
    )
  })

  it('keeps a snapshot as it was, whatever happens afterwards', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const kept: { expected: number[]; read: () => number[] }[] = []
        play(seed, 8_000, 1_000, (ranking, keys) => {
          const snapshot = ranking.snapshot()
          kept.push({ expected: sorted(keys), read: () => [...snapshot.slice(0, 1e9, true)] })
        })
        for (const { expected, read } of kept) expect(read()).toEqual(expected)
      }),
      { numRuns: 4 },
    )
  })
})

describe('a lazy ranking', () => {
  it('is exact whenever it is read, however many changes are pending', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.constantFrom(1, 50, 1e9),
        fc.constantFrom(20, 150, 4_096),
        fc.constantFrom(31, 200, 3_000),
        (seed, distinctKeys, pendingMax, readEvery) => {
          const next = seeded(seed)
          const keys = new Float64Array(IDS)
          const before = (a: number, b: number) => a < b
          const ranking = new LazyRanking({ capacity: IDS, keys, before, pendingMax, topMax: 64 })
          const standing = new Map<number, number>()
          let seen: number[] = []
          // Ids at the top sink again and again, deeper than all others.
          const sinks = () => seen.length > 0 && next() < 0.4
          for (let step = 0; step < 12_000; step++) {
            const isSinking = sinks()
            const id = isSinking ? seen[Math.floor(next() * seen.length)] : Math.floor(next() * next() * IDS)
            const present = standing.get(id)
            if (present !== undefined && next() < 0.1) {
              ranking.remove(id)
              standing.delete(id)
              continue
            }
            if (isSinking) keys[id] = -step
            else
              keys[id] =
                next() < 0.5 && present !== undefined ? present + 1 : Math.floor(next() * distinctKeys)
            if (present === undefined) ranking.insert(id)
            else ranking.changed(id)
            standing.set(id, keys[id])
            const isWhole = step % 3_000 === 2_999
            if (step % readEvery !== 0 && !isWhole) continue
            // Sorting the whole order is slow, so most reads of the top are compared by their keys only.
            seen = [...ranking.slice(10, 54, true)]
            const top = seen.map((each) => keys[each])
            expect(top).toEqual([...standing.values()].sort((a, b) => b - a).slice(10, 64))
            if (!isWhole) continue
            expect(ranking.size).toBe(standing.size)
            expect([...ranking.slice(10, 50, true)]).toEqual(sorted(standing).slice(10, 60))
            expect([...ranking.slice(0, IDS, true)]).toEqual(sorted(standing))
            expect(ranking.last()).toBe(sorted(standing).at(-1) ?? -1)
          }
        },
      ),
      { numRuns: 10 },
    )
  })

  it('finds an id whose change was pending below the floor when all ids above it are gone', () => {
    const keys = Float64Array.from({ length: 1_000 }, (_, id) => 1_000 - id)
    const before = (a: number, b: number) => a < b
    const ranking = new LazyRanking({ capacity: 1_000, keys, before, pendingMax: 20, topMax: 10 })
    for (let id = 0; id < 1_000; id++) ranking.insert(id)
    ranking.slice(0, 10, true)
    keys[500] = 940.5
    ranking.changed(500)
    expect(ranking.slice(0, 2, true)).toEqual(Uint32Array.of(0, 1))
    for (let id = 0; id < 60; id++) ranking.remove(id)
    expect(ranking.slice(0, 2, true)).toEqual(Uint32Array.of(500, 60))
  })

  it('applies the changes of a short list at another one than rankings do that let another part be pending', () => {
    const appliedAt = (pendingPart: number): number => {
      let change = 0
      let applied = 0
      // All keys are the same, so that whatever is applied is compared by its id.
      const before = (a: number, b: number) => {
        if (applied === 0) applied = change
        return a < b
      }
      const ranking = new LazyRanking({ capacity: IDS, keys: new Float64Array(IDS), before, pendingPart })
      ranking.insertSorted(Uint32Array.from({ length: IDS }, (_, id) => id))
      while (applied === 0 && change < IDS) ranking.changed(change++)
      return applied
    }
    expect([1, 31 / 32, 1 / 2].map(appliedAt)).toEqual([IDS / 4, Math.floor((IDS / 4) * (31 / 32)), IDS / 8])
  })
})
