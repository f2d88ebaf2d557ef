// The files of the simulated machine. What was not synced goes at a power cut, names too; the disk may be full, slow, failing or hanging.
import { dirname } from 'node:path'
import {
  applyChange,
  type Inode,
  LOSSES,
  type NameChange,
  survivingBytes,
} from '../../support/disk/simulated-disk.ts'
import type { Draws, Machine, SimulatedProcess } from './machine.ts'

/** Everything below it is simulated. */
export const SIMULATED_ROOT = '/simulated'
/** How long an operation takes at most, ms. */
const OPERATION_MS_MAX = 2
const SLOW_FACTOR = 200
const DISK_BYTES = 64e9

/** What the disk does at present. */
export type DiskMode = 'ok' | 'full' | 'failing' | 'hanging' | 'slow'

export type Kind = 'file' | 'folder' | 'link'
export interface Entry extends Inode {
  kind: Kind
}

/** Operations that change the disk, which a full or failing one refuses. */
const CHANGES = new Set(['create', 'write', 'sync', 'rename', 'mkdir', 'truncate', 'link'])

export class FileError extends Error {
  readonly code: string
  readonly syscall: string
  readonly path: string
  readonly errno = -1

  constructor(code: string, syscall: string, path: string) {
    super(`${code}: ${syscall} '${path}'`)
    this.code = code
    this.syscall = syscall
    this.path = path
  }
}

export const entryOf = (kind: Kind, bytes: Buffer = Buffer.alloc(0)): Entry => ({
  kind,
  live: bytes,
  durable: Buffer.from(bytes),
  isPoisoned: false,
})

export class SimulatedFiles {
  mode: DiskMode = 'ok'
  /** Of a failing disk: how often an operation fails. */
  failing = 0.5
  /** Operations that failed, or waited, for the mode of the disk. */
  faults = 0
  readonly names = new Map<string, Entry>()
  readonly #machine: Machine
  readonly #draws: Draws
  #durableNames = new Map<string, Entry>()
  #changes: NameChange[] = []
  /** Operations that hang, and whose they are. */
  #hanging: { of: SimulatedProcess; start: () => void }[] = []

  constructor(machine: Machine, draws: Draws) {
    this.#machine = machine
    this.#draws = draws
    const root = entryOf('folder')
    this.names.set(SIMULATED_ROOT, root)
    this.#durableNames.set(SIMULATED_ROOT, root)
  }

  get freeBytes(): number {
    return this.mode === 'full' ? 0 : DISK_BYTES
  }

