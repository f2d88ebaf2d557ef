// In: a data folder. Out: the right to use it, for one process at a time. The right ends with its process, however that
// ends. Never waits for another process.
import { readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { unavailable } from '../errors.ts'

export interface FolderLock {
  release(): void
}

/** A symbolic link that points nowhere: it is made with its text in one step, even where the disk has no room for a file. */
const LOCK_NAME = 'server.lock'
/** Process number, and when it started: a number that was given to another process since is told apart. */
const HOLDER = /^(\d{1,15})@(.*)$/
/** Fields of /proc/PID/stat, counted from the one behind the program's name. */
const STATE_FIELD = 0
const THREADS_FIELD = 17
const START_TIME_FIELD = 19
/** A process that has ended and that its parent has not asked about yet: a parent may never ask. */
const ENDED_STATES = new Set(['Z', 'X', 'x'])
const ATTEMPTS = 3
/** Nobody can write there, so nobody needs to be kept out. */
const CANNOT_WRITE = new Set(['EROFS', 'ENOSPC', 'EDQUOT', 'EACCES', 'EPERM', 'ENOSYS', 'ENOTSUP'])

const readOr = (read: () => string): string => {
  try {
    return read()
  } catch {
    return ''
  }
}

/** What the kernel says of a process; empty where it says nothing. */
function statOf(pid: number): string[] {
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the program's name in brackets, and may hold anything.
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** When a process started, in the kernel's own count, and in which run of the machine; '' where that is not told. */
function startOf(pid: number): string {
  const ticks = statOf(pid)[START_TIME_FIELD] ?? ''
  const boot = readOr(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')).slice(0, 8)
  return ticks === '' ? '' : `${boot}.${ticks}`
}

/**
 * Whether all of a process has ended and only its entry is left. While one of its threads is still in a call of the disk,
 * what it writes may yet come, and it counts as alive.
 */
function isEnded(pid: number): boolean {
  const stat = statOf(pid)
  return ENDED_STATES.has(stat[STATE_FIELD] ?? '') && Number(stat[THREADS_FIELD]) <= 1
}

/** The process that the lock names, while it lives; else null. */
function livingHolder(text: string): number | null {
  const [, digits, startedAt] = HOLDER.exec(text) ?? []
  if (digits === undefined) return null
  const pid = Number(digits)
  try {
    process.kill(pid, 0)
  } catch (error) {
    // Without permission to signal it, it is there all the same.
    if (systemCode(error) !== 'EPERM') return null
  }
  if (isEnded(pid)) return null
  return startedAt === '' || startOf(pid) === startedAt ? pid : null
}

/**
 * Takes away the lock of a process that is gone. Where another process took it meanwhile, that one gets it back.
 * @returns false where the disk takes no writes: then nobody can have it
 */
function clear(path: string, seen: string): boolean {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    const taken = readlinkSync(aside)
    if (taken !== seen) symlinkSync(taken, path)
    rmSync(aside, { force: true })
  } catch (error) {
    // Another process was faster: the next attempt tells who has it.
    return systemCode(error) !== 'EROFS'
  }
  return true
}

/** The process that has a folder, where one that lives has; else null. */
export function holderOf(folder: string): number | null {
  return livingHolder(readOr(() => readlinkSync(join(folder, LOCK_NAME))))
}

/** Takes the folder. Throws `unavailable` while a process that lives has it. */
export function lockFolder(folder: string): FolderLock {
  const path = join(folder, LOCK_NAME)
  const me = `${process.pid}@${startOf(process.pid)}`
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      symlinkSync(me, path)
      return { release: () => rmSync(path, { force: true }) }
    } catch (error) {
      const code = systemCode(error)
      if (code !== 'EEXIST') {
        if (CANNOT_WRITE.has(code)) return { release: () => {} }
        throw unavailable(`the data folder ${folder} cannot be locked: ${errorMessage(error)}`)
      }
    }
    const text = readOr(() => readlinkSync(path))
    const pid = livingHolder(text)
    if (pid === process.pid) throw unavailable(`the data folder ${folder} is in use by this very process`)
    if (pid !== null)
      throw unavailable(`the data folder ${folder} is in use by another server (process ${pid})`)
    if (!clear(path, text)) return { release: () => {} }
  }
  throw unavailable(`the data folder ${folder} is being taken by other processes just now`)
}
