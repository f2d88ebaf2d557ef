// The functions of `node:fs` and `node:fs/promises` over simulated files, as far as the server uses them. Other paths are the real ones.
import type fs from 'node:fs'
import { constants } from 'node:fs'
import type filePromises from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { type Entry, FileError, SIMULATED_ROOT, type SimulatedFiles } from './files.ts'

type Files = () => SimulatedFiles
type Any = (...args: never[]) => unknown
/** What a file below /proc says; null: there is none. */
export type TellOfSystem = (path: string) => string | null
type Text = string | null | undefined | { encoding?: string | null }

const BLOCK_BYTES = 4_096
/** Numbers of open files; those of real ones are lower. */
const FIRST_NUMBER = 1_000_000

const isSimulated = (path: unknown): path is string =>
  typeof path === 'string' && (path === SIMULATED_ROOT || path.startsWith(`${SIMULATED_ROOT}/`))
/** What a system tells of its processes: the simulated one does, or nothing. */
const isOfSystem = (path: unknown): path is string => typeof path === 'string' && path.startsWith('/proc/')

const encodingOf = (text: Text): string | null | undefined =>
  typeof text === 'string' ? text : text?.encoding
const asRead = (bytes: Buffer, text: Text): Buffer | string =>
  encodingOf(text) == null ? Buffer.from(bytes) : bytes.toString(encodingOf(text) as BufferEncoding)
const bytesOf = (data: string | Uint8Array): Buffer =>
  typeof data === 'string' ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength)

const statsOf = ({ kind, live }: Entry) => ({
  size: live.length,
  mtimeMs: 0,
  nlink: 1,
  ino: 1,
  dev: 1,
  isFile: () => kind === 'file',
  isDirectory: () => kind === 'folder',
  isSymbolicLink: () => kind === 'link',
})

function openEntry(
  files: SimulatedFiles,
  path: string,
  flags: string | number,
): { entry: Entry; isSynced: boolean } {
  const isNumber = typeof flags === 'number'
  const isSynced = isNumber && (flags & constants.O_DSYNC) === constants.O_DSYNC
  const isExclusive = isNumber ? (flags & constants.O_EXCL) !== 0 : flags.includes('x')
  const isCreating = isNumber ? (flags & constants.O_CREAT) !== 0 : /[wa]/.test(flags)
  const found = files.names.get(path)
  if (found === undefined || isExclusive) {
    if (!isCreating) throw new FileError('ENOENT', 'open', path)
    return { entry: files.create(path, 'file'), isSynced }
  }
  if (!isNumber && flags.startsWith('w')) {
    if (found.kind === 'folder') throw new FileError('EISDIR', 'open', path)
    found.live = Buffer.alloc(0)
    // What a failed sync did not write is gone: the next one writes all that comes now.
    found.isPoisoned = false
  }
  return { entry: found, isSynced }
}

const openKind = (flags: string | number): string =>
  (typeof flags === 'number' ? (flags & constants.O_CREAT) !== 0 : /[wa]/.test(flags)) ? 'create' : 'open'

/** An open file, as `fs/promises` gives it. */
class SimulatedHandle {
  readonly #files: Files
  readonly #path: string
  readonly #entry: Entry
  readonly #isSynced: boolean
  #position: number

  constructor(files: Files, path: string, opened: { entry: Entry; isSynced: boolean }, isAppended: boolean) {
    this.#files = files
    this.#path = path
    this.#entry = opened.entry
    this.#isSynced = opened.isSynced
    this.#position = isAppended ? opened.entry.live.length : 0
  }

  async write(data: Uint8Array | string, from = 0, length?: number, offset?: number | null) {
    const all = bytesOf(data)
    const bytes = Buffer.from(all.subarray(from, from + (length ?? all.length - from)))
    await this.#put(bytes, offset ?? null)
    return { bytesWritten: bytes.length, buffer: data }
  }

  async writev(parts: readonly Uint8Array[]) {
    const bytes = Buffer.concat(parts)
    await this.#put(bytes, null)
    return { bytesWritten: bytes.length }
  }

