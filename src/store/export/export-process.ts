// A process that runs exports, one after another, over the lake's files. It writes only to the folder of the export.

import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolderNow } from '../../lib/files.ts'
import { doJobs } from '../../lib/process/parent.ts'
import { requireSpace } from '../data-folder/disk-space.ts'
import { invalid, unavailable } from '../errors.ts'
import { type LakeTask, toLakeFailure } from '../lake-task.ts'
import {
  EXPORT_CHUNK_BYTES,
  EXPORT_FILE_BYTES_MAX,
  EXPORT_MEMORY_LIMIT,
  EXPORT_NICENESS,
  EXPORT_ROW_BYTES_MAX,
  EXPORT_SIZE_CHECK_MS,
  EXPORT_SPILL_MAX,
  EXPORT_THREADS,
} from '../limits.ts'
import { isInterrupted, isMissingFileError, type LakeReader, withLakeReader } from '../query/lake-reader.ts'
import type { ExportHead } from '../types.ts'
import type { ExportChunk, ExportTask } from './exports.ts'
import { type CountedSelection, streamArrow, writeParquet } from './formats.ts'
import { type ExportPage, formatCursor, planPage, type Selection } from './selection.ts'

type Task = ExportTask & LakeTask
type Send = (chunk: ExportChunk) => Promise<void>

const headOf = (
  { rows, more, next }: ExportPage,
  { lost }: LakeReader,
  { table }: Selection,
): ExportHead => ({
  rows,
  more,
  next: formatCursor(next),
  missingFiles: lost.filter((file) => file.table === table).length,
})

/** Runs `work` with a reader of the lake. Until it has sent a chunk it may run again; see `withLakeReader`. */
function overLake<T>(
  { dataDir, folder, selection, rowsMax }: Task,
  target: string | undefined,
  work: (reader: LakeReader, selection: CountedSelection, page: ExportPage) => Promise<T>,
): Promise<T> {
  const options = {
    dataDir,
    target,
    memoryLimit: EXPORT_MEMORY_LIMIT,
    threads: EXPORT_THREADS,
    spillParent: folder,
    spillMax: EXPORT_SPILL_MAX,
  }
  return withLakeReader(options, async (reader) => {
    const page = await planPage(reader.connection, selection, rowsMax)
    return work(reader, { ...selection, upTo: page.next, rows: page.rows }, page)
  })
}

async function sendArrow(task: Task, send: Send): Promise<void> {
  await overLake(task, undefined, async (reader, selection, page) => {
    let hasBegun = false
    try {
      for await (const { bytes } of streamArrow(reader, selection)) {
        if (!hasBegun) await send(headOf(page, reader, selection))
        hasBegun = true
        await send(bytes)
      }
    } catch (error) {
      if (!hasBegun || !isMissingFileError(error)) throw error
      throw unavailable('files of the lake were replaced meanwhile')
    }
  })
}

/** Runs `write`, and interrupts it when the file gets too large. */
async function limitFileSize(reader: LakeReader, path: string, write: () => Promise<void>): Promise<void> {
  let isTooLarge = false
  const timer = setInterval(async () => {
    const bytes = (await stat(path).catch(() => null))?.size ?? 0
    isTooLarge ||= bytes > EXPORT_FILE_BYTES_MAX
    if (isTooLarge) reader.interrupt()
  }, EXPORT_SIZE_CHECK_MS)
  try {
    await write()
  } catch (error) {
    if (!(isTooLarge && isInterrupted(error))) throw error
    throw invalid(`limit: the file would be larger than ${EXPORT_FILE_BYTES_MAX} bytes; ask for fewer rows`)
  } finally {
    clearInterval(timer)
  }
}

async function sendParquet(task: Task, send: Send): Promise<void> {
  const { folder, dataDir, diskReserveMb } = task
  const path = join(folder, 'training.parquet')
  const head = await overLake(task, path, async (reader, selection, planned) => {
    requireSpace(dataDir, diskReserveMb, Math.min(EXPORT_FILE_BYTES_MAX, planned.rows * EXPORT_ROW_BYTES_MAX))
    await limitFileSize(reader, path, () => writeParquet(reader, selection, path))
    return headOf(planned, reader, selection)
  })
  const file = await open(path, 'r')
  try {
    await send(head)
    const chunks = file.createReadStream({ highWaterMark: EXPORT_CHUNK_BYTES, autoClose: false })
    for await (const chunk of chunks) await send(chunk)
  } finally {
    await file.close()
  }
}

async function run(task: Task, send: Send): Promise<void> {
  makeFolderNow(task.folder)
  await (task.format === 'arrow' ? sendArrow : sendParquet)(task, send)
}

doJobs(EXPORT_NICENESS, run, toLakeFailure)
