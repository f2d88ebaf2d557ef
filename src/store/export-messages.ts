// In: nothing. Out: the words between the server and the thread of an export. Never holds state.
import type { ErrorCode } from '../schema/errors.ts'
import type { Selection } from './selection.ts'
import type { ExportFormat, ExportHead } from './types.ts'

/** What a thread is started with. */
export interface ExportWork {
  dataDir: string
  /** Its own, to write in; removed by whoever started it. */
  folder: string
  format: ExportFormat
  selection: Selection
  rowsMax: number
}

/** `more`: a piece was taken. */
export type ToExport = 'more' | 'stop'

/** First the head, then pieces, then the end; or at any time a failure, and nothing after it. */
export type FromExport =
  | { head: ExportHead }
  | { piece: Uint8Array }
  | { end: true }
  | { failed: { code: ErrorCode; message: string; detail?: string } }
