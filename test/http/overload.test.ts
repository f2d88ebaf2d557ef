// When requests are refused because there is too much to do, and how many: with a clock of the test, turns of the event loop as long
// as the test says, and a server whose turns are as long as the work that it has let in.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  OVERLOAD_MS_MIN,
  OVERLOAD_SHARE_MAX,
  OVERLOAD_WAIT_MS,
  OVERLOAD_WAIT_MS_MAX,
} from '../../src/http/limits.ts'
import { Overload } from '../../src/http/overload.ts'
import type { Route } from '../../src/http/route.ts'

const routeOf = (access: Route['access']): Route => ({ access }) as Route
const READ = routeOf('read')
const LONG_MS = 2 * OVERLOAD_WAIT_MS_MAX

/** A server whose turns are as long as a test says. */
class Machine {
  nowMs = 0
  streamsEnded = 0
  readonly changes: boolean[] = []
  readonly overload = new Overload({
    endStreams: () => this.streamsEnded++,
    onChange: (isOverloaded) => this.changes.push(isOverloaded),
  })

  turn(workMs: number, wallMs = workMs): void {
    this.nowMs += wallMs
    this.overload.note(workMs, this.nowMs)
  }

  turnsFor(ms: number, workMs: number, wallMs = workMs): void {
    for (const untilMs = this.nowMs + ms; this.nowMs < untilMs; ) this.turn(workMs, wallMs)
  }

  /** Turns that are long until it is overloaded. */
  overloaded(): this {
    while (!this.overload.isOverloaded) this.turn(LONG_MS)
    return this
  }

  /** Refused of so many requests. */
  refusedOf(access: Route['access'], count = 1_000): number {
    let refused = 0
    for (let at = 0; at < count; at++) if (this.overload.refusal(routeOf(access)) !== null) refused++
    return refused
  }
}

describe('nothing is refused', () => {
  it('before the wait has stood for a second', () => {
    const machine = new Machine()
    machine.turnsFor(OVERLOAD_MS_MIN, LONG_MS)
    expect(machine.overload.isOverloaded).toBe(false)
    expect(machine.refusedOf('read')).toBe(0)
    machine.turnsFor(2 * LONG_MS, LONG_MS)
    expect(machine.overload.isOverloaded).toBe(true)
  })

  it('for one turn that takes long, however long, nor for the backlog that it leaves', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.1, max: 60, noNaN: true }),
        fc.double({ min: 0, max: 0.5 }),
        (seconds, use) => {
          const machine = new Machine()
          // What came meanwhile is the work of the next turn.
          for (let workMs = seconds * 1_000; workMs > 1; workMs *= use) machine.turn(workMs)
          machine.turnsFor(500, 1)
          expect(machine.changes).toEqual([])
        },
      ),
    )
  })

  it('where one turn a second is short: the queue is empty then', () => {
    const machine = new Machine()
    for (let second = 0; second < 60; second++) {
      machine.turnsFor(900, LONG_MS)
      machine.turn(1)
    }
    expect(machine.changes).toEqual([])
  })

  it('for time in which the thread did not run: the machine slept, or had other things to do', () => {
    const machine = new Machine()
    machine.turnsFor(60_000, OVERLOAD_WAIT_MS_MAX, 5 * OVERLOAD_WAIT_MS_MAX)
    machine.turn(20, 3_600_000)
    expect(machine.changes).toEqual([])
  })
})

