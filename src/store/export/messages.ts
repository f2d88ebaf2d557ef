// Messages between the server and the processes of its exports.
import type { JobFailure, JobTask } from '../lake-jobs.ts'
import type { ExportFormat, ExportHead } from '../types.ts'
import type { Selection } from './selection.ts'

/** An export, as its process receives it. */
export interface ExportTask extends JobTask {
  format: ExportFormat
  selection: Selection
  rowsMax: number
}

/** `more`: a chunk was taken. `stop`: the rest is not wanted. Both concern the running export and are ignored without one. */
export type ToExport = ExportTask | 'more' | 'stop'

export type ExportEnd = 'complete' | 'canceled' | JobFailure

/** The head, then chunks, then the end: complete, failed or canceled. After the end the process is free. */
export type FromExport = { head: ExportHead } | { chunk: Uint8Array } | { end: ExportEnd }
