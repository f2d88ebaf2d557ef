// A child process that runs exports, one after another, over the lake's files. Of low priority; it writes only to the folder of
// the export, and sends chunks only as the server takes them.

import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolderNow } from '../../lib/files.ts'
import { sendToParent, workForParent } from '../../lib/process/parent.ts'
import { requireSpace } from '../data-folder/disk-space.ts'
import { StoreError, unavailable } from '../errors.ts'
import {
  EXPORT_CHUNK_BYTES,
  EXPORT_CHUNKS_AHEAD,
  EXPORT_FILE_BYTES_MAX,
  EXPORT_INTERRUPT_MS,
  EXPORT_MEMORY_LIMIT,
  EXPORT_NICENESS,
  EXPORT_ROW_BYTES_MAX,
  EXPORT_SIZE_CHECK_MS,
  EXPORT_SPILL_MAX,
  EXPORT_THREADS,
} from '../limits.ts'
import { isInterrupted, isMissingFileError, type LakeReader, withLakeReader } from '../query/lake-reader.ts'
import { type CountedSelection, streamArrow, writeParquet } from './formats.ts'
import type { ExportEnd, ExportTask, FromExport, ToExport } from './messages.ts'
import { type ExportPage, formatCursor, planPage } from './selection.ts'

/** Thrown where the export was canceled. */
class Canceled extends Error {}

/** The running export. */
class RunningExport {
  readonly task: ExportTask
  isCanceled = false
  /** How many chunks the server can take now. */
  #credits = EXPORT_CHUNKS_AHEAD
  #onCredit: () => void = () => {}
  #interrupt: () => void = () => {}
  #interrupting: NodeJS.Timeout | null = null

  constructor(task: ExportTask) {
    this.task = task
  }

  /** @param interrupt ends the statement that DuckDB runs */
  onCancel(interrupt: () => void): void {
    this.#interrupt = interrupt
  }

  addCredit(): void {
    this.#credits++
    this.#onCredit()
  }

  cancel(): void {
    if (this.isCanceled) return
    this.isCanceled = true
    // Repeatedly, since an interrupt between two statements has no effect.
    this.#interrupting = setInterval(() => this.#interrupt(), EXPORT_INTERRUPT_MS)
    this.#interrupt()
    this.#onCredit()
  }

  end(): void {
    if (this.#interrupting !== null) clearInterval(this.#interrupting)
  }

  throwIfCanceled(): void {
    if (this.isCanceled) throw new Canceled()
  }

  /** Sends bytes once the server can take them. */
  async send(bytes: Uint8Array): Promise<void> {
    while (this.#credits === 0 && !this.isCanceled) {
      await new Promise<void>((resolve) => {
        this.#onCredit = resolve
      })
    }
    this.throwIfCanceled()
    this.#credits--
    post({ chunk: bytes })
  }
}

const post = (message: FromExport): void => sendToParent(message)

const postHead = ({ rows, more, next }: ExportPage): void =>
  post({ head: { rows, more, next: formatCursor(next) } })

/** Runs `work` with a reader of the lake. Until it has sent a chunk it may run again; see `withLakeReader`. */
function overLake<T>(
  running: RunningExport,
  target: string | undefined,
  work: (reader: LakeReader, selection: CountedSelection, page: ExportPage) => Promise<T>,
): Promise<T> {
  const { dataDir, folder, selection, rowsMax } = running.task
  const options = {
    dataDir,
    target,
    memoryLimit: EXPORT_MEMORY_LIMIT,
    threads: EXPORT_THREADS,
    spillParent: folder,
    spillMax: EXPORT_SPILL_MAX,
  }
  return withLakeReader(options, async (reader) => {
    running.onCancel(() => reader.interrupt())
    running.throwIfCanceled()
    const page = await planPage(reader.connection, selection, rowsMax)
    running.throwIfCanceled()
    return work(reader, { ...selection, upTo: page.next, rows: page.rows }, page)
  })
}

async function sendArrow(running: RunningExport): Promise<void> {
  await overLake(running, undefined, async (reader, selection, page) => {
    let hasBegun = false
    try {
      for await (const { bytes } of streamArrow(reader, selection)) {
        if (!hasBegun) postHead(page)
        hasBegun = true
        await running.send(bytes)
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
    throw new StoreError(
      'invalid',
      `limit: the file would be larger than ${EXPORT_FILE_BYTES_MAX} bytes; ask for fewer rows`,
    )
  } finally {
    clearInterval(timer)
  }
}

async function sendParquet(running: RunningExport): Promise<void> {
  const { folder, dataDir, diskReserveMb } = running.task
  const path = join(folder, 'training.parquet')
  const page = await overLake(running, path, async (reader, selection, planned) => {
    requireSpace(dataDir, diskReserveMb, Math.min(EXPORT_FILE_BYTES_MAX, planned.rows * EXPORT_ROW_BYTES_MAX))
    await limitFileSize(reader, path, () => writeParquet(reader, selection, path))
    return planned
  })
  const file = await open(path, 'r')
  try {
    postHead(page)
    const buffer = Buffer.allocUnsafe(EXPORT_CHUNK_BYTES)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length)
      if (bytesRead === 0) return
      await running.send(buffer.subarray(0, bytesRead))
    }
  } finally {
    await file.close()
  }
}

function toEnd(error: unknown, { isCanceled }: RunningExport): ExportEnd {
  if (isCanceled) return 'canceled'
  if (error instanceof StoreError) {
    const { code, message, field } = error
    return field === null ? { code, message } : { code, message, field }
  }
  return { code: 'unavailable', message: 'the lake cannot be read just now', detail: String(error) }
}

async function run(task: ExportTask): Promise<void> {
  const running = new RunningExport(task)
  current = running
  let end: ExportEnd = 'complete'
  try {
    makeFolderNow(task.folder)
    if (task.format === 'arrow') await sendArrow(running)
    else await sendParquet(running)
  } catch (error) {
    end = toEnd(error, running)
  }
  running.end()
  current = null
  post({ end })
}

let current: RunningExport | null = null
workForParent(EXPORT_NICENESS)
process.on('message', (message: ToExport) => {
  if (message === 'more') current?.addCredit()
  else if (message === 'stop') current?.cancel()
  else void run(message)
})