describe('an overloaded server', () => {
  it('refuses reads, pushes and queries alike, then streams and submissions, and never operators or those who look at it', () => {
    const machine = new Machine().overloaded()
    expect(machine.refusedOf('agent')).toBe(0)
    expect(machine.streamsEnded).toBe(0)
    machine.turnsFor(5_000, 10 * LONG_MS)
    const most = OVERLOAD_SHARE_MAX * 1_000
    for (const access of ['read', 'personal', 'feed', 'researcher', 'agent'] as const)
      expect(Math.abs(machine.refusedOf(access) - most)).toBeLessThan(10)
    for (const access of ['open', 'admin', 'forwarded'] as const) expect(machine.refusedOf(access)).toBe(0)
    expect(machine.streamsEnded).toBeGreaterThan(0)
    const { reads, pushes, lake, submissions } = machine.overload.refused
    expect(reads).toBe(pushes + lake)
    for (const count of [pushes, lake, submissions]) expect(Math.abs(count - most)).toBeLessThan(10)
    expect(machine.overload.reason).toBe(
      'the server has more to do than it can: it refuses 90 % of reads, pushes and queries, and 90 % of submissions',
    )
  })

  it('says that nothing was done, and when to come back, apart from the others', () => {
    const machine = new Machine().overloaded()
    const seconds = new Map<string, number>()
    for (let at = 0; at < 1_000; at++) {
      const refusal = machine.overload.refusal(READ)
      if (refusal === null) continue
      expect(refusal).toMatchObject({ code: 'overloaded', status: 503 })
      expect(refusal.extra.mayBeStored).toBeUndefined()
      const { 'Retry-After': after } = refusal.headers
      expect(Number(after)).toBe(Math.ceil(Number(refusal.extra.retryAfterMs) / 1_000))
      seconds.set(after!, (seconds.get(after!) ?? 0) + 1)
    }
    expect([...seconds.keys()].sort()).toEqual(['2', '3', '4'])
    const counts = [...seconds.values()]
    expect(Math.max(...counts)).toBeLessThan(1.5 * Math.min(...counts))
  })

  it('is back within five seconds, from the most that it refuses', () => {
    const machine = new Machine().overloaded()
    machine.turnsFor(20_000, 10 * LONG_MS)
    const fromMs = machine.nowMs
    while (machine.overload.isOverloaded) machine.turn(1, 50)
    expect(machine.nowMs - fromMs).toBeLessThan(5_000)
    expect(machine.changes).toEqual([true, false])
    expect(machine.overload.reason).toBeNull()
    expect(machine.refusedOf('read')).toBe(0)
  })
})

it('keeps the share that brings the wait to what is aimed at: with less it would come back, and go, and come back', () => {
  const machine = new Machine().overloaded()
  machine.turnsFor(1_000, 1.5 * OVERLOAD_WAIT_MS)
  const share = machine.overload.shareOf('reads')
  machine.turnsFor(5_000, OVERLOAD_WAIT_MS)
  expect(Math.abs(machine.overload.shareOf('reads') - share)).toBeLessThan(0.05)
  machine.turnsFor(2_000, 0.95 * OVERLOAD_WAIT_MS)
  expect(share - machine.overload.shareOf('reads')).toBeLessThan(0.1)
})

it('goes on where a turn is short between those in which it works: what is left of a flush, say', () => {
  const machine = new Machine().overloaded()
  let pending = 0
  const turns: number[] = []
  for (let at = 0; at < 2_000; at++) {
    const workMs = at % 4 === 0 ? 1 : 2 + pending
    if (at % 4 !== 0) pending = 0
    machine.turn(workMs, Math.max(50, workMs))
    for (let request = 0; request < 2 * Math.max(50, workMs); request++)
      if (machine.overload.refusal(READ) === null) pending++
    if (at >= 1_000 && at % 4 !== 0) turns.push(workMs)
  }
  expect(machine.overload.isOverloaded).toBe(true)
  turns.sort((a, b) => a - b)
  expect(turns[Math.floor(turns.length * 0.99)]).toBeLessThan(OVERLOAD_WAIT_MS_MAX)
})

/**
 * A server that is sent `load` times what it can do: each turn does the work that came during the turn before, of which what is refused
 * costs a hundredth, and `eachMs` beside it.
 * @returns how long its turns took, ms, the longest last
 */
function serve(machine: Machine, load: number, eachMs: number, ms: number): number[] {
  const turns: number[] = []
  let wallMs = 10
  for (const untilMs = machine.nowMs + ms; machine.nowMs < untilMs; ) {
    let workMs = eachMs
    for (let at = 0; at < load * wallMs; at++) workMs += machine.overload.refusal(READ) === null ? 1 : 0.01
    wallMs = Math.max(1, workMs)
    machine.turn(workMs, wallMs)
    turns.push(workMs)
  }
  return turns.toSorted((a, b) => a - b)
}

it('at up to three times what it can do the wait stays short, most of the thread does what was let in, and it recovers', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1.3, max: 3, noNaN: true }),
      fc.integer({ min: 1, max: 10 }),
      (load, eachMs) => {
        const machine = new Machine()
        serve(machine, load, eachMs, 20_000)
        const { reads: before } = machine.overload.refused
        const turns = serve(machine, load, eachMs, 20_000)
        expect(turns[Math.floor(turns.length * 0.99)]).toBeLessThan(3 * OVERLOAD_WAIT_MS_MAX)
        const done = load * 20_000 - (machine.overload.refused.reads - before)
        expect(done).toBeGreaterThan(0.6 * 20_000)
        serve(machine, 0.6, eachMs, 5_000)
        expect(machine.overload.isOverloaded).toBe(false)
      },
    ),
    { numRuns: 200 },
  )
})
