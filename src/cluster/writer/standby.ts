// When a writer may begin: a standby waits until the one before it has ended. Another writer that still publishes on the bus has not.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config/settings.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import { checkDataFolder, checkNamedFiles } from '../../server/startable.ts'
import {
  type FolderLock,
  findLockHolder,
  isLockedElsewhere,
  lockFolder,
} from '../../store/data-folder/folder-lock.ts'
import { StoreError } from '../../store/errors.ts'
import { type Bus, connectBus } from '../bus.ts'
import { isStreamMissing } from '../bus-errors.ts'
import { SILENT_LOOK_MS, SILENT_MS, STANDBY_LOOK_MS, STANDBY_SILENT_MS } from '../limits.ts'
import { MessageError } from '../messages.ts'
import { FencedError, fenced } from './refused.ts'
import { readStreamEnd } from './stream-state.ts'

/**
 * Resolves when a writer may use the data folder, of a standby with its lock. Not a standby: at once, but for a folder that a process of
 * another machine, or of before this machine's last start, has locked: then the bus is asked, if it is there.
 * @throws FencedError where another writer publishes
 */
export async function whenWriterMayBegin(config: Config, log: Log): Promise<FolderLock | undefined> {
  if (config.role === 'standby') return waitForTurn(config, log)
  if (!isLockedElsewhere(config.dataDir)) return undefined
  try {
    const bus = await connectBus(config.bus, 'mintlake writer')
    try {
      if ((await silentFor(bus, SILENT_MS, false)) === 'published') throw fenced()
    } finally {
      await bus.close()
    }
  } catch (error) {
    if (error instanceof FencedError) throw error
    log.warn(
      { reason: errorMessage(error) },
      'whether the process that has locked the data folder still runs elsewhere cannot be asked on the bus',
    )
  }
  return undefined
}

/** Resolves with the lock of the data folder, once nobody uses it and nobody publishes. */
async function waitForTurn(config: Config, log: Log): Promise<FolderLock> {
  let told = ''
  let bus: Bus | null = null
  const connected = async (): Promise<Bus> => {
    bus ??= await connectBus(config.bus, 'mintlake standby')
    return bus
  }
  try {
    for (;;) {
      const turn = whyUnusable(config) ?? (await takeTurn(config, connected))
      if (typeof turn !== 'string') {
        log.info({}, 'the writer before has ended: taking over')
        return turn
      }
      if (turn !== told) log.info({ reason: turn }, 'standing by')
      told = turn
      await sleep(STANDBY_LOOK_MS)
    }
  } finally {
    await (bus as Bus | null)?.close()
  }
}

/**
 * What would keep it from ever taking over is told now, not at the failover: but not before the disk of its data folder, where the
 * files that settings name may be too, is there. @returns what may pass by waiting @throws StoreError for what will not
 */
function whyUnusable(config: Config): string | null {
  const { dataDir } = config
  if (!existsSync(dataDir))
    return `the data folder ${dataDir} is not there: mount its disk; for a new market start once with --role writer, which makes it`
  try {
    checkNamedFiles(config)
    checkDataFolder(config)
    return null
  } catch (error) {
    if (error instanceof StoreError && error.code === 'unavailable') return error.message
    throw error
  }
}

/** @returns the lock of the data folder, or why it is not this process's turn yet. @throws Error where it cannot be locked */
async function takeTurn(config: Config, connected: () => Promise<Bus>): Promise<FolderLock | string> {
  const { dataDir } = config
  const holder = findLockHolder(dataDir)
  if (holder !== null) return `the data folder is in use by process ${holder}`
  try {
    const bus = await connected()
    // What another machine has written last may not have arrived here.
    const counts = !isLockedElsewhere(dataDir)
    if ((await silentFor(bus, STANDBY_SILENT_MS, counts)) === 'published')
      return 'a writer publishes on the bus'
  } catch (error) {
    return `the bus does not tell whether a writer publishes: ${errorMessage(error)}`
  }
  try {
    return lockFolder(dataDir)
  } catch (error) {
    // Another standby was faster; anything else will not pass by waiting.
    if (findLockHolder(dataDir) === null) throw error
    return errorMessage(error)
  }
}

/** Whether the writer that published last has said that it has ended. Rejects where the bus is away. */
async function hasEnded(bus: Bus): Promise<boolean> {
  try {
    return (await readStreamEnd(bus)).message?.ended === true
  } catch (error) {
    // There is no stream, or it speaks another version: whether somebody publishes still shows.
    if (isStreamMissing(error) || error instanceof MessageError) return false
    throw error
  }
}

/**
 * Rejects where the bus is away. Ends early when something is published.
 * @param endCounts whether it also ends, as silent, where the writer says that it has ended
 */
async function silentFor(bus: Bus, ms: number, endCounts: boolean): Promise<'silent' | 'published'> {
  const untilMs = performance.now() + ms
  const first = await lastSequence(bus)
  while (performance.now() < untilMs) {
    if (endCounts && (await hasEnded(bus))) return 'silent'
    await sleep(Math.max(0, Math.min(SILENT_LOOK_MS, untilMs - performance.now())))
    if ((await lastSequence(bus)) === first) continue
    return endCounts && (await hasEnded(bus)) ? 'silent' : 'published'
  }
  return 'silent'
}

/** -1: there is no stream. */
async function lastSequence({ manager, names }: Bus): Promise<number> {
  try {
    return (await manager.streams.info(names.stream)).state.last_seq
  } catch (error) {
    if (isStreamMissing(error)) return -1
    throw error
  }
}
