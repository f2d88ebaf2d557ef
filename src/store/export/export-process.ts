// In: exports, one after another. Out: the head and the bytes of each, as messages, never more of them at once than the
// other side has room for. A process of its own over the lake's files alone, of low priority: no commit waits for it. Never
// writes anywhere but into the export's own folder.
import { mkdirSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
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
  EXPORT_SPILL_MAX,
  EXPORT_THREADS,
  EXPORT_WATCH_MS,
} from '../limits.ts'
import { isInterrupted, isOutdated, type LakeReader, withLake } from '../query/lake-reader.ts'
import { arrowExtract, parquetExtract } from './formats.ts'
import type { ExportWork, FromExport, ToExport } from './messages.ts'
import { cursorText, type ExportPage, planPage, type Selection } from './selection.ts'

/** The export was called off: nobody waits for a word. */
class CalledOff extends Error {}

/** What is known of the export at hand while it lasts. */
class Task {
  readonly work: ExportWork
  room = EXPORT_CHUNKS_AHEAD
  isStopped = false
  /** Called when there is room, or no need of it. */
  onRoom: () => void = () => {}
  /** Ends what DuckDB is doing. */
  interrupt: () => void = () => {}
  #interrupting: NodeJS.Timeout | null = null

  constructor(work: ExportWork) {
    this.work = work
  }

  more(): void {
    this.room++
    this.onRoom()
  }

  stop(): void {
    if (this.isStopped) return
    this.isStopped = true
    // Again and again: an interruption between two statements is lost.
    this.#interrupting = setInterval(() => this.interrupt(), EXPORT_INTERRUPT_MS)
    this.interrupt()
    this.onRoom()
  }

  end(): void {
    if (this.#interrupting !== null) clearInterval(this.#interrupting)
  }

  check(): void {
    if (this.isStopped) throw new CalledOff()
  }

  async waitForRoom(): Promise<void> {
    while (this.room === 0 && !this.isStopped) {
      await new Promise<void>((resolve) => {
        this.onRoom = resolve
      })
    }
    this.check()
  }
}

function post(message: FromExport): void {
  if (process.connected) process.send?.(message)
}

/** Sends bytes once there is room for them. */
async function send(task: Task, bytes: Uint8Array): Promise<void> {
  await task.waitForRoom()
  task.room--
  post({ chunk: bytes })
}

const postHead = ({ rows, more, next }: ExportPage): void =>
  post({ head: { rows, more, next: cursorText(next) } })

/** Runs `act` over a reader of the lake, with what to select. Until it has sent a byte it may be run again. */
function overLake<T>(
  task: Task,
  target: string | undefined,
  act: (reader: LakeReader, selection: Selection, page: ExportPage) => Promise<T>,
): Promise<T> {
  const { work } = task
  const options = {
    dataDir: work.dataDir,
    target,
    memoryLimit: EXPORT_MEMORY_LIMIT,
    threads: EXPORT_THREADS,
    spillParent: work.folder,
    spillMax: EXPORT_SPILL_MAX,
  }
  return withLake(options, async (reader) => {
    task.interrupt = () => reader.interrupt()
    task.check()
    const page = await planPage(reader.connection, work.selection, work.rowsMax)
    task.check()
    return act(reader, { ...work.selection, upTo: page.next }, page)
  })
}

async function sendArrow(task: Task): Promise<void> {
  await overLake(task, undefined, async (reader, selection, page) => {
    let isBegun = false
    try {
      for await (const { bytes } of arrowExtract(reader, selection)) {
        if (!isBegun) postHead(page)
        isBegun = true
        await send(task, bytes)
      }
    } catch (error) {
      throw isBegun && isOutdated(error) ? unavailable('files of the lake were replaced meanwhile') : error
    }
  })
}

/** Runs `write`, and ends it when the file gets too large. */
async function bounded(reader: LakeReader, path: string, write: () => Promise<void>): Promise<void> {
  let isTooLarge = false
  const timer = setInterval(async () => {
    const bytes = (await stat(path).catch(() => null))?.size ?? 0
    isTooLarge ||= bytes > EXPORT_FILE_BYTES_MAX
    if (isTooLarge) reader.interrupt()
  }, EXPORT_WATCH_MS)
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

async function sendParquet(task: Task): Promise<void> {
  const { folder, dataDir, diskReserveMb } = task.work
  const path = join(folder, 'training.parquet')
  const page = await overLake(task, path, async (reader, selection, planned) => {
    requireSpace(dataDir, diskReserveMb, Math.min(EXPORT_FILE_BYTES_MAX, planned.rows * EXPORT_ROW_BYTES_MAX))
    await bounded(reader, path, () => parquetExtract(reader, selection, path))
    return planned
  })
  const file = await open(path, 'r')
  try {
    postHead(page)
    const buffer = Buffer.allocUnsafe(EXPORT_CHUNK_BYTES)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length)
      if (bytesRead === 0) return
      await send(task, buffer.subarray(0, bytesRead))
    }
  } finally {
    await file.close()
  }
}

type End = Extract<FromExport, { end: unknown }>['end']

function endOf(error: unknown, { isStopped }: Task): End {
  if (isStopped) return 'calledOff'
  if (error instanceof StoreError) {
    const { code, message, field } = error
    return field === null ? { code, message } : { code, message, field }
  }
  return { code: 'unavailable', message: 'the lake cannot be read just now', detail: String(error) }
}

async function run(work: ExportWork): Promise<void> {
  const task = new Task(work)
  current = task
  let end: End = 'whole'
  try {
    mkdirSync(work.folder, { recursive: true })
    if (work.format === 'arrow') await sendArrow(task)
    else await sendParquet(task)
  } catch (error) {
    end = endOf(error, task)
  }
  task.end()
  current = null
  post({ end })
}

let current: Task | null = null
// Threads that begin after this inherit it.
setPriority(EXPORT_NICENESS)
// The server is gone: nobody wants the rest. DuckDB is at work in a thread, so nothing gentler is sure to end this.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.on('message', (message: ToExport) => {
  if (message === 'more') current?.more()
  else if (message === 'stop') current?.stop()
  else void run(message)
})
