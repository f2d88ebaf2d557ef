// When a writer may begin: a standby waits until the one before it has ended. Another writer that still publishes on the bus has not.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config/settings.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import { findLockHolder, isLockedElsewhere } from '../../store/data-folder/folder-lock.ts'
import { type Bus, connectBus } from '../bus.ts'
import { SILENT_MS, STANDBY_LOOK_MS, STANDBY_SILENT_MS } from '../limits.ts'
import { FencedError, fenced } from './standing.ts'
import { hasCode, STREAM_NOT_FOUND } from './stream-state.ts'

/**
 * Resolves when a writer may use the data folder. Not a standby: at once, but for a folder that a process of another machine, or of
 * before this machine's last start, has locked: then the bus is asked, if it is there.
 * @throws FencedError where another writer publishes
 */
export async function whenWriterMayBegin(config: Config, log: Log): Promise<void> {
  if (config.standby) return waitForTurn(config, log)
  if (!isLockedElsewhere(config.dataDir)) return
  try {
    if ((await silentFor(config, SILENT_MS)) === 'published') throw fenced()
  } catch (error) {
    if (error instanceof FencedError) throw error
    log.warn(
      { reason: errorMessage(error) },
      'whether the process that has locked the data folder still runs elsewhere cannot be asked on the bus',
    )
  }
}

/** Resolves when nobody uses the data folder and nobody publishes. */
async function waitForTurn(config: Config, log: Log): Promise<void> {
  let told = ''
  for (;;) {
    const reason = await whyNotYet(config)
    if (reason === null) break
    if (reason !== told) log.info({ reason }, 'standing by')
    told = reason
    await sleep(STANDBY_LOOK_MS)
  }
  log.info({}, 'the writer before has ended: taking over')
}

async function whyNotYet(config: Config): Promise<string | null> {
  const { dataDir } = config
  if (!existsSync(dataDir)) return `the data folder ${dataDir} is not there`
  const holder = findLockHolder(dataDir)
  if (holder !== null) return `the data folder is in use by process ${holder}`
  try {
    if ((await silentFor(config, STANDBY_SILENT_MS)) === 'published') return 'a writer publishes on the bus'
  } catch (error) {
    return `the bus does not tell whether a writer publishes: ${errorMessage(error)}`
  }
  return findLockHolder(dataDir) === null ? null : 'the data folder is in use'
}

/** Rejects where the bus is away. Ends early when something is published. */
async function silentFor(config: Config, ms: number): Promise<'silent' | 'published'> {
  const bus = await connectBus(config, 'mintlake standby')
  try {
    const untilMs = performance.now() + ms
    const first = await lastSequence(bus)
    while (performance.now() < untilMs) {
      await sleep(Math.min(STANDBY_LOOK_MS, untilMs - performance.now()))
      if ((await lastSequence(bus)) !== first) return 'published'
    }
    return 'silent'
  } finally {
    await bus.close()
  }
}

/** -1: there is no stream. */
async function lastSequence({ manager, names }: Bus): Promise<number> {
  try {
    return (await manager.streams.info(names.stream)).state.last_seq
  } catch (error) {
    if (hasCode(error, STREAM_NOT_FOUND)) return -1
    throw error
  }
}
