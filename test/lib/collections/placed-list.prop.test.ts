import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Placed, PlacedList } from '../../../src/lib/collections/placed-list.ts'

it('holds what a Set would hold after any adding and removing, and each item knows its place', () => {
  const steps = fc.array(fc.record({ item: fc.nat(9), removes: fc.boolean() }), { maxLength: 200 })
  fc.assert(
    fc.property(steps, (taken) => {
      const items: Placed[] = Array.from({ length: 10 }, () => ({ place: -1 }))
      const list = new PlacedList<Placed>()
      const expected = new Set<Placed>()
      for (const { item: index, removes } of taken) {
        const item = items[index]
        if (item === undefined) continue
        if (removes) list.remove(item)
        else if (!expected.has(item)) list.add(item)
        if (removes) expected.delete(item)
        else expected.add(item)
        expect(list.size).toBe(expected.size)
        for (const [place, held] of list.toArray().entries()) {
          expect(expected.has(held)).toBe(true)
          expect(held.place).toBe(place)
        }
        for (const other of items) if (!expected.has(other)) expect(other.place).toBe(-1)
      }
    }),
  )
})
