// What the process that brings a checkpoint to the bus is told, and what it replies.
import type { BusSettings } from '../settings.ts'

export interface UploadTask {
  settings: BusSettings
  path: string
  eventNo: number
  /** Identity of the data folder. */
  folderId: string
  runId: string
  /** Checkpoints on the bus of this event or later ones are of events that the writer never had, and are deleted; null: none are. */
  lostFromEventNo: number | null
}

export interface UploadResult {
  /** 0: it was there already. */
  bytes: number
  tookMs: number
}
