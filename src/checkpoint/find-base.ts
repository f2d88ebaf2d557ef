// Finds what a market can be restored from: a checkpoint and the journal behind it, or the journal alone where it begins with an
// empty market.

import { findEnd, type JournalEnd } from '../journal/reader.ts'
import { nodeDisk } from '../lib/disk/disk.ts'
import { errorMessage } from '../lib/error-text.ts'
import { CheckpointError } from '../lib/sections/checkpoint-error.ts'
import { Market, type MarketOptions } from '../market/market.ts'
import type { EngineSettings } from '../schema/event.ts'
import { CheckpointFile, type CheckpointHead } from './checkpoint-file.ts'
import { listCheckpoints, type StoredCheckpoint } from './checkpoint-folder.ts'

export interface RecordFolders {
  journalFolder: string
  checkpointFolder: string
  /** Identity of the data folder. */
  folderId: string
}

/** Folders as a start looks at them. */
export interface StartFolders extends RecordFolders {
  /** Where it was noted how far the journal went. Default: nowhere. */
  journalMarkPath?: string
}

/** What was recorded in a data folder, as a start finds it. */
export interface Recorded extends RecordFolders {
  /** An event that is known to have been recorded, whatever the journal has: the last one of the lake. */
  knownEventNo: number
  end: JournalEnd
  /** The newest first. */
  checkpoints: StoredCheckpoint[]
  /** Of the newest segment that tells; null: there is none. */
  latest: { originEventNo: number; simulated: boolean; settings: EngineSettings } | null
}

/** @param knownEventNo the last event that the lake has */
export async function findRecorded(folders: StartFolders, knownEventNo: number): Promise<Recorded> {
  const { journalFolder: folder, folderId, journalMarkPath: markPath } = folders
  const end = await findEnd({ folder, folderId, markPath }, knownEventNo, nodeDisk)
  const checkpoints = await listCheckpoints(folders.checkpointFolder)
  const latest = end.segments.findLast(({ header }) => header !== null)?.header ?? null
  return { ...folders, end, checkpoints, latest, knownEventNo }
}

/** The last event that anything here has. */
export const lastRecordedEvent = ({ end, checkpoints }: Recorded): number =>
  Math.max(end.lastEventNo, checkpoints[0]?.eventNo ?? 0)

export interface Base {
  /** The market is restored as it was after this event, and those behind it are applied. */
  afterEventNo: number
  originEventNo: number
  /** Of its checkpoint; null: it begins empty, with the event at `originEventNo`. */
  head: CheckpointHead | null
  /** Settings by which the events behind it were applied, as far as the journal tells without being read. */
  settings: EngineSettings
}

/** How many events up to this one a market lacks that was restored from a base and had so many behind it applied. */
export const lostThrough = (eventNo: number, { head, afterEventNo }: Base, applied: number): number =>
  (head?.lostEvents ?? 0) + eventNo - afterEventNo - applied

export interface FindBaseOptions {
  /** Called for each checkpoint that should be usable and is not. */
  onUnusable(checkpoint: StoredCheckpoint & { reason: string }): void
  /** Of the market of a base. */
  optionsOf(base: Base): MarketOptions
}

export interface RestoredBase {
  base: Base
  market: Market
}

/**
 * Whether the journal has everything behind an event, as far as the names of its segments tell. One that was emptied into the lake does
 * not, although it has no hole.
 */
export function isConnected({ end, knownEventNo }: Recorded, afterEventNo: number): boolean {
  if (Math.max(end.heldEventNo, knownEventNo) <= afterEventNo) return true
  const first = end.segments.find(({ cutoffNo }) => cutoffNo > afterEventNo)
  return first !== undefined && first.firstNo <= afterEventNo + 1
}

/** @throws CheckpointError where a checkpoint cannot be used with this journal */
function requireUsable(recorded: Recorded, { eventNo }: StoredCheckpoint, head: CheckpointHead): void {
  if (head.folderId !== recorded.folderId) throw new CheckpointError('It belongs to another data folder.')
  if (head.eventNo !== eventNo) throw new CheckpointError('Its name is not that of its event.')
  if (!isConnected(recorded, eventNo))
    throw new CheckpointError('The journal does not have the events behind it.')
}

/** The newest base with its market; null where there is none. */
export function findBase(
  recorded: Recorded,
  { onUnusable, optionsOf }: FindBaseOptions,
): RestoredBase | null {
  const { latest, checkpoints } = recorded
  for (const stored of checkpoints) {
    // A market that began as an empty one is not restored to what was before it.
    if (latest !== null && latest.originEventNo > stored.eventNo) break
    try {
      const file = new CheckpointFile(stored.path)
      try {
        const { head } = file
        requireUsable(recorded, stored, head)
        const { eventNo: afterEventNo, originEventNo, settings } = head
        const base = { afterEventNo, originEventNo, head, settings }
        return { base, market: Market.restore(optionsOf(base), file.read) }
      } finally {
        // An open file would keep its place on the disk after it is deleted.
        file.close()
      }
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error
      onUnusable({ ...stored, reason: errorMessage(error) })
    }
  }
  if (latest === null || !isConnected(recorded, latest.originEventNo - 1)) return null
  const { originEventNo, settings } = latest
  const base = { afterEventNo: originEventNo - 1, originEventNo, head: null, settings }
  return { base, market: new Market(optionsOf(base)) }
}