  #put(bytes: Buffer, offset: number | null): Promise<void> {
    return this.#files().run('write', this.#path, () => {
      this.#files().write(this.#entry, offset ?? this.#position, bytes)
      if (offset === null) this.#position += bytes.length
      if (this.#isSynced) this.#files().sync(this.#path, this.#entry)
    })
  }

  async writeFile(data: string | Uint8Array): Promise<void> {
    await this.#put(bytesOf(data), null)
  }

  appendFile(data: string | Uint8Array): Promise<void> {
    return this.writeFile(data)
  }

  async read(into: Uint8Array, at = 0, length = into.length - at, offset: number | null = null) {
    const bytesRead = await this.#files().run('read', this.#path, () => {
      const count = this.#files().read(this.#entry, into, at, offset ?? this.#position, length)
      if (offset === null) this.#position += count
      return count
    })
    return { bytesRead, buffer: into }
  }

  readFile(text?: Text) {
    return this.#files().run('read', this.#path, () => asRead(this.#entry.live, text))
  }

  datasync(): Promise<void> {
    return this.#files().run('sync', this.#path, () => this.#files().sync(this.#path, this.#entry))
  }

  sync(): Promise<void> {
    return this.datasync()
  }

  truncate(bytes = 0): Promise<void> {
    return this.#files().run('truncate', this.#path, () => {
      this.#entry.live = Buffer.from(this.#entry.live.subarray(0, bytes))
    })
  }

  stat() {
    return this.#files().run('stat', this.#path, () => statsOf(this.#entry))
  }

  close(): Promise<void> {
    return this.#files().run('close', this.#path, () => undefined)
  }
}

function writeWhole(
  files: SimulatedFiles,
  path: string,
  data: string | Uint8Array,
  isAppended: boolean,
): void {
  const { entry } = openEntry(files, path, isAppended ? 'a' : 'w')
  files.write(entry, isAppended ? entry.live.length : 0, bytesOf(data))
}

function createFolders(files: SimulatedFiles, path: string): void {
  if (files.names.get(path)?.kind === 'folder') return
  createFolders(files, dirname(path))
  files.create(path, 'folder')
}

function remove(files: SimulatedFiles, path: string, isForced: boolean): void {
  if (!files.names.has(path)) {
    if (isForced) return
    throw new FileError('ENOENT', 'rm', path)
  }
  for (const name of [...files.names.keys()]) if (name.startsWith(`${path}/`)) files.unlink(name)
  files.unlink(path)
}

function direntsOf(files: SimulatedFiles, path: string, options?: { withFileTypes?: boolean }) {
  const names = files.list(path)
  if (options?.withFileTypes !== true) return names
  return names.map((name) => ({ ...statsOf(files.find(`${path}/${name}`)), name, parentPath: path }))
}

const statOr = (files: SimulatedFiles, path: string, options?: { throwIfNoEntry?: boolean }) =>
  options?.throwIfNoEntry === false && !files.names.has(path) ? undefined : statsOf(files.find(path))

const spaceOf = ({ freeBytes }: SimulatedFiles) => ({
  bsize: BLOCK_BYTES,
  bavail: freeBytes / BLOCK_BYTES,
  bfree: freeBytes / BLOCK_BYTES,
  blocks: 64e9 / BLOCK_BYTES,
})

/** Calls the simulated function for simulated paths, else the real one. */
function choosing<Functions extends Record<string, (...args: never[]) => unknown>>(
  simulated: Functions,
  real: Readonly<Record<string, unknown>>,
  tellOf: TellOfSystem = () => null,
): Functions {
  const tell = (name: string, path: string): string => {
    const text = name === 'readFileSync' ? tellOf(path) : null
    if (text === null) throw new FileError('ENOENT', name, path)
    return text
  }
  const choices = Object.entries(simulated).map(([name, act]) => {
    const choose = (...args: never[]): unknown => {
      if (isSimulated(args[0])) return act(...args)
      if (isOfSystem(args[0])) return tell(name, args[0])
      return (real[name] as Any)(...args)
    }
    return [name, Object.assign(choose, real[name])]
  })
  return Object.fromEntries(choices)
}

