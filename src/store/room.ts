// In: the data folder and how much of its disk is left alone. Out: whether there is room to write. What the store keeps in
// reserve lets DuckDB make its checkpoints, and the rest of the machine live. Never writes, but for a small trial.
import { statfsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ServiceError } from '../schema/errors.ts'
import { TRIAL_BYTES } from './limits.ts'

export interface Room {
  /** Throws `store_unavailable` unless `bytes` can be written and the reserve is left. */
  require(bytes?: number): void
  /** Why there is no room, as a sentence. */
  reason(bytes?: number): string
  /** False when the reserve is touched. */
  isThere(): boolean
  /** True when a small file can be written: limits that a disk does not tell of count too. */
  tryToWrite(): Promise<boolean>
}

const MEGABYTE = 1_048_576

/** What programs may still write to the disk of `folder`. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

export function openRoom(dataDir: string, reserveMb: number): Room {
  const reserveBytes = reserveMb * MEGABYTE
  const trialPath = join(dataDir, 'trial.tmp')

  const isThere = (bytes = 0): boolean => reserveBytes === 0 || freeBytes(dataDir) >= reserveBytes + bytes

  function reason(bytes = 0): string {
    const [free, needed] = [freeBytes(dataDir), reserveBytes + bytes].map((each) =>
      Math.round(each / MEGABYTE),
    )
    return isThere(bytes)
      ? `nothing can be written to ${dataDir}: its disk or a quota is full`
      : `the disk has ${free} MB left of the ${needed} MB that are needed`
  }

  function require(bytes = 0): void {
    if (!isThere(bytes)) throw new ServiceError('store_unavailable', reason(bytes))
  }

  async function tryToWrite(): Promise<boolean> {
    try {
      if (!isThere()) return false
      const file = await open(trialPath, 'w')
      try {
        await file.write(new Uint8Array(TRIAL_BYTES))
        await file.sync()
      } finally {
        await file.close()
      }
      return true
    } catch {
      return false
    } finally {
      await rm(trialPath, { force: true }).catch(() => undefined)
    }
  }

  return { require, reason, isThere, tryToWrite }
}
