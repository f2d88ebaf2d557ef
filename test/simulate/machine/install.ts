// Puts a simulated machine in the place of the real one: timers, clocks, random numbers, processes and files of this process are its
// own from then on. To be called before anything of `src` is loaded.
import childProcess from 'node:child_process'
import crypto from 'node:crypto'
import fs from 'node:fs'
import filePromises from 'node:fs/promises'
import http from 'node:http'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import timerPromises from 'node:timers/promises'
import { type ChildSide, forkSimulated } from './child-process.ts'
import { fileFunctions, promisedFileFunctions } from './file-functions.ts'
import { SIMULATED_ROOT, SimulatedFiles } from './files.ts'
import { SimulatedClientRequest } from './http-request.ts'
import { drawsOf, Machine, type Task } from './machine.ts'
import { Network, SimulatedSocket } from './network.ts'
import './outside.ts'
import { SimulatedWebSocket, simulatedFetch } from './web.ts'

/** What this process runs on at present. */
export interface Hardware {
  machine: Machine
  files: SimulatedFiles
  network: Network
  /** Disks of hosts that have one of their own. */
  disks?: ReadonlyMap<string, SimulatedFiles>
  /** Hosts tell when they were started, and which of their processes live. */
  tellsStarts?: boolean
  /** What a program does when it is started, by the end of its path. */
  programs: Readonly<Record<string, (child: ChildSide) => void>>
}

/** What modules find when they are loaded. */
function idle(): Hardware {
  const machine = new Machine(0)
  return {
    ...{ machine, files: new SimulatedFiles(machine, drawsOf(0, 'disk')), programs: {} },
    network: new Network(machine, drawsOf(0, 'network')),
  }
}

let hardware = idle()

/** Another machine, with nothing on its disk. */
export function plugIn(next: Hardware): void {
  hardware = next
}

const machine = (): Machine => hardware.machine

class Timer {
  #task: Task | null = null
  readonly #ms: number
  readonly #act: () => void
  readonly #isRepeated: boolean

  constructor(ms: number, act: () => void, isRepeated: boolean) {
    this.#ms = ms >= 1 && ms <= 2 ** 31 - 1 ? ms : 1
    this.#act = act
    this.#isRepeated = isRepeated
    this.refresh()
  }

  refresh(): this {
    this.close()
    const task = machine().after(this.#ms, () => {
      if (this.#task === task) this.#task = null
      this.#act()
      if (this.#isRepeated && this.#task === null && !this.#isClosed) this.refresh()
    })
    this.#task = task
    this.#isClosed = false
    return this
  }

  #isClosed = false

  close(): this {
    if (this.#task !== null) this.#task.act = null
    this.#task = null
    this.#isClosed = true
    return this
  }

  ref = (): this => this
  unref = (): this => this
  hasRef = (): boolean => true
}

class Immediate {
  readonly #task: Task

  constructor(act: () => void) {
    this.#task = machine().queue(act)
  }

  close(): void {
    this.#task.act = null
  }

  ref = (): this => this
  unref = (): this => this
}

const end = (timer: { close(): unknown } | undefined | null): void => void timer?.close?.()

function installTimers(): void {
  Object.assign(globalThis, {
    setTimeout: (act: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) =>
      new Timer(ms, () => act(...args), false),
    setInterval: (act: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) =>
      new Timer(ms, () => act(...args), true),
    setImmediate: (act: (...args: unknown[]) => void, ...args: unknown[]) =>
      new Immediate(() => act(...args)),
    clearTimeout: end,
    clearInterval: end,
    clearImmediate: end,
  })
  const promised = <Value>(ms: number, value: Value): Promise<Value> =>
    new Promise((resolve) => new Timer(ms, () => resolve(value), false))
  const turn = <Value>(value: Value): Promise<Value> =>
    new Promise((resolve) => new Immediate(() => resolve(value)))
  Object.assign(timerPromises, { setTimeout: promised, setImmediate: turn })
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController()
    const reason = new DOMException('The operation was aborted due to timeout', 'TimeoutError')
    new Timer(ms, () => controller.abort(reason), false)
    return controller.signal
  }
}

function installClocks(): void {
  const RealDate = Date
  class SimulatedDate extends RealDate {
    constructor(...args: [] | [number | string]) {
      super(...((args.length === 0 ? [machine().wallMs] : args) as [number]))
    }
    static override now(): number {
      return machine().wallMs
    }
  }
  globalThis.Date = SimulatedDate as DateConstructor
  Object.defineProperty(performance, 'now', { value: () => machine().nowMs })
}

function installRandom(): void {
  const fill = <Bytes extends ArrayBufferView>(array: Bytes): Bytes => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(machine().secrets.next() * 256)
    return array
  }
  const randomBytes = (size: number): Buffer => fill(Buffer.alloc(size))
  Object.assign(crypto, {
    randomBytes,
    randomFillSync: fill,
    randomUUID: () => randomBytes(16).toString('hex'),
  })
  Object.defineProperty(globalThis.crypto, 'getRandomValues', { value: fill })
  Math.random = () => machine().secrets.next()
}

