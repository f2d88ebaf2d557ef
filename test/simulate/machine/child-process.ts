// A child process of the simulated machine, as Node shows it to its parent. Messages arrive in their order, each some time later.
import { EventEmitter } from 'node:events'
import type { Machine, SimulatedProcess } from './machine.ts'

/** How long a message takes at most, ms. */
const MESSAGE_MS_MAX = 0.5
/** How long a parent may not know that its child has ended, ms. */
const EXIT_TOLD_MS_MAX = 5

/** The child's side of the connection. */
export interface ChildSide {
  process: SimulatedProcess
  /** Called with each message. */
  onMessage(take: (message: never) => void): void
  send(message: object): void
  /** Ends the process. */
  exit(): void
}

type Sent = (error: Error | null) => void

/** The parent's side. */
class SimulatedChild extends EventEmitter {
  readonly pid: number
  connected = true
  readonly #machine: Machine
  readonly #process: SimulatedProcess
  #take: ((message: never) => void) | null = null
  #waiting: object[] = []
  /** When the last message in each direction arrives. */
  #toChildMs = 0
  #toParentMs = 0
  readonly #parent: SimulatedProcess

  constructor(machine: Machine, process: SimulatedProcess) {
    super()
    this.#machine = machine
    this.#process = process
    this.#parent = machine.running
    this.pid = process.pid
    process.onEnd(() => {
      this.connected = false
      machine.after(
        machine.draws.between(0, EXIT_TOLD_MS_MAX),
        () => this.emit('exit', null, 'SIGKILL'),
        this.#parent,
      )
    })
    this.#parent.onEnd(() => process.kill())
  }

  side(): ChildSide {
    return {
      process: this.#process,
      onMessage: (take) => {
        this.#take = take
        for (const message of this.#waiting.splice(0)) take(message as never)
      },
      send: (message) => this.#sendToParent(message),
      exit: () => this.#process.kill(),
    }
  }

  send(message: object, sent: Sent = () => {}): boolean {
    const machine = this.#machine
    const copy = structuredClone(message)
    this.#toChildMs = Math.max(this.#toChildMs, machine.nowMs + machine.draws.between(0, MESSAGE_MS_MAX))
    machine.after(
      this.#toChildMs - machine.nowMs,
      () => {
        if (this.#take === null) this.#waiting.push(copy)
        else this.#take(copy as never)
      },
      this.#process,
    )
    machine.queue(() => sent(null))
    return true
  }

  #sendToParent(message: object): void {
    const machine = this.#machine
    const copy = structuredClone(message)
    this.#toParentMs = Math.max(this.#toParentMs, machine.nowMs + machine.draws.between(0, MESSAGE_MS_MAX))
    machine.after(
      this.#toParentMs - machine.nowMs,
      () => {
        if (this.connected || this.#process.isAlive) this.emit('message', copy)
      },
      this.#parent,
    )
  }

  kill(): boolean {
    this.#process.kill()
    return true
  }

  disconnect(): void {
    this.connected = false
  }

  unref(): void {}
}

/** Starts a program as a child of the running process. */
export function forkSimulated(
  machine: Machine,
  name: string,
  start: (child: ChildSide) => void,
): SimulatedChild {
  const child = new SimulatedChild(machine, machine.fork(name))
  const side = child.side()
  machine.after(machine.draws.between(1, 20), () => start(side), side.process)
  return child
}
