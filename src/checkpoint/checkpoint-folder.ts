// The checkpoints of a data folder: which there are, and which are kept.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing } from '../lib/error-text.ts'
import { syncPath } from '../lib/files.ts'
import { DAY_MS } from '../lib/time.ts'
import { CheckpointFile, checkpointNames } from './checkpoint-file.ts'
import { CHECKPOINTS_KEPT } from './limits.ts'

export interface StoredCheckpoint {
  path: string
  eventNo: number
}

/** All checkpoints, the newest first; none where the folder is missing. */
export async function listCheckpoints(folder: string): Promise<StoredCheckpoint[]> {
  const names = (await readdir(folder).catch(ignoreMissing)) ?? []
  return names
    .flatMap((name) => {
      const eventNo = checkpointNames.numberOf(name)
      return eventNo === null ? [] : [{ path: join(folder, name), eventNo }]
    })
    .sort((a, b) => b.eventNo - a.eventNo)
}

/** The event behind which the journal is needed: that of the oldest of the newest checkpoints; 0 while there are fewer. */
export const journalNeededAfter = (checkpoints: readonly StoredCheckpoint[]): number =>
  checkpoints[CHECKPOINTS_KEPT - 1]?.eventNo ?? 0

/**
 * Deletes all checkpoints but the newest of the present market, and the first usable one of each UTC date of market time whose events the
 * lake has: replays begin there.
 * @param retainedFrom the first event from which on the lake has all
 */
export async function removeOldCheckpoints(
  folder: string,
  retainedFrom: number,
  { isUsable, isOfMarket }: Record<'isUsable' | 'isOfMarket', (checkpoint: StoredCheckpoint) => boolean>,
): Promise<void> {
  const checkpoints = await listCheckpoints(folder)
  const newest = checkpoints.filter(isOfMarket).slice(0, CHECKPOINTS_KEPT)
  const dates = new Set<number>()
  let isRemoved = false
  for (const checkpoint of checkpoints.toReversed()) {
    if (newest.includes(checkpoint)) continue
    const date = isUsable(checkpoint) ? dateOf(checkpoint.path) : null
    const isFirstOfDate = date !== null && !dates.has(date)
    if (date !== null) dates.add(date)
    if (isFirstOfDate && checkpoint.eventNo >= retainedFrom - 1) continue
    await rm(checkpoint.path, { force: true })
    isRemoved = true
  }
  if (isRemoved) await syncPath(folder)
}

/** The UTC date of a checkpoint's market time, days since 1970; null where it cannot be read. */
function dateOf(path: string): number | null {
  try {
    const file = new CheckpointFile(path)
    file.close()
    return Math.floor(file.head.atMs / DAY_MS)
  } catch {
    return null
  }
}