function installProcesses(): void {
  Object.defineProperty(process, 'pid', { get: () => machine().running.pid })
  process.kill = (pid: number, signal?: string | number): true => {
    const target = machine().processes.get(pid)
    if (target === undefined || target.host !== machine().running.host)
      throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' })
    if (signal !== 0) target.kill()
    return true
  }
  const fork = (program: string): unknown => {
    const { machine, programs } = hardware
    const start = Object.entries(programs).find(([name]) => program.endsWith(name))?.[1]
    if (start === undefined) throw new Error(`${program} is not simulated`)
    return forkSimulated(machine, program.replace(/^.*\//, ''), start)
  }
  Object.assign(childProcess, { fork })
}

/** When a host was started, and its processes, as Linux tells it. */
function tellOfSystem(path: string): string | null {
  const { host } = machine().running
  if (hardware.tellsStarts !== true) return null
  if (path === '/proc/sys/kernel/random/boot_id') return host
  const pid = Number(/^\/proc\/(\d+)\/stat$/.exec(path)?.[1])
  if (machine().processes.get(pid)?.host !== host) return null
  const fields = Array<string>(20).fill('0')
  const [state, threads, startTime] = [0, 17, 19]
  Object.assign(fields, { [state]: 'S', [threads]: '1', [startTime]: `${pid}` })
  return `${pid} (node) ${fields.join(' ')}`
}

function installNetwork(): void {
  const connect = (port: number, _host: string, onConnect: () => void): SimulatedSocket => {
    const socket = new SimulatedSocket(hardware.network, Number(port))
    socket.once('connect', onConnect)
    return socket
  }
  Object.assign(net, { createConnection: connect })
  const request = (options: ConstructorParameters<typeof SimulatedClientRequest>[1]) =>
    new SimulatedClientRequest(hardware.network, options)
  Object.assign(http, { request })
  Object.assign(globalThis, { fetch: simulatedFetch(() => hardware.network) })
  class WebSocket extends SimulatedWebSocket {
    constructor(address: string) {
      super(hardware.network, address)
    }
  }
  // Required where it is first used, and so not loaded by `import` before.
  Object.assign(createRequire(import.meta.url)('ws'), { WebSocket })
}

/** Replaces what differs between two machines. */
export function install(): void {
  process.env.TMPDIR = SIMULATED_ROOT
  installTimers()
  installClocks()
  installRandom()
  installProcesses()
  installNetwork()
  const files = () => hardware.disks?.get(machine().running.host) ?? hardware.files
  Object.assign(fs, fileFunctions(files, { ...fs }, tellOfSystem))
  Object.assign(filePromises, promisedFileFunctions(files, { ...filePromises }))
  syncBuiltinESMExports()
}
