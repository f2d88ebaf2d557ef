// In: nothing. Out: the words between the server and the processes of its exports. Never holds state.
import type { StoreErrorCode } from '../errors.ts'
import type { ExportFormat, ExportHead } from '../types.ts'
import type { Selection } from './selection.ts'

/** One export, as a process is told of it. */
export interface ExportWork {
  dataDir: string
  /** Its own, to write in; removed by whoever began it. */
  folder: string
  format: ExportFormat
  selection: Selection
  rowsMax: number
  /** Space of the disk that exports leave to the store. */
  diskReserveMb: number
}

/** `more`: a piece was taken. `stop`: nobody waits for the rest. Both of the work at hand; without any they mean nothing. */
export type ToExport = ExportWork | 'more' | 'stop'

export interface ExportFailure {
  code: StoreErrorCode
  message: string
  /** Of `invalid`: see StoreError. */
  field?: string
  /** For the log. */
  detail?: string
}

/** First the head, then pieces. The last word is that it is whole, or failed, or was called off: the process is free. */
export type FromExport =
  | { head: ExportHead }
  | { chunk: Uint8Array }
  | { end: 'whole' | 'calledOff' | ExportFailure }
