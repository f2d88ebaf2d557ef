// The messages between the server and the process that makes a checkpoint.
import type { RecordFolders } from './find-base.ts'

export interface CheckpointTask extends RecordFolders {
  /** The last event of the checkpoint at least; durable. */
  throughEventNo: number
  /** The lake has every closed bar that ended by this market time, Unix ms. */
  barsInLakeToMs: number
  /** The event with which the market of the server began as an empty one, and how many recorded ones it lacks since. */
  originEventNo: number
  lostEvents: number
  /** Checkpoints that cannot be used, by event number. */
  unusable: readonly number[]
}

export interface CheckpointResult {
  eventNo: number
  bytes: number
  /** Events behind the checkpoint before it that were applied. */
  events: number
  /** Events that the market of the server has, and the journal has lost. Where it is not 0, no checkpoint was written. */
  lost: number
  /** What it could not begin with, and why. */
  unusable: readonly string[]
  restoreMs: number
  replayMs: number
  writeMs: number
  /** The most memory that the process has used. */
  peakBytes: number
}
