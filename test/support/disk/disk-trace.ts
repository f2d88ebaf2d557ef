// Computes from the recorded calls on a disk what a power cut at each of them would leave according to POSIX: bytes covered
// by a sync of their file, under names covered by a sync of their folder.
import { dirname, relative } from 'node:path'

export type Word =
  | 'sync?'
  | 'sync'
  | 'sync!'
  | 'open'
  | 'write'
  | 'empty'
  | 'rename'
  | 'link'
  | 'mkdir'
  | 'unlink'
  | 'unlinked'
  | 'answer'

export interface DiskCall {
  /** Its index among all calls. */
  at: number
  process: number
  word: Word
  /** Path relative to the watched folder; '' is that folder. */
  path: string
  /** The second path of a rename or link. */
  to: string
  /** For the end of a sync: the index of its begin. It covers the calls before that index. */
  beganAt: number
}

export function readCalls(trace: string, root: string): DiskCall[] {
  const begun = new Map<string, number>()
  // The last line may be incomplete.
  const whole = trace.slice(0, trace.lastIndexOf('\n') + 1)
  const lines = whole === '' ? [] : whole.trimEnd().split('\n')
  return lines.map((line, at) => {
    const [process, thread, word, path, to] = line.split(' ')
    if (word === 'sync?') begun.set(thread, at)
    return {
      ...{ at, process: Number(process), word: word as Word, beganAt: begun.get(thread) ?? at },
      path: word === 'answer' ? path : relative(root, path),
      to: to === undefined ? '' : relative(root, to),
    }
  })
}

interface File {
  writtenAt: number
  /** Bytes written before this index are on the disk. */
  syncedTo: number
  /** Index of a failed sync. Bytes before it may be readable but never reach the disk, even if later syncs succeed. */
  spoiltAt: number | null
}

export const SEGMENT = /^log\/(\d{20})\.log$/
const LAKE_FILE = /^lake\/\.files\/.*\.parquet$/
/** Of recorded market events: files of the lake, with the number of their first event, and segments of the journal. */
const EVENTS_FILE = /^lake\/\.files\/(?:trades|events)\/.*part-(\d+)-\d+\.parquet$/
const JOURNAL_SEGMENT = /^journal\/(\d{20})\.events$/
const STATE = /^state\.duckdb(\.wal)?$/

const parentOf = (path: string): string => (dirname(path) === '.' ? '' : dirname(path))

/** An initially empty disk, and the calls applied to it. */
export class TracedDisk {
  /** All names of files and folders, with the index of the call that made them. */
  readonly #named = new Map<string, number>()
  readonly #files = new Map<string, File>()
  readonly #folderSyncs = new Map<string, number>()

  get names(): string[] {
    return [...this.#named.keys()]
  }

  apply({ at, word, path, to, beganAt }: DiskCall): void {
    const file = this.#files.get(path)
    if (word === 'open' && file === undefined) {
      this.#name(path, at, { writtenAt: at, syncedTo: -1, spoiltAt: null })
    } else if (word === 'mkdir') this.#name(path, at)
    else if (word === 'write' && file !== undefined) file.writtenAt = at
    else if (word === 'empty' && file !== undefined) Object.assign(file, { writtenAt: at, spoiltAt: null })
    else if (word === 'link') this.#name(to, at, file)
    else if (word === 'rename') {
      this.#remove(path)
      this.#name(to, at, file)
    } else if (word === 'unlinked') this.#remove(path)
    else if (word === 'sync!' && file !== undefined) file.spoiltAt = at
    else if (word === 'sync' && file !== undefined) file.syncedTo = beganAt
    else if (word === 'sync') this.#folderSyncs.set(path, beganAt)
  }

  /** What a power cut could lose of a file: its bytes, its name or the name of a folder above it. */
  lossesOf(path: string): string[] {
    const losses: string[] = []
    const file = this.#files.get(path)
    if (file === undefined) losses.push(`${path} is not there`)
    else if (file.spoiltAt !== null && SEGMENT.test(path)) {
      // Its unsynced bytes were never acknowledged, and the next segment declares them void.
      if (file.writtenAt > file.spoiltAt)
        losses.push(`bytes of ${path}, written again after a sync of it failed`)
    } else if (file.spoiltAt !== null) losses.push(`bytes of ${path}, of which a sync failed`)
    else if (file.writtenAt > file.syncedTo) losses.push(`bytes of ${path}`)
    for (let name = path; name !== ''; name = parentOf(name)) {
      const namedAt = this.#named.get(name) ?? Number.POSITIVE_INFINITY
      const syncedTo = this.#folderSyncs.get(parentOf(name)) ?? -1
      if (namedAt > syncedTo) losses.push(`the name ${name}`)
    }
    return losses
  }

  #name(path: string, at: number, file?: File): void {
    this.#named.set(path, at)
    this.#folderSyncs.delete(path)
    if (file !== undefined) this.#files.set(path, file)
  }

  #remove(path: string): void {
    this.#named.delete(path)
    this.#files.delete(path)
    this.#folderSyncs.delete(path)
  }
}

export const isState = (path: string): boolean => STATE.test(path)
export const isLakeFile = (path: string): boolean => LAKE_FILE.test(path)

/** Whether it is a file of recorded events that begins at or before this one. */
function isBefore(path: string, eventNo: number): boolean {
  const file = EVENTS_FILE.exec(path)
  return file !== null && Number(file[1]) <= eventNo
}

/**
 * What a power cut could lose at moments when it must lose nothing: acknowledged commits whenever an answer is sent, and the
 * lake with its list of files whenever a segment of the log or the journal is removed. Empty if nothing could be lost.
 */
export function lossesOf(calls: readonly DiskCall[]): string[] {
  const disk = new TracedDisk()
  const losses = new Set<string>()
  const look = (when: string, isMeant: (path: string) => boolean): void => {
    for (const path of disk.names.filter(isMeant))
      for (const loss of disk.lossesOf(path)) losses.add(`${when}: ${loss}`)
  }
  for (const call of calls) {
    if (call.word === 'answer') look('answered', (path) => SEGMENT.test(path))
    if (call.word === 'unlink' && SEGMENT.test(call.path))
      look(
        `before ${call.path} goes`,
        (path) => isState(path) || (isLakeFile(path) && !EVENTS_FILE.test(path)),
      )
    const segment = call.word === 'unlink' ? JOURNAL_SEGMENT.exec(call.path) : null
    if (segment !== null)
      look(`before ${call.path} goes`, (path) => isState(path) || isBefore(path, Number(segment[1])))
    disk.apply(call)
  }
  return [...losses]
}
