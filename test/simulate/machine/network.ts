// Connections between processes of the simulated machine. Bytes arrive in their order, each some time later. The way to a host may be held,
// so that what was sent arrives once it is open again, or closed, so that its connections break with what is under way.
import { EventEmitter } from 'node:events'
import type { Draws, Machine, SimulatedProcess } from './machine.ts'

/** How long bytes are under way at most on a way that is fast, and on one that is slow, ms. */
const FAST_MS_MAX = 0.8
const SLOW_MS_MAX = 700

export type Way = 'open' | 'slow' | 'held' | 'closed'

/** One end of a connection. */
export class ConnectionEnd {
  readonly process: SimulatedProcess
  onBytes: (bytes: Buffer) => void = () => {}
  onClose: () => void = () => {}
  isClosed = false
  other!: ConnectionEnd
  readonly #network: Network
  /** When what was sent last arrives. */
  #dueMs = 0
  /** What has come to a way that is held. */
  #held: (() => void)[] = []

  constructor(network: Network, process: SimulatedProcess) {
    this.#network = network
    this.process = process
    process.onEnd(() => this.close())
  }

  send(bytes: Buffer): void {
    if (this.isClosed) return
    this.#deliver(() => {
      if (!this.other.isClosed) this.other.onBytes(bytes)
    })
  }

  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#network.ends.delete(this)
    this.#deliver(() => this.other.break())
  }

  /** It is over, and what is under way is lost. */
  break(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#network.ends.delete(this)
    this.onClose()
  }

  /** What was held arrives now. */
  release(): void {
    for (const act of this.#held.splice(0)) this.#network.machine.queue(act, this.other.process)
  }

  #deliver(act: () => void): void {
    const network = this.#network
    const { machine } = network
    this.#dueMs = Math.max(this.#dueMs, machine.nowMs + network.delayMs(this))
    machine.after(
      this.#dueMs - machine.nowMs,
      () => {
        if (this.#held.length > 0 || network.wayOf(this) === 'held') this.#held.push(act)
        else act()
      },
      this.other.process,
    )
  }
}

interface Listener {
  process: SimulatedProcess
  accept(end: ConnectionEnd): void
}

export class Network {
  readonly machine: Machine
  /** Of all connections. */
  readonly ends = new Set<ConnectionEnd>()
  readonly #draws: Draws
  readonly #listeners = new Map<number, Listener>()
  /** Of hosts; the others' are open. */
  readonly #ways = new Map<string, Way>()

  constructor(machine: Machine, draws: Draws) {
    this.machine = machine
    this.#draws = draws
  }

  /** Takes connections at a port for as long as the process lives. */
  listen(port: number, process: SimulatedProcess, accept: (end: ConnectionEnd) => void): void {
    const listener = { process, accept }
    this.#listeners.set(port, listener)
    process.onEnd(() => {
      if (this.#listeners.get(port) === listener) this.#listeners.delete(port)
    })
  }

  isListening(port: number): boolean {
    return this.#listeners.has(port)
  }

  /** The way of a host to all others. */
  setWay(host: string, way: Way): void {
    if (way === 'open') this.#ways.delete(host)
    else this.#ways.set(host, way)
    const touched = [...this.ends].filter((end) => [end.process.host, end.other.process.host].includes(host))
    for (const end of touched) {
      if (way === 'closed') this.machine.queue(() => end.break(), end.process)
      else if (way !== 'held') end.release()
    }
  }

  wayTo(host: string): Way {
    return this.#ways.get(host) ?? 'open'
  }

  /** The worse of those of both hosts. */
  wayOf({ process, other }: ConnectionEnd): Way {
    return this.#worse(process.host, other.process.host)
  }

  #worse(from: string, to: string): Way {
    const both = [this.wayTo(from), this.wayTo(to)]
    return (['closed', 'held', 'slow'] as const).find((way) => both.includes(way)) ?? 'open'
  }

  delayMs(end: ConnectionEnd): number {
    return this.#draws.between(0.05, this.wayOf(end) === 'slow' ? SLOW_MS_MAX : FAST_MS_MAX)
  }

  /** @param made gets this end; null: nobody listens there. It is not called at all where the way is held */
  connect(port: number, made: (end: ConnectionEnd | null) => void): void {
    const { machine } = this
    const { running } = machine
    const attempt = (): void => {
      const listener = this.#listeners.get(port)
      const way = listener === undefined ? 'open' : this.#worse(running.host, listener.process.host)
      if (way === 'held') return
      if (listener === undefined || way === 'closed') {
        made(null)
        return
      }
      const [here, there] = [new ConnectionEnd(this, running), new ConnectionEnd(this, listener.process)]
      here.other = there
      there.other = here
      this.ends.add(here).add(there)
      made(here)
      machine.queue(() => listener.accept(there), listener.process)
    }
    machine.after(this.#draws.between(0.1, FAST_MS_MAX), attempt, running)
  }
}

const refused = (port: number): Error =>
  Object.assign(new Error(`connect ECONNREFUSED 127.0.0.1:${port}`), { code: 'ECONNREFUSED' })

/** A connection as `node:net` gives it. */
export class SimulatedSocket extends EventEmitter {
  destroyed = false
  #end: ConnectionEnd | null = null
  readonly #machine: Machine

  constructor(network: Network, port: number) {
    super()
    this.#machine = network.machine
    network.connect(port, (end) => {
      if (end === null) return void this.destroy(refused(port))
      if (this.destroyed) return end.close()
      this.#end = end
      end.onBytes = (bytes) => void (this.destroyed || this.emit('data', bytes))
      end.onClose = () => void this.destroy()
      this.emit('connect')
    })
  }

  write(data: Uint8Array, sent: (error?: Error) => void = () => {}): boolean {
    if (this.#end === null || this.destroyed) {
      queueMicrotask(() => sent(new Error('the connection has ended')))
      return false
    }
    this.#end.send(Buffer.from(data))
    queueMicrotask(() => sent())
    return true
  }

  end(): this {
    return this.destroy()
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this
    this.destroyed = true
    this.#end?.close()
    this.#machine.queue(() => {
      if (error !== undefined && this.listenerCount('error') > 0) this.emit('error', error)
      this.emit('close')
    })
    return this
  }

  setNoDelay(): this {
    return this
  }
}
