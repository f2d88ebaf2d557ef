// The tables of states: an event that cannot happen is told, every state can be reached, and only the last ones are never left.
import { expect, test } from 'vitest'
import { SEGMENT_STATES } from '../../src/journal/writer/segment-states.ts'
import { type StateTable, stateAfter } from '../../src/lib/states.ts'
import { WRITER_STATES } from '../../src/store/log/writer-states.ts'

/** The states that events lead to, from these on. */
function reachable(table: StateTable<string, string>, from: readonly string[]): string[] {
  const found = new Set(from)
  for (const state of found)
    for (const next of Object.values(table[state])) if (next !== null) found.add(next)
  return [...found].sort()
}

/** The states that are never left. */
const lastOf = (table: StateTable<string, string>): string[] =>
  Object.keys(table).filter((state) =>
    Object.values(table[state]).every((next) => next === null || next === state),
  )

test.each([
  ['the writer of the log', WRITER_STATES, ['idle', 'unsealed'], ['closed']],
  ['a segment of the journal', SEGMENT_STATES, ['open'], ['durable']],
] as const)('%s: every state is reached, and left again but for the last', (_, table, first, last) => {
  expect(reachable(table, first)).toEqual(Object.keys(table).sort())
  expect(lastOf(table)).toEqual(last)
})

test('what cannot happen is told, and changes nothing', () => {
  expect(stateAfter(SEGMENT_STATES, 'unsynced', 'synced')).toBe('synced')
  expect(() => stateAfter(SEGMENT_STATES, 'syncFailed', 'synced')).toThrow(
    'synced cannot happen to what is syncFailed',
  )
})
