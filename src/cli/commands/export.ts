// `export`: writes a table of the lake to one file, which appears only when it is complete, or streams it to standard output.
import { createWriteStream } from 'node:fs'
import { link, rename, rm, stat } from 'node:fs/promises'
import { dirname, extname, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { assert } from '../../lib/assert.ts'
import { errorFirstLine, systemCode } from '../../lib/error-text.ts'
import { syncPath } from '../../lib/files.ts'
import { readProgress as copied, streamArrow, streamText, writeParquet } from '../../store/export/formats.ts'
import { countRows, RELATION_NAMES, type Selection } from '../../store/export/selection.ts'
import {
  isInterrupted,
  isMissingFileError,
  type LakeReader,
  toUnreadable,
  withLakeReader,
} from '../../store/query/lake-reader.ts'
import { type Command, Failure, requiredValue, UsageError, type Values, wordValue } from '../command.ts'
import { counted, DATA_DIR, dataDirOf, filesReplaced, span, warnOfLost } from '../common.ts'
import { PROGRESS_MS } from '../limits.ts'
import { type Progress, progressOf } from '../progress.ts'
import { Stop } from '../stop.ts'
import { type Terminal, write } from '../terminal.ts'

const FORMATS = ['parquet', 'csv', 'jsonl', 'arrow'] as const
type Format = (typeof FORMATS)[number]

const STDOUT = '-'

/** A running export. */
interface Task {
  selection: Selection
  format: Format
  out: string
  stop: Stop
  terminal: Terminal
  /** Whether any output was written. */
  isBegun: boolean
}

/** What it writes: rows that were counted. */
interface Source {
  reader: LakeReader
  task: Task
  selection: Selection & { rows: number }
  progress: Progress
}

/** Writes the rows to a stream in chunks, as fast as it takes them. */
async function stream({ reader, task, selection, progress }: Source, out: Writable): Promise<void> {
  const { format, stop } = task
  assert(format !== 'parquet', 'Parquet is no stream')
  const pieces = format === 'arrow' ? streamArrow(reader, selection) : streamText(reader, selection, format)
  let done = 0
  for await (const { bytes, rows } of pieces) {
    stop.check()
    task.isBegun = true
    await write(out, bytes)
    done += rows
    progress.set(done)
  }
}

/** DuckDB writes the Parquet file and reports its progress. */
async function copy({ reader, task, selection, progress }: Source, path: string): Promise<void> {
  const timer = setInterval(() => progress.set((copied(reader) ?? 0) * selection.rows), PROGRESS_MS)
  try {
    await writeParquet(reader, selection, path)
  } catch (error) {
    // DuckDB reads the lake and writes the file in one statement: its error names the file that it is about.
    const message = errorFirstLine(error)
    if (!message.includes(path)) throw error
    throw new Failure(`${task.out} cannot be written: ${message}`)
  } finally {
    clearInterval(timer)
  }
}

async function fill(source: Source, path: string): Promise<void> {
  if (source.task.format === 'parquet') return copy(source, path)
  const file = createWriteStream(path)
  // A failed write rejects for its caller. After the file was abandoned, errors of pending writes do not matter.
  file.on('error', () => {})
  try {
    await stream(source, file)
    file.end()
    await finished(file)
  } catch (error) {
    file.destroy()
    throw file.errored ?? error
  }
}

/** Reads the rows and writes them, with progress. @returns the number of rows */
async function withProgress(
  reader: LakeReader,
  task: Task,
  work: (source: Source) => Promise<void>,
): Promise<number> {
  const { selection, stop, terminal } = task
  stop.check()
  await warnOfLost(reader, terminal)
  stop.act = () => reader.interrupt()
  const rows = await countRows(reader.connection, selection)
  stop.check()
  const progress = progressOf(rows, terminal)
  try {
    await work({ reader, task, selection: { ...selection, rows }, progress })
  } finally {
    progress.end()
  }
  stop.check()
  return rows
}

const isThere = (path: string): UsageError =>
  new UsageError(`--out: ${path} is there already; --overwrite replaces it`)

/** Gives the file its name unless that exists. A hard link does both atomically. */
async function publishAnew(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw isThere(path)
    // This file system has no hard links.
    if ((await stat(path).catch(() => null)) !== null) throw isThere(path)
    await rename(temporary, path)
  }
}

