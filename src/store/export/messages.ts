// Messages between the server and the processes of its exports.
import type { StoreErrorCode } from '../errors.ts'
import type { ExportFormat, ExportHead } from '../types.ts'
import type { Selection } from './selection.ts'

/** An export, as its process receives it. */
export interface ExportTask {
  dataDir: string
  /** A folder that only this export uses. The server removes it. */
  folder: string
  format: ExportFormat
  selection: Selection
  rowsMax: number
  /** Disk space that exports leave to the store, MB. */
  diskReserveMb: number
}

/** `more`: a chunk was taken. `stop`: the rest is not wanted. Both concern the running export and are ignored without one. */
export type ToExport = ExportTask | 'more' | 'stop'

/** Why an export failed. */
export interface ExportFailure {
  code: StoreErrorCode
  message: string
  /** The invalid request field; see StoreError. */
  field?: string
  /** For the log. */
  detail?: string
}

export type ExportEnd = 'complete' | 'canceled' | ExportFailure

/** The head, then chunks, then the end: complete, failed or canceled. After the end the process is free. */
export type FromExport = { head: ExportHead } | { chunk: Uint8Array } | { end: ExportEnd }
