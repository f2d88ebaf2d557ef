// A disk in memory that loses everything not synced at a power cut (bytes, names, renames, deletions), can be cut at any
// operation, and fails or hangs on demand.
import { basename } from 'node:path'
import type { Disk, DiskFile } from '../../../src/lib/disk/disk.ts'

export type OperationKind =
  | 'list'
  | 'create'
  | 'open'
  | 'write'
  /** A write at an offset: the log writes zeros ahead of its lines by it. */
  | 'writeZeros'
  | 'sync'
  | 'truncate'
  | 'read'
  | 'close'
  | 'rename'
  | 'unlink'
  | 'syncFolder'

/** What happens to unsynced bytes when the power is cut. */
export const LOSSES = ['nothing kept', 'all kept', 'a prefix kept', 'zeros', 'pages reordered'] as const
export type Loss = (typeof LOSSES)[number]

/** Small, so that a line spans several. Each page is kept or lost independently. */
const PAGE_BYTES = 64

export interface Inode {
  /** As a process reads it. */
  live: Buffer
  /** What is certainly on the disk. */
  durable: Buffer
  /** A sync of it failed: as on Linux, later syncs succeed and write nothing. */
  isPoisoned: boolean
}

export type NameChange = { from: string | null; to: string | null; inode: Inode }

interface Contents {
  names: Map<string, Inode>
  durableNames: Map<string, Inode>
  /** Changes of names since the last sync of the folder. */
  changes: NameChange[]
}

interface Fault {
  error?: NodeJS.ErrnoException
  /** The operation hangs until this resolves. */
  until?: Promise<void>
  /** Bytes that a write takes before it fails. */
  bytes?: number
}

