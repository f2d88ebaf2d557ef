// A sorted list against an array that is sorted anew for each question.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { firstOf, SortedList } from '../../src/submissions/xp/sorted-list.ts'

interface Item {
  readonly id: number
  readonly xp: number
}
const compare = (a: Item, b: Item): number => b.xp - a.xp || a.id - b.id

/** Items with few different values, so that many are equal, and enough of them to split chunks. */
const start = fc
  .array(fc.integer({ min: 0, max: 40 }), { maxLength: 3_000, size: 'max' })
  .map((values) => values.map((xp, id): Item => ({ id, xp })))
const change = fc.record({ pick: fc.nat(), xp: fc.integer({ min: 0, max: 40 }), isRemoved: fc.boolean() })

test('a sorted list has the order, the places and the first items of a sorted array', () => {
  fc.assert(
    fc.property(start, fc.array(change, { maxLength: 300, size: 'max' }), (items, changes) => {
      const list = new SortedList(compare, items)
      const expected = new Set(items)
      let nextId = items.length
      for (const { pick, xp, isRemoved } of changes) {
        const found = [...expected].at(pick % Math.max(1, expected.size))
        if (isRemoved && found !== undefined) {
          list.remove(found)
          expected.delete(found)
        } else {
          const item = { id: nextId++, xp }
          list.add(item)
          expected.add(item)
        }
      }
      const sorted = [...expected].sort(compare)
      expect(list.first(sorted.length + 1)).toEqual(sorted)
      expect(list.first(7)).toEqual(sorted.slice(0, 7))
      for (const [index, item] of sorted.entries())
        if (index % 97 === 0) expect(list.indexOf(item)).toBe(index)
    }),
    { numRuns: 60 },
  )
})

test('the first items are those of a sorted array', () => {
  fc.assert(
    fc.property(start, fc.integer({ min: 1, max: 50 }), (items, count) => {
      expect(firstOf(items, count, compare)).toEqual(items.toSorted(compare).slice(0, count))
    }),
  )
})
