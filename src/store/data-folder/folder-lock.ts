// Locks the data folder, so that one process at a time uses it. A lock counts only while its process lives. Locking never waits.
import { readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { unavailable } from '../errors.ts'

export interface FolderLock {
  /** Tries again where the disk took no lock. @returns why the folder is not locked: no commit and no event may be written then; null where it is */
  missing(): string | null
  /**
   * Never throws: that would hide why the folder is released.
   * @param isUnused another process may have the folder: the lock that was taken over from one that cannot be seen is put back
   */
  release(isUnused?: boolean): void
}

/** A symbolic link without a target: it is created with its text in one step, even on a disk without room for a file. */
export const LOCK_NAME = 'server.lock'
/**
 * Process number, start time and the namespace that the number is of. The time tells the holder from a later process that got the same
 * number.
 */
const HOLDER = /^(\d{1,15})@([^.]*(?:\.[^.]*)?)(?:\.(\d+))?$/
/** Fields of /proc/PID/stat, counted from the one after the program's name. */
const STATE_FIELD = 0
const THREADS_FIELD = 17
const START_TIME_FIELD = 19
/** The process has ended, but its parent has not waited for it yet, and may never do so. */
const ENDED_STATES = new Set(['Z', 'X', 'x'])
const ATTEMPTS = 3
/** Errors of a disk that takes nothing now, and may later. */
const TAKES_NOTHING = new Set(['EROFS', 'ENOSPC', 'EDQUOT'])
/** Errors of a folder that nobody can write to, or whose file system has no links: there is no lock there. */
const NO_LOCK = new Set(['EACCES', 'EPERM', 'ENOSYS', 'ENOTSUP'])

const readOrEmpty = (read: () => string): string => {
  try {
    return read()
  } catch {
    return ''
  }
}

/** Fields of /proc/PID/stat; empty where the process is gone or the system has no such file. */
function readStat(pid: number): string[] {
  const stat = readOrEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the program's name in brackets, and may hold anything.
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** The boot of the machine, and the kernel's start time of a process; '' where the system does not tell. */
function readStartTime(pid: number): string {
  const ticks = readStat(pid)[START_TIME_FIELD] ?? ''
  return ticks === '' ? '' : `${bootId()}.${ticks}`
}

/** Names the start of this machine; '' where the system does not tell. */
const bootId = (): string =>
  readOrEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')).slice(0, 8)

/** Names the namespace of process numbers, which a container has its own of; '' where the system does not tell. */
const namespaceId = (): string => /\d+/.exec(readOrEmpty(() => readlinkSync('/proc/self/ns/pid')))?.[0] ?? ''

/** What the text of a lock names; null: nothing. */
function readHolder(text: string): { pid: number; startedAt: string; isInSight: boolean } | null {
  const [, digits, startedAt = '', namespace = ''] = HOLDER.exec(text) ?? []
  if (digits === undefined) return null
  const isInSight = namespace === '' || namespace === namespaceId()
  return { pid: Number(digits), startedAt, isInSight }
}

const isElsewhere = (text: string): boolean => {
  const holder = readHolder(text)
  if (holder === null) return false
  const isOfThisBoot = holder.startedAt === '' || holder.startedAt.startsWith(`${bootId()}.`)
  return !holder.isInSight || !isOfThisBoot
}

/**
 * Whether all threads of a process have ended and only its entry is left. While a thread is in a disk operation, its write may
 * still happen, so the process counts as alive.
 */
function isEnded(pid: number): boolean {
  const stat = readStat(pid)
  return ENDED_STATES.has(stat[STATE_FIELD] ?? '') && Number(stat[THREADS_FIELD]) <= 1
}

/** The number of the process that the text of a lock names; null where it has ended, or cannot be seen from here. */
function findLivingHolder(text: string): number | null {
  const holder = readHolder(text)
  if (holder === null || !holder.isInSight) return null
  const { pid, startedAt } = holder
  try {
    process.kill(pid, 0)
  } catch (error) {
    // Without permission to signal it, the process exists.
    if (systemCode(error) !== 'EPERM') return null
  }
  if (isEnded(pid)) return null
  return startedAt === '' || readStartTime(pid) === startedAt ? pid : null
}

/**
 * Removes the lock of a process that has ended. If another process has taken the lock meanwhile, it is put back.
 * @returns false where the disk is read-only: then nobody can lock the folder
 */
function removeStaleLock(path: string, seen: string): boolean {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    const taken = readlinkSync(aside)
    if (taken !== seen) symlinkSync(taken, path)
    rmSync(aside, { force: true })
  } catch (error) {
    // Another process was faster. The next attempt finds its lock.
    return systemCode(error) !== 'EROFS'
  }
  return true
}

/** The number of the process that has locked a folder; null: no living process has. */
export function findLockHolder(folder: string): number | null {
  return findLivingHolder(readOrEmpty(() => readlinkSync(join(folder, LOCK_NAME))))
}

/** Whether a process locked the folder that cannot be seen from here: it may run on another machine, or in another container. */
export const isLockedElsewhere = (folder: string): boolean =>
  isElsewhere(readOrEmpty(() => readlinkSync(join(folder, LOCK_NAME))))

/** The text of this process's locks, which no other process has, of whatever container. */
export function ownText(): string {
  const [startedAt, namespace] = [readStartTime(process.pid), namespaceId()]
  return `${process.pid}@${startedAt}${startedAt === '' || namespace === '' ? '' : `.${namespace}`}`
}

/** `before`: the text of the lock that it was taken over from; '': there was none. */
type TakenLock = { state: 'taken'; before: string } | { state: 'none' | 'refused' }

/** @returns whether it was taken; `refused` by the disk. Throws `unavailable` while another living process, or this one, has it. */
function takeLock(folder: string, path: string): TakenLock {
  const me = ownText()
  let before = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      symlinkSync(me, path)
      return { state: 'taken', before }
    } catch (error) {
      const code = systemCode(error)
      if (TAKES_NOTHING.has(code)) return { state: 'refused' }
      if (NO_LOCK.has(code)) return { state: 'none' }
      if (code !== 'EEXIST')
        throw unavailable(`the data folder ${folder} cannot be locked: ${errorMessage(error)}`)
    }
    const text = readOrEmpty(() => readlinkSync(path))
    const pid = findLivingHolder(text)
    if (pid === process.pid) throw unavailable(`the data folder ${folder} is already in use by this process`)
    if (pid !== null)
      throw unavailable(`the data folder ${folder} is in use by another process (process ${pid})`)
    if (!removeStaleLock(path, text)) return { state: 'refused' }
    before = text
  }
  throw unavailable(`the data folder ${folder} is being locked by other processes at this moment`)
}

/** Replaces the lock in one step. */
function putBack(path: string, text: string): void {
  const aside = `${path}.${process.pid}`
  // Left by a process of the same number that was killed here.
  rmSync(aside, { force: true })
  symlinkSync(text, aside)
  renameSync(aside, path)
}

/** Locks the folder; on a disk that takes nothing, once it does. Throws `unavailable` while another living process, or this one, has locked it. */
export function lockFolder(folder: string): FolderLock {
  const path = join(folder, LOCK_NAME)
  let lock = takeLock(folder, path)
  return {
    missing() {
      try {
        if (lock.state === 'refused') lock = takeLock(folder, path)
      } catch (error) {
        return errorMessage(error)
      }
      return lock.state === 'refused' ? `the disk takes no lock of the data folder ${folder}` : null
    },
    release(isUnused = false) {
      // Another process may have taken it over meanwhile.
      if (lock.state !== 'taken' || readOrEmpty(() => readlinkSync(path)) !== ownText()) return
      try {
        if (isUnused && isElsewhere(lock.before)) putBack(path, lock.before)
        else rmSync(path, { force: true })
      } catch {
        // It stays, and counts only while this process lives.
      }
    },
  }
}
