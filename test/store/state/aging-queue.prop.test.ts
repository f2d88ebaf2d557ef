// On random pushes and ages: a queue holds what a list would, and hands out what is new.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AgingQueue } from '../../../src/store/state/aging-queue.ts'
import { Columns } from '../../../src/store/state/value-list.ts'

interface Value {
  name: string
  at: number
}

const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ action: fc.constant('push'), by: fc.integer({ min: 0, max: 5 }) }) },
  fc.record({
    action: fc.constantFrom('age', 'crowd', 'save', 'reload'),
    by: fc.integer({ min: 0, max: 90 }),
  }),
)

test('a queue is a list whose oldest values end first', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 500 }), (steps) => {
      const newQueue = () => new AgingQueue<Value>(true, new Columns(['name'], ['at']))
      let queue = newQueue()
      let list: [number, Value][] = []
      let fresh: [number, Value][] = []
      let nowMs = 0
      for (const { action, by } of steps) {
        if (action === 'push') {
          nowMs += by
          const value = { name: `value ${nowMs}`, at: nowMs + 0.5 }
          queue.push(nowMs, value)
          const entry: [number, Value] = [nowMs, value]
          list.push(entry)
          fresh.push(entry)
        } else if (action === 'save') {
          expect([...queue.takeNew()]).toEqual(fresh.filter((entry) => list.includes(entry)))
          fresh = []
        } else if (action === 'reload') {
          const loaded = newQueue()
          loaded.load(queue.entries())
          queue = loaded
          fresh = []
        } else {
          const endedAtMs = action === 'age' ? nowMs - by : -1
          const entriesMax = action === 'crowd' ? by : Number.POSITIVE_INFINITY
          const ended: [number, Value][] = []
          queue.deleteEnded(endedAtMs, entriesMax, (knownAtMs, value) => ended.push([knownAtMs, value]))
          const left = list.filter(
            ([knownAtMs], index) => knownAtMs > endedAtMs && list.length - index <= entriesMax,
          )
          expect([...ended, ...left]).toEqual(list)
          list = left
        }
        expect(queue.size).toBe(list.length)
      }
      expect([...queue.entries()]).toEqual(list)
    }),
    { numRuns: 300 },
  )
})
