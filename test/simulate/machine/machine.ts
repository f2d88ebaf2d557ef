// A simulated machine: its time, its processes and the order of their work. Nothing waits: time goes on to the next event. All that
// differs between two runs is drawn from the seed.
import { random } from '../../../bench/datasets/random.ts'

/** The system's own, before `install` replaces them. */
const nextTurn = globalThis.setImmediate

/** How long work that is ready may wait for its turn, ms. */
const TURN_MS_MAX = 0.05
/** How long a turn of a queue takes at least, ms: what was queued earlier goes first. */
const TURN_MS_MIN = 0.000_1

/** Draws from one stream of the seed. */
export class Draws {
  readonly next: () => number

  constructor(seed: number) {
    this.next = random(seed)
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** A whole number from `from` to `to`, inclusive. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from)
  }

  of<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.next() * values.length)]
  }

  /** One of the names, by their weights. */
  weighted<Name extends string>(weights: Readonly<Partial<Record<Name, number>>>): Name {
    const entries = Object.entries(weights) as [Name, number][]
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    return entries[entries.length - 1][0]
  }
}

/** A stream of draws of its own for each purpose: what one draws less changes no other. */
export const drawsOf = (seed: number, purpose: string): Draws => {
  let mixed = Math.imul(seed, 0x9e3779b1)
  for (const character of purpose) mixed = Math.imul(mixed ^ character.charCodeAt(0), 0x01000193)
  return new Draws(mixed)
}

/** A process: its timers, its operations on the disk and its messages end with it. */
export class SimulatedProcess {
  readonly pid: number
  readonly name: string
  /** On which it runs, with the processes that it starts. */
  readonly host: string
  isAlive = true
  /** Until then it stands still: its work waits, in its order. */
  frozenUntilMs = 0
  /** When the last turn of its queue is due. */
  queueMs = 0
  readonly #onEnd: (() => void)[] = []

  constructor(pid: number, name: string, host = name) {
    this.pid = pid
    this.name = name
    this.host = host
  }

  onEnd(act: () => void): void {
    this.#onEnd.push(act)
  }

  /** Ends at once: nothing more of it runs. */
  kill(): void {
    if (!this.isAlive) return
    this.isAlive = false
    for (const act of this.#onEnd.splice(0)) act()
  }
}

export interface Task {
  dueMs: number
  /** Of those that are due at once, the smaller one is first. */
  order: number
  of: SimulatedProcess
  act: (() => void) | null
}

const isBefore = (a: Task, b: Task): boolean =>
  a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order)

export class Machine {
  /** Time since the machine was started, ms: no process can set it. */
  nowMs = 0
  /** What the machine's clock is wrong by. */
  clockErrorMs = 0
  /** True time when the machine was started, Unix ms. */
  readonly startMs: number
  readonly draws: Draws
  /** For identities and keys. */
  readonly secrets: Draws
  /** Whose work runs. */
  running: SimulatedProcess
  /** Who plays the world around the server: clients, the operator, and the faults. */
  readonly world = new SimulatedProcess(1, 'world')
  readonly processes = new Map<number, SimulatedProcess>()
  tasks = 0
  readonly #heap: Task[] = []
  #order = 0
  #lastPid = 1
  /** Work of the real machine that the running process waits for. */
  readonly #outside = new Set<Promise<unknown>>()

  constructor(seed: number) {
    this.draws = drawsOf(seed, 'schedule')
    this.secrets = drawsOf(seed, 'secrets')
    this.running = this.world
    // A day of that year, and any time of that day.
    this.startMs = Date.UTC(2026, 0, 1) + drawsOf(seed, 'date').whole(0, 365 * 86_400_000)
  }

  get trueMs(): number {
    return Math.floor(this.startMs + this.nowMs)
  }

  /** What the machine's clock says, Unix ms. */
  get wallMs(): number {
    return this.trueMs + this.clockErrorMs
  }

  fork(name: string, host = this.running.host): SimulatedProcess {
    const forked = new SimulatedProcess(++this.#lastPid, name, host)
    this.processes.set(forked.pid, forked)
    forked.onEnd(() => this.processes.delete(forked.pid))
    return forked
  }

  /** Work of the running process after a time. */
  after(ms: number, act: () => void, of = this.running): Task {
    return this.#add(this.nowMs + ms, of, act)
  }

  /** Work of the running process for its next turn: each process has its queue, and theirs interleave as the seed says. */
  queue(act: () => void, of = this.running): Task {
    of.queueMs = Math.max(of.queueMs + TURN_MS_MIN, this.nowMs + this.draws.between(0, TURN_MS_MAX))
    return this.#add(of.queueMs, of, act)
  }

  /** Lets `ms` pass. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms
    for (let task = this.#heap[0]; task !== undefined && task.dueMs <= untilMs; task = this.#heap[0])
      await this.#runFirst()
    this.nowMs = untilMs
  }

  /** Lets time pass until something is so. @returns false where it was not within `msMax` */
  async until(isSo: () => boolean, msMax: number): Promise<boolean> {
    const untilMs = this.nowMs + msMax
    while (!isSo()) {
      const first = this.#heap[0]
      if (first === undefined || first.dueMs > untilMs) {
        this.nowMs = untilMs
        return isSo()
      }
      await this.#runFirst()
    }
    return true
  }

  /** Work of the real machine: until it is done no time passes, and nothing else runs. */
  async outside<Result>(work: Promise<Result>): Promise<Result> {
    this.#outside.add(work)
    try {
      return await work
    } finally {
      this.#outside.delete(work)
    }
  }

  async #runFirst(): Promise<void> {
    const task = this.#take()
    const { act, dueMs, of } = task
    this.nowMs = Math.max(this.nowMs, dueMs)
    if (act === null || !of.isAlive) return
    if (of.frozenUntilMs > this.nowMs) {
      task.dueMs = of.frozenUntilMs
      this.#put(task)
      return
    }
    this.tasks++
    this.running = of
    act()
    // What it has resolved runs within this turn, as work of the same process.
    await new Promise<void>((resolve) => nextTurn(resolve))
    while (this.#outside.size > 0) {
      await Promise.allSettled(this.#outside)
      await new Promise<void>((resolve) => nextTurn(resolve))
    }
    this.running = this.world
  }

  #add(dueMs: number, of: SimulatedProcess, act: () => void): Task {
    const task: Task = { dueMs, order: ++this.#order, of, act }
    this.#put(task)
    return task
  }

  #put(task: Task): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(task)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(task, heap[parent])) break
      heap[at] = heap[parent]
      at = parent
    }
    heap[at] = task
  }

  #take(): Task {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()!
    if (heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++
      if (!isBefore(heap[child], last)) break
      heap[at] = heap[child]
      at = child
    }
    heap[at] = last
    return first
  }
}