/** Writes to a temporary file and renames it once it is complete and synced. A failure leaves nothing behind. */
async function toFile(dataDir: string, task: Task, overwrites: boolean): Promise<number> {
  const path = resolve(task.out)
  const temporary = `${path}.${process.pid}.tmp`
  try {
    const rows = await withLakeReader({ dataDir, target: temporary }, (reader) =>
      withProgress(reader, task, (source) => fill(source, temporary)),
    )
    await syncPath(temporary)
    task.stop.check()
    await (overwrites ? rename(temporary, path) : publishAnew(temporary, path))
    await syncPath(dirname(path))
    return rows
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Streams to standard output. It cannot start again once something is written, so a replaced catalog is then an error. */
async function toStdout(dataDir: string, task: Task): Promise<number> {
  const { stdout } = task.terminal
  return withLakeReader({ dataDir }, async (reader) => {
    try {
      return await withProgress(reader, task, (source) => stream(source, stdout))
    } catch (error) {
      throw task.isBegun && isMissingFileError(error) ? filesReplaced() : error
    }
  })
}

async function checkOut(out: string, format: Format, overwrites: boolean): Promise<void> {
  if (out === STDOUT) {
    if (format === 'parquet')
      throw new UsageError('--out -: Parquet needs a file; csv, jsonl and arrow can stream')
    return
  }
  const folder = await stat(dirname(resolve(out))).catch(() => null)
  if (folder?.isDirectory() !== true)
    throw new UsageError(`--out: there is no folder ${dirname(resolve(out))}`)
  const there = await stat(out).catch(() => null)
  if (there?.isDirectory()) throw new UsageError(`--out: ${out} is a folder`)
  // A rename would put a file in the place of a device.
  if (there !== null && !there.isFile())
    throw new UsageError(`--out: ${out} is no regular file; --out - is the standard output`)
  if (there !== null && !overwrites) throw isThere(out)
}

/** The format of the flag, else that of the file's name: a file of another format than its name says misleads whoever reads it. */
function formatOf(values: Values, out: string): Format {
  const asked = requiredValue(values, 'format') === '' ? null : wordValue(values, 'format', FORMATS)
  const ending = extname(out)
  const named = FORMATS.find((format) => `.${format}` === ending.toLowerCase())
  if (asked !== null && named !== undefined && asked !== named)
    throw new UsageError(`--out: ${out} is named as ${named}, and --format says ${asked}`)
  if (asked === null && named === undefined && ending !== '')
    throw new UsageError(
      `--out: ${ending} is the ending of no format (${FORMATS.join(', ')}): say which with --format`,
    )
  return asked ?? named ?? 'parquet'
}

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const format = formatOf(values, values.out ?? '')
  const table = wordValue(values, 'table', RELATION_NAMES)
  const out = values.out || `${table}.${format}`
  const selection: Selection = { table, ...span(values) }
  const overwrites = values.overwrite === 'true'
  await checkOut(out, format, overwrites)
  const dataDir = dataDirOf(values, terminal)
  const stop = new Stop(terminal)
  const task = { selection, format, out, stop, terminal, isBegun: false }
  await stop.during(async () => {
    const written = out === STDOUT ? toStdout(dataDir, task) : toFile(dataDir, task, overwrites)
    const rows = await written.catch((error) => Promise.reject(toUnreadable(error)))
    const where = out === STDOUT ? '' : `, ${(await stat(out)).size} bytes in ${out}`
    terminal.stderr.write(`mintlake: ${counted(rows, 'row')} of ${selection.table}${where}\n`)
  }, isInterrupted)
}

export const exportCommand: Command = {
  name: 'export',
  summary: 'Write a table of the lake to one file; the server may be running',
  options: {
    table: {
      value: 'TABLE',
      otherwise: 'training',
      allowed: RELATION_NAMES,
      description: 'Table to export; labelled is training with its outcomes',
    },
    from: { value: 'TIME', description: 'Rows from this time on: 2026-01-31 or 2026-01-31T12:00:00Z' },
    to: { value: 'TIME', description: 'Rows before this time' },
    format: {
      value: 'FORMAT',
      allowed: FORMATS,
      description: 'Format of the file, where its name does not end in it [parquet]',
    },
    out: { value: 'FILE', description: 'The file; - is the standard output [TABLE.FORMAT]' },
    overwrite: { description: 'Replace a file that is there already' },
    'data-dir': DATA_DIR,
  },
  notes: [
    'mintlake export --table labelled --from 2026-01-01 --out labelled.parquet',
    'mintlake export --format jsonl --out - | jq .score',
    'Times are those of the column that the table is filed by; the file appears once it is whole.',
  ],
  run,
}