export const systemError = (code: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${code}: simulated`), { code })

/** See src/lib/disk/high-water-mark.ts. */
const isMark = (name: string): boolean => /\.mark(\.tmp)?$/.test(name)

const never = new Promise<never>(() => undefined)
const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export class SimulatedDisk implements Disk {
  /** Operations begun so far. */
  operations = 0
  /** Operations that are running, and the most that ever ran at once; without reads. */
  running = 0
  runningMax = 0
  isCut = false
  readonly #contents: Contents
  readonly #faults = new Map<OperationKind, Fault[]>()
  #cutAt = -1
  #isCutAfter = false
  #onCut: () => void = () => undefined
  /** Resolves when the disk is cut. */
  readonly whenCut = new Promise<void>((resolve) => {
    this.#onCut = resolve
  })

  constructor(contents: Contents = { names: new Map(), durableNames: new Map(), changes: [] }) {
    this.#contents = contents
  }

  /** Cuts the disk at an operation: before it has an effect, or after that but before it resolves. */
  cutAt(operation: number, isAfter: boolean): this {
    this.#cutAt = operation
    this.#isCutAfter = isAfter
    return this
  }

  /** Makes the next operation of this kind without a fault fail. */
  fail(kind: OperationKind, code: string, bytes?: number): void {
    this.#addFault(kind, { error: systemError(code), ...(bytes !== undefined && { bytes }) })
  }

  /** Makes the next operation of this kind hang. @returns a function that releases it */
  hold(kind: OperationKind, code?: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#addFault(kind, { until: promise, ...(code !== undefined && { error: systemError(code) }) })
    return resolve
  }

  #addFault(kind: OperationKind, fault: Fault): void {
    this.#faults.set(kind, [...(this.#faults.get(kind) ?? []), fault])
  }

  /** The disk as the next process finds it after this one was killed: nothing is lost, and nothing more is synced. */
  afterKill(): SimulatedDisk {
    this.isCut = true
    return new SimulatedDisk(this.#contents)
  }

  /** The disk as the next process finds it after a power cut. */
  afterPowerCut(loss: Loss, random: () => number): SimulatedDisk {
    this.isCut = true
    const { durableNames, changes } = this.#contents
    const names = new Map(durableNames)
    for (const change of changes) {
      const isKept = loss === 'all kept' || (loss !== 'nothing kept' && random() < 0.5)
      if (isKept) applyChange(names, change)
    }
    const survivors = new Map<Inode, Inode>()
    for (const inode of names.values()) {
      const bytes = survivingBytes(inode, loss, random)
      survivors.set(inode, { live: bytes, durable: bytes, isPoisoned: false })
    }
    const kept = new Map(Array.from(names, ([name, inode]) => [name, survivors.get(inode)!] as const))
    return new SimulatedDisk({ names: kept, durableNames: new Map(kept), changes: [] })
  }

  /** The bytes of a file as a process reads them. */
  file(name: string): Buffer {
    return this.#inode(name).live
  }

  /** Durably creates, replaces or, with null, deletes a file. */
  put(name: string, bytes: Buffer | null): void {
    const inode = bytes === null ? null : { live: bytes, durable: bytes, isPoisoned: false }
    for (const names of [this.#contents.names, this.#contents.durableNames]) {
      if (inode === null) names.delete(name)
      else names.set(name, inode)
    }
  }

  get fileNames(): string[] {
    return [...this.#contents.names.keys()].sort()
  }

  async makeFolder(): Promise<void> {}

  /** All files are in one folder, but for marks, which lie beside it. */
  list(): Promise<string[]> {
    return this.step('list', () => this.fileNames.filter((name) => !isMark(name)))
  }

  create(path: string): Promise<DiskFile> {
    return this.#create(path, SimulatedFile)
  }

  createSynced(path: string): Promise<DiskFile> {
    return this.#create(path, SyncedFile)
  }

  #create(path: string, File: typeof SimulatedFile): Promise<DiskFile> {
    const name = basename(path)
    return this.stepOf(name, 'create', () => {
      if (this.#contents.names.has(name)) throw systemError('EEXIST')
      const inode = { live: Buffer.alloc(0), durable: Buffer.alloc(0), isPoisoned: false }
      this.#change({ from: null, to: name, inode })
      return new File(this, inode, name)
    })
  }

  open(path: string): Promise<DiskFile> {
    const name = basename(path)
    return this.stepOf(name, 'open', () => new SimulatedFile(this, this.#inode(name), name))
  }

  rename(from: string, to: string): Promise<void> {
    return this.stepOf(basename(to), 'rename', () => {
      const inode = this.#inode(basename(from))
      this.#change({ from: basename(from), to: basename(to), inode })
    })
  }

  unlink(path: string): Promise<void> {
    return this.step('unlink', () => {
      this.#change({ from: basename(path), to: null, inode: this.#inode(basename(path)) })
    })
  }

  syncFolder(): Promise<void> {
    return this.step('syncFolder', () => {
      for (const change of this.#contents.changes.splice(0)) applyChange(this.#contents.durableNames, change)
    })
  }

  /** Runs an operation on a file. Marks are written beside all else: their operations are not counted, and have no faults. */
  async stepOf<T>(name: string, ...operation: Parameters<typeof this.step<T>>): Promise<T> {
    if (!isMark(name)) return this.step(...operation)
    if (!this.isCut) await turnOfTheLoop()
    return this.isCut ? never : operation[1]()
  }

  /** Runs one operation: calls `effect`, unless the disk is cut or the operation has a fault; then calls `atFault`. */
  async step<T>(
    kind: OperationKind,
    effect: () => T,
    atFault: (fault: Fault) => void = () => undefined,
  ): Promise<T> {
    if (this.isCut) return never
    const operation = this.operations++
    if (operation === this.#cutAt && !this.#isCutAfter) return this.#cut()
    if (kind !== 'read' && kind !== 'open') this.running++
    this.runningMax = Math.max(this.runningMax, this.running)
    try {
      const fault = this.#faults.get(kind)?.shift()
      await (fault?.until ?? turnOfTheLoop())
      if (this.isCut) return never
      if (fault?.error !== undefined) atFault(fault)
      const result = fault?.error === undefined ? effect() : null
      if (operation === this.#cutAt) return this.#cut()
      if (fault?.error !== undefined) throw fault.error
      return result as T
    } finally {
      if (kind !== 'read' && kind !== 'open') this.running--
    }
  }

  #cut(): Promise<never> {
    this.isCut = true
    this.#onCut()
    return never
  }

  #inode(name: string): Inode {
    const inode = this.#contents.names.get(name)
    if (inode === undefined) throw systemError('ENOENT')
    return inode
  }

  #change(change: NameChange): void {
    applyChange(this.#contents.names, change)
    this.#contents.changes.push(change)
  }
}

export function applyChange(names: Map<string, Inode>, { from, to, inode }: NameChange): void {
  if (from !== null) names.delete(from)
  if (to !== null) names.set(to, inode)
}

export function survivingBytes({ live, durable }: Inode, loss: Loss, random: () => number): Buffer {
  if (loss === 'all kept') return live
  if (loss === 'nothing kept' || live.length < durable.length)
    return random() < 0.5 ? durable : kept(live, durable)
  const bytes = Buffer.concat([durable, Buffer.alloc(live.length - durable.length)])
  if (loss === 'zeros') return bytes
  const changedFrom = firstDifference(live, durable)
  if (loss === 'a prefix kept') {
    const end = changedFrom + Math.floor(random() * (live.length - changedFrom + 1))
    live.copy(bytes, changedFrom, changedFrom, end)
    return bytes.subarray(0, Math.max(end, durable.length))
  }
  for (let at = changedFrom - (changedFrom % PAGE_BYTES); at < live.length; at += PAGE_BYTES) {
    const from = Math.max(at, changedFrom)
    if (random() < 0.5) live.copy(bytes, from, from, at + PAGE_BYTES)
  }
  return bytes
}

/** Where the live content begins to differ from the durable one, which may be shorter. */
function firstDifference(live: Buffer, durable: Buffer): number {
  let at = 0
  while (at < durable.length && live[at] === durable[at]) at++
  return at
}

/** A file that was truncated and not synced: the shorter content. */
const kept = (live: Buffer, durable: Buffer): Buffer => (live.length < durable.length ? live : durable)

class SimulatedFile implements DiskFile {
  readonly #disk: SimulatedDisk
  readonly #inode: Inode
  readonly #name: string
  /** Where the next write begins. */
  #position = 0

  constructor(disk: SimulatedDisk, inode: Inode, name: string) {
    this.#disk = disk
    this.#inode = inode
    this.#name = name
  }

  write(bytes: Uint8Array, offset?: number): Promise<number> {
    const copy = Buffer.from(bytes)
    const add = (part: Buffer): number => {
      this.#put(offset ?? this.#position, part)
      if (offset === undefined) this.#position += part.length
      return part.length
    }
    return this.#disk.stepOf(
      this.#name,
      offset === undefined ? 'write' : 'writeZeros',
      () => add(copy),
      (fault) => add(copy.subarray(0, fault.bytes ?? 0)),
    )
  }

  #put(offset: number, part: Buffer): void {
    const { live } = this.#inode
    const bytes = Buffer.alloc(Math.max(live.length, offset + part.length))
    live.copy(bytes)
    part.copy(bytes, offset)
    this.#inode.live = bytes
  }

  sync(): Promise<void> {
    return this.#disk.stepOf(
      this.#name,
      'sync',
      () => {
        if (!this.#inode.isPoisoned) this.#inode.durable = this.#inode.live
      },
      () => {
        this.#inode.isPoisoned = true
      },
    )
  }

  truncate(bytes: number): Promise<void> {
    return this.#disk.stepOf(this.#name, 'truncate', () => {
      this.#inode.live = this.#inode.live.subarray(0, bytes)
    })
  }

  read(into: Uint8Array, offset: number): Promise<number> {
    return this.#disk.stepOf(this.#name, 'read', () => this.#inode.live.copy(into, 0, offset))
  }

  size(): Promise<number> {
    return Promise.resolve(this.#inode.live.length)
  }

  close(): Promise<void> {
    return this.#disk.stepOf(this.#name, 'close', () => undefined)
  }
}

/** Syncs after each write, which is how Linux treats O_DSYNC; so each of the two can fail, hang or be cut. */
class SyncedFile extends SimulatedFile {
  override async write(bytes: Uint8Array, offset?: number): Promise<number> {
    const written = await super.write(bytes, offset)
    await this.sync()
    return written
  }
}
