// What a segment may be on its way to the disk, and what may happen to it. Once a sync of it has failed it has to be written anew: a later
// sync may do nothing and succeed.
import type { StateTable } from '../../lib/states.ts'

export type SegmentState =
  /** Batches are written to it. */
  | 'open'
  /** As open, but a sync of it has failed. */
  | 'openFailed'
  /** It is not written any more. */
  | 'unsynced'
  | 'syncFailed'
  /** Its contents are durable; its name may not be. */
  | 'synced'
  | 'durable'

export type SegmentEvent =
  /** Nothing more is written to it. */
  | 'ended'
  | 'synced'
  /** A sync has failed that may have begun before it ended. */
  | 'syncFailed'
  | 'rewritten'
  /** The folder was synced, which makes names durable. */
  | 'folderSynced'

const NEVER = { ended: null, synced: null, syncFailed: null, rewritten: null, folderSynced: null }

export const SEGMENT_STATES: StateTable<SegmentState, SegmentEvent> = {
  open: { ...NEVER, ended: 'unsynced', syncFailed: 'openFailed' },
  openFailed: { ...NEVER, ended: 'syncFailed' },
  unsynced: { ...NEVER, synced: 'synced', syncFailed: 'syncFailed' },
  syncFailed: { ...NEVER, syncFailed: 'syncFailed', rewritten: 'synced' },
  synced: { ...NEVER, syncFailed: 'syncFailed', folderSynced: 'durable' },
  durable: NEVER,
}
