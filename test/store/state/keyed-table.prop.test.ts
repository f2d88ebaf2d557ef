// On random writes: a table holds what a Map would, in the order of the last writes, and reports what changed.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyedTable } from '../../../src/store/state/keyed-table.ts'
import { Columns, PlainValues } from '../../../src/store/state/value-list.ts'

interface Entry {
  name: string
  at: number
}

const key = fc.integer({ min: 0, max: 30 }).map(String)
const step = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom('set', 'replace', 'delete'), key) },
  fc.tuple(fc.constantFrom('deleteOldest', 'save'), fc.constant('')),
)

/** The reference: a Map in which an entry is deleted before it is written again. */
class Model {
  readonly map = new Map<string, Entry>()
  changed = new Set<string>()

  apply(action: string, name: string, value: Entry): void {
    if (action === 'set') this.map.delete(name)
    if (action === 'delete') {
      if (this.map.delete(name)) this.changed.add(name)
      return
    }
    this.map.set(name, value)
    if (action === 'set') this.changed.delete(name)
    this.changed.add(name)
  }

  deleteOldest(isOver: (value: Entry) => boolean): void {
    for (const [name, value] of this.map) {
      if (!isOver(value)) return
      this.apply('delete', name, value)
    }
  }
}

test.each([
  ['objects', () => new PlainValues<Entry>()],
  ['columns', () => new Columns<Entry>(['name'], ['at'])],
])('a table of %s is a map in order of the last writes', (_, valuesOf) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const [table, model] = [new KeyedTable(true, valuesOf()), new Model()]
      for (const [index, [action, name]] of steps.entries()) {
        const value = { name: `${name} ${index}`, at: index + 0.5 }
        if (action === 'save') {
          const changes = Array.from(model.changed, (each) => [each, model.map.get(each)])
          expect([...table.takeChanges()]).toEqual(changes)
          model.changed = new Set()
        } else if (action === 'deleteOldest') {
          table.deleteOldest(({ at }) => at < index - 40)
          model.deleteOldest(({ at }) => at < index - 40)
        } else {
          if (action === 'delete') table.delete(name)
          else if (action === 'set') table.set(name, value)
          else table.update(name, value, () => value)
          model.apply(action, name, value)
        }
        expect([table.size, table.get(name), table.has(name)]).toEqual([
          model.map.size,
          model.map.get(name),
          model.map.has(name),
        ])
      }
      expect([...table.entries()]).toEqual([...model.map.entries()])
      expect([...table.values()]).toEqual([...model.map.values()])
    }),
    { numRuns: 200 },
  )
})