  /** From now on the disk does this. Operations that hang go on, unless it hangs still. */
  setMode(mode: DiskMode): void {
    this.mode = mode
    if (mode !== 'hanging') for (const { start } of this.#hanging.splice(0)) start()
  }

  /** Runs an operation of the running process. It takes effect at its begin or at its end, before which the process may be killed. */
  run<Result>(kind: string, path: string, effect: () => Result): Promise<Result> {
    const machine = this.#machine
    const of = machine.running
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const attempt = (): (() => void) => {
      try {
        const result = this.now(kind, path, effect)
        return () => resolve(result)
      } catch (error) {
        return () => reject(error)
      }
    }
    const start = (): void => {
      const settle = this.#draws.chance(0.5) ? attempt() : null
      const ms = this.#draws.between(0.01, OPERATION_MS_MAX) * (this.mode === 'slow' ? SLOW_FACTOR : 1)
      machine.after(ms, () => (settle ?? attempt())(), of)
    }
    if (this.mode !== 'hanging') start()
    else {
      this.faults++
      this.#hanging.push({ of, start })
    }
    return promise
  }

  /** Runs an operation at once, as one does that blocks. */
  now<Result>(kind: string, path: string, effect: () => Result): Result {
    if (CHANGES.has(kind)) {
      const code = this.#refusal()
      if (code !== null && kind === 'sync') this.find(path).isPoisoned = true
      if (code !== null) throw new FileError(code, kind, path)
    }
    return effect()
  }

  /** Why the disk refuses a change; null: it does not. */
  #refusal(): string | null {
    const isRefused = this.mode === 'full' || (this.mode === 'failing' && this.#draws.chance(this.failing))
    if (!isRefused) return null
    this.faults++
    return this.mode === 'full' ? 'ENOSPC' : 'EIO'
  }

  find(path: string): Entry {
    const entry = this.names.get(path)
    if (entry === undefined) throw new FileError('ENOENT', 'open', path)
    return entry
  }

  /** @throws FileError where its folder is missing, or there is one of that name */
  create(path: string, kind: Kind, bytes?: Buffer): Entry {
    if (this.names.has(path)) throw new FileError('EEXIST', 'open', path)
    if (this.names.get(dirname(path))?.kind !== 'folder') throw new FileError('ENOENT', 'open', path)
    const entry = entryOf(kind, bytes)
    this.#change({ from: null, to: path, inode: entry })
    return entry
  }

  /** A folder, and those that it is in, as an administrator makes them: their names are durable. */
  makeFolder(path: string): void {
    if (this.names.has(path)) return
    this.makeFolder(dirname(path))
    this.create(path, 'folder')
    this.sync(dirname(path), this.find(dirname(path)))
  }

  rename(from: string, to: string): void {
    const inode = this.find(from)
    if (this.names.get(dirname(to))?.kind !== 'folder') throw new FileError('ENOENT', 'rename', to)
    const within = [...this.names].filter(([name]) => name.startsWith(`${from}/`))
    this.#change({ from, to, inode })
    for (const [name, inode] of within) this.#change({ from: name, to: to + name.slice(from.length), inode })
  }

  /** Another name of a file. */
  link(from: string, to: string): void {
    if (this.names.has(to)) throw new FileError('EEXIST', 'link', to)
    if (this.names.get(dirname(to))?.kind !== 'folder') throw new FileError('ENOENT', 'link', to)
    this.#change({ from: null, to, inode: this.find(from) })
  }

  unlink(path: string): void {
    this.#change({ from: path, to: null, inode: this.find(path) })
  }

  write(entry: Entry, offset: number, bytes: Uint8Array): void {
    const end = offset + bytes.length
    if (end > entry.live.length) {
      const longer = Buffer.alloc(end)
      entry.live.copy(longer)
      entry.live = longer
    }
    entry.live.set(bytes, offset)
  }

  /** @returns the number of bytes read, which is smaller at the end of the file */
  read(entry: Entry, into: Uint8Array, at: number, offset: number, length: number): number {
    return offset >= entry.live.length ? 0 : entry.live.copy(into, at, offset, offset + length)
  }

  sync(path: string, entry: Entry): void {
    if (entry.kind !== 'folder') {
      if (!entry.isPoisoned) entry.durable = Buffer.from(entry.live)
      return
    }
    const isOfFolder = ({ from, to }: NameChange): boolean =>
      [from, to].some((name) => name !== null && dirname(name) === path)
    const [synced, left] = [
      this.#changes.filter(isOfFolder),
      this.#changes.filter((each) => !isOfFolder(each)),
    ]
    for (const change of synced) applyChange(this.#durableNames, change)
    this.#changes = left
  }

  /** Names directly within a folder. */
  list(path: string): string[] {
    if (this.find(path).kind !== 'folder') throw new FileError('ENOTDIR', 'scandir', path)
    const within = `${path}/`
    return [...this.names.keys()]
      .filter((name) => name.startsWith(within) && !name.slice(within.length).includes('/'))
      .map((name) => name.slice(within.length))
      .sort()
  }

  /** The power goes: what was not synced is lost as the seed says. */
  cutPower(): void {
    const draws = this.#draws
    const loss = draws.of(LOSSES)
    const names = new Map(this.#durableNames)
    for (const change of this.#changes) {
      const isKept = loss === 'all kept' || (loss !== 'nothing kept' && draws.chance(0.5))
      if (isKept) applyChange(names as Map<string, Inode>, change)
    }
    const survivors = new Map<Entry, Entry>()
    for (const entry of new Set(names.values())) {
      const bytes = entry.kind === 'file' ? survivingBytes(entry, loss, draws.next) : entry.live
      survivors.set(entry, entryOf(entry.kind, Buffer.from(bytes)))
    }
    this.names.clear()
    for (const name of [...names.keys()].sort())
      if (name === SIMULATED_ROOT || this.names.has(dirname(name)))
        this.names.set(name, survivors.get(names.get(name)!)!)
    this.#durableNames = new Map(this.names)
    this.#changes = []
    // Readers are on machines of their own, whose disks hang with this one.
    this.#hanging = this.#hanging.filter(({ of }) => of.isAlive)
  }

  /**
   * Another machine has it from now on, as it is after a power cut: what was not synced was in the memory of the one before.
   * @returns what that one keeps: a disk of its own, which it does not know of
   */
  moveOn(): SimulatedFiles {
    const kept = new SimulatedFiles(this.#machine, this.#draws)
    for (const [name, entry] of this.names) kept.names.set(name, entry)
    this.cutPower()
    return kept
  }

  #change(change: NameChange): void {
    applyChange(this.names as Map<string, Inode>, change)
    this.#changes.push(change)
  }
}