/** Those of `node:fs`. */
export function fileFunctions(files: Files, real: typeof fs, tellOf: TellOfSystem) {
  const opened = new Map<number, { path: string; entry: Entry }>()
  let lastNumber = FIRST_NUMBER
  const ofNumber = <Result>(
    name: string,
    act: (file: { path: string; entry: Entry }, ...args: never[]) => Result,
  ) =>
    Object.assign((number: number, ...args: never[]): unknown => {
      const file = opened.get(number)
      return file === undefined
        ? (real[name as 'closeSync'] as Any)(number as never, ...args)
        : act(file, ...args)
    })
  const simulated = choosing(
    {
      existsSync: (path: string) => files().names.has(path),
      realpathSync: (path: string) => path,
      readFileSync: (path: string, text: Text) => asRead(files().find(path).live, text),
      writeFileSync: (path: string, data: string) =>
        files().now('write', path, () => writeWhole(files(), path, data, false)),
      appendFileSync: (path: string, data: string) =>
        files().now('write', path, () => writeWhole(files(), path, data, true)),
      renameSync: (from: string, to: string) => files().now('rename', from, () => files().rename(from, to)),
      rmSync: (path: string, options?: { force?: boolean }) => remove(files(), path, options?.force === true),
      unlinkSync: (path: string) => files().unlink(path),
      mkdirSync: (path: string) => files().now('mkdir', path, () => void files().create(path, 'folder')),
      readdirSync: (path: string, options?: object) => direntsOf(files(), path, options),
      statSync: (path: string, options?: object) => statOr(files(), path, options),
      lstatSync: (path: string, options?: object) => statOr(files(), path, options),
      statfsSync: () => spaceOf(files()),
      readlinkSync: (path: string) => files().find(path).live.toString(),
      openSync: (path: string, flags: string | number = 'r') => {
        const { entry } = files().now(openKind(flags), path, () => openEntry(files(), path, flags))
        opened.set(++lastNumber, { path, entry })
        return lastNumber
      },
      createReadStream: (path: string) => Readable.from([Buffer.from(files().find(path).live)]),
    },
    real as never,
    tellOf,
  )
  return {
    ...simulated,
    symlinkSync: (target: string, path: string) =>
      isSimulated(path)
        ? files().now('link', path, () => void files().create(path, 'link', Buffer.from(target)))
        : real.symlinkSync(target, path),
    closeSync: (number: number) => void (opened.delete(number) || real.closeSync(number)),
    fsyncSync: ofNumber('fsyncSync', ({ path, entry }) =>
      files().now('sync', path, () => files().sync(path, entry)),
    ),
    fstatSync: ofNumber('fstatSync', ({ entry }) => statsOf(entry)),
    readSync: ofNumber(
      'readSync',
      ({ entry }, into: Uint8Array, at: number, length: number, offset: number) =>
        files().read(entry, into, at, offset, length),
    ),
  }
}

/** Those of `node:fs/promises`. */
export function promisedFileFunctions(files: Files, real: typeof filePromises) {
  let lastTemporary = 0
  return choosing(
    {
      open: async (path: string, flags: string | number = 'r') => {
        const opened = await files().run(openKind(flags), path, () => openEntry(files(), path, flags))
        return new SimulatedHandle(files, path, opened, typeof flags === 'string' && flags.startsWith('a'))
      },
      readFile: (path: string, text: Text) =>
        files().run('read', path, () => asRead(files().find(path).live, text)),
      writeFile: (path: string, data: string) =>
        files().run('write', path, () => writeWhole(files(), path, data, false)),
      appendFile: (path: string, data: string) =>
        files().run('write', path, () => writeWhole(files(), path, data, true)),
      rename: (from: string, to: string) => files().run('rename', from, () => files().rename(from, to)),
      unlink: (path: string) => files().run('unlink', path, () => files().unlink(path)),
      rm: (path: string, options?: { force?: boolean }) =>
        files().run('unlink', path, () => remove(files(), path, options?.force === true)),
      mkdir: (path: string, options?: { recursive?: boolean }) =>
        files().run('mkdir', path, () =>
          options?.recursive === true ? createFolders(files(), path) : void files().create(path, 'folder'),
        ),
      link: (from: string, to: string) => files().run('link', to, () => files().link(from, to)),
      copyFile: (from: string, to: string) =>
        files().run('write', to, () => {
          const copy = files().create(to, 'file')
          files().write(copy, 0, files().find(from).live)
        }),
      mkdtemp: (path: string) => {
        const made = `${path}${++lastTemporary}`
        return files().run('mkdir', made, () => {
          files().create(made, 'folder')
          return made
        })
      },
      readdir: (path: string, options?: object) =>
        files().run('list', path, () => direntsOf(files(), path, options)),
      stat: (path: string) => files().run('stat', path, () => statsOf(files().find(path))),
      lstat: (path: string) => files().run('stat', path, () => statsOf(files().find(path))),
      statfs: (path: string) => files().run('stat', path, () => spaceOf(files())),
    },
    real as never,
  )
}
