// The real lake process, with DuckDB and Parquet, in a folder of the real machine. The simulated disk's log and journal are copied there
// before each request. No simulated time passes while it works.
import type { ChildProcess, Serializable } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { programPath } from '../../../../src/lib/process/program-path.ts'
import type {
  FromLakeProcess,
  LakeProcessOptions,
  Reply,
  RequestKind,
  Requests,
} from '../../../../src/store/process/protocol.ts'
import type { LakeTrouble, LogLine } from '../../../../src/store/types.ts'
import type { SimulatedFiles } from '../../machine/files.ts'
import type { Machine } from '../../machine/machine.ts'
import { OUTSIDE } from '../../machine/outside.ts'

const LAKE_PROCESS = programPath('../../../../src/store/process/main', import.meta.url)
/** Of the simulated data folder, what the lake process reads. */
const READ_BY_LAKE = /^\/(log|journal)\/[^/]+$/
/** Also what a check of the whole folder reads. */
const READ_BY_CHECKS = /^\/((log|journal)\/)?[^/]+$/

/** A real process that takes messages. */
export function forkOutside(program: string): ChildProcess {
  return OUTSIDE.fork(program, {
    execArgv: ['--no-warnings'],
    env: { ...process.env, TMPDIR: OUTSIDE.temporary },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
}

/** One real lake process. */
export class RealLakeProcess {
  readonly #child: ChildProcess
  readonly #lake: RealLake
  readonly #pending = new Map<number, (reply: Reply | null) => void>()
  readonly ended: Promise<void>
  /** What it said last is wrong with the lake. */
  trouble: LakeTrouble | null = null
  readonly log: LogLine[] = []
  #hasEnded = false
  #lastId = 0

  constructor(lake: RealLake, options: LakeProcessOptions) {
    this.#lake = lake
    this.#child = forkOutside(LAKE_PROCESS)
    this.#child.send({ ...options, dataDir: lake.dataDir } as Serializable)
    this.#child.on('message', (message: FromLakeProcess) => {
      if ('log' in message) this.log.push(message.log)
      else if ('trouble' in message) this.trouble = message.trouble
      else this.#settle(message.id, message)
    })
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', () => {
        this.#hasEnded = true
        for (const id of [...this.#pending.keys()]) this.#settle(id, null)
        resolve()
      })
    })
  }

  #settle(id: number, reply: Reply | null): void {
    this.#pending.get(id)?.(reply)
    this.#pending.delete(id)
  }

  /** @returns its reply; null: it has ended */
  ask<K extends RequestKind>(kind: K, ask: Requests[K]['ask']): Promise<Reply | null> {
    return this.#lake.machine.outside(this.#ask(kind, ask))
  }

  #ask(kind: RequestKind, ask: unknown): Promise<Reply | null> {
    this.#lake.copyFromDisk(READ_BY_LAKE)
    const id = ++this.#lastId
    return new Promise((resolve) => {
      if (this.#hasEnded) return resolve(null)
      this.#pending.set(id, resolve)
      this.#child.send({ id, kind, ask } as Serializable)
    })
  }

  /** Ends it at once, or does nothing where it has ended. */
  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

export class RealLake {
  readonly machine: Machine
  readonly dataDir: string
  readonly #files: SimulatedFiles
  /** The folder that is copied, on the simulated disk. */
  readonly #simulatedDir: string
  readonly #root: string
  /** What was copied, by its path below the folder. */
  readonly #copied = new Map<string, Buffer>()
  #last: RealLakeProcess | null = null

  constructor(machine: Machine, files: SimulatedFiles, simulatedDir: string, name: string) {
    this.machine = machine
    this.#files = files
    this.#simulatedDir = simulatedDir
    this.#root = join(OUTSIDE.temporary, `mintlake-simulated-${OUTSIDE.pid}-${name}`)
    this.dataDir = join(this.#root, 'data')
    for (const folder of ['log', 'journal']) mkdirSync(join(this.dataDir, folder), { recursive: true })
  }

  /** Starts a process once the one before it has ended: they share a database. */
  async start(options: LakeProcessOptions): Promise<RealLakeProcess> {
    await this.machine.outside(this.#last?.ended ?? Promise.resolve())
    this.#last = new RealLakeProcess(this, options)
    return this.#last
  }

  /** Files as the simulated disk has them, those that it has no more removed. */
  copyFromDisk(wanted: RegExp): void {
    const found = new Set<string>()
    for (const [name, { kind, live }] of this.#files.names) {
      if (kind !== 'file' || !name.startsWith(`${this.#simulatedDir}/`)) continue
      const path = name.slice(this.#simulatedDir.length)
      if (!wanted.test(path)) continue
      found.add(path)
      if (this.#copied.get(path)?.equals(live) === true) continue
      writeFileSync(join(this.dataDir, path), live)
      this.#copied.set(path, Buffer.from(live))
    }
    for (const path of this.#copied.keys()) {
      if (found.has(path) || !wanted.test(path)) continue
      rmSync(join(this.dataDir, path), { force: true })
      this.#copied.delete(path)
    }
  }

  /** Where a copy goes that is asked for on the simulated disk, emptied. */
  copyFolder(simulated: string): string {
    const folder = join(this.dataDir, simulated.slice(this.#simulatedDir.length))
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    this.#lastCopy = folder
    return folder
  }

  /** A folder of the real machine that goes with this one. */
  folderBeside(name: string): string {
    return join(this.#root, name)
  }

  /** Moves the last copy of the lake to a folder, and adds to it what the server has put into its own. */
  takeStaged(simulated: string, folder: string): void {
    renameSync(this.#lastCopy, folder)
    for (const [name, { kind, live }] of this.#files.names) {
      if (kind !== 'file' || !name.startsWith(`${simulated}/`)) continue
      const path = join(folder, name.slice(simulated.length))
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, live)
    }
    for (const each of ['log', 'journal']) mkdirSync(join(folder, each), { recursive: true })
  }

  #lastCopy = ''

  /** Ends its process, and makes the folder one that a check of the whole can read. */
  async end(): Promise<void> {
    this.#last?.kill()
    await this.#last?.ended
    this.copyFromDisk(READ_BY_CHECKS)
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true })
  }
}
