// The states of something, and what may happen in each, as a table that the compiler checks: no state and no event is left out.
import { assert } from './assert.ts'

/** For each state what it becomes by each event; null: the event cannot happen in it. */
export type StateTable<State extends string, Event extends string> = Readonly<
  Record<State, Readonly<Record<Event, State | null>>>
>

export function stateAfter<State extends string, Event extends string>(
  table: StateTable<State, Event>,
  state: State,
  event: Event,
): State {
  const next = table[state][event]
  assert(next !== null, `${event} cannot happen to what is ${state}`)
  return next
}
