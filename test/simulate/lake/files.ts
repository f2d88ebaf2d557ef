// The files of the modelled lake: what its list says of each, and the rows in it. A change of the list is one step, as a transaction is.
import { DAY_MS } from '../../../src/lib/time.ts'
import type { Row, TableName } from '../../../src/schema/tables.ts'
import { isEventTable } from '../../../src/store/events/event-retention.ts'
import { type SeqRange, utcDate } from '../../../src/store/lake/lake-files.ts'
import type { ListedFile } from '../../../src/store/lake/manifest.ts'

/** A row of a file. */
export interface FileRow {
  /** Its number within its table. */
  seq: number
  /** The time whose UTC date it belongs to, Unix ms. */
  dateMs: number
  /** Which of the listings brought it. */
  flush: number
  /** Its columns; those of recorded events are looked up by their number. */
  row: Row | null
}

/** A row that is to be listed. */
export type NewRow = Omit<FileRow, 'flush'>

export interface ModelFile extends ListedFile {
  content: readonly FileRow[]
}

/** A file that left the lake for its age or its bytes. */
export interface RemovedFile {
  file: ModelFile
  /** What the clock said when it left, and what it should have said. */
  wallMs: number
  trueMs: number
  /** An operator has given word. */
  isConfirmed: boolean
}

/** Bytes of a row: so many that few are beyond a limit. */
const ROW_BYTES = 100

export class LakeFiles {
  readonly removed: RemovedFile[] = []
  /** Those that readers may have open still. */
  replaced: { file: ModelFile; atMs: number }[] = []
  /** Of each table, what each listing brought: the latest time up to it. */
  readonly begun = new Map<TableName, { flush: number; latestMs: number }[]>()
  #live: ModelFile[] = []
  #flush = 0
  readonly #lastSeqs = new Map<TableName, number>()

  /** The live files of a table, oldest rows first. */
  live(table: TableName): ModelFile[] {
    return this.#live
      .filter((file) => file.table === table)
      .sort((a, b) => (a.date === b.date ? a.first - b.first || a.last - b.last : a.date < b.date ? -1 : 1))
  }

  rows(table: TableName): FileRow[] {
    return this.#live.flatMap((file) => (file.table === table ? file.content : []))
  }

  /** Whether rows of a date between two times have left. */
  haveLeft(table: TableName, fromMs: number, toMs: number): boolean {
    const [from, to] = [utcDate(fromMs), utcDate(toMs)]
    return this.removed.some(({ file }) => file.table === table && from <= file.date && file.date <= to)
  }

  /** The first number that no row of a table has had. */
  nextSeq(table: TableName): number {
    return (this.#lastSeqs.get(table) ?? 0) + 1
  }

  /** The event from which on every recorded event has stayed. */
  get retainedFrom(): number {
    const left = this.removed.filter(({ file: { table } }) => isEventTable(table))
    return 1 + Math.max(0, ...left.map(({ file: { last } }) => last))
  }

  /** Lists rows in a file of each of their dates. @param range numbers that the files are named after; by default those of their rows */
  add(table: TableName, listed: readonly NewRow[], nowMs: number, range?: SeqRange): void {
    if (listed.length === 0) return
    const flush = ++this.#flush
    const rows = listed.map((row) => ({ ...row, flush }))
    const begun = this.begun.get(table) ?? []
    const latestMs = Math.max(begun.at(-1)?.latestMs ?? 0, ...rows.map(({ dateMs }) => dateMs))
    this.begun.set(table, [...begun, { flush, latestMs }])
    for (const content of Map.groupBy(rows, ({ dateMs }) => Math.floor(dateMs / DAY_MS)).values())
      this.#list(makeFile(table, content, nowMs, range))
  }

  /** Lists one file in the place of others. Its rows are theirs, and as old. */
  merge(files: readonly ModelFile[], nowMs: number): void {
    const [{ table }] = files
    const range = {
      first: Math.min(...files.map(({ first }) => first)),
      last: Math.max(...files.map(({ last }) => last)),
    }
    const merged = makeFile(
      table as TableName,
      files.flatMap(({ content }) => content),
      Math.max(...files.map(({ writtenAtMs }) => writtenAtMs)),
      range,
    )
    this.#takeOff(files, nowMs)
    this.#list({ ...merged, date: files[0].date })
  }

  /** Takes files off the live ones, since they are over their time. */
  expire(files: readonly ModelFile[], of: Omit<RemovedFile, 'file'>): void {
    this.#takeOff(files, of.wallMs)
    this.removed.push(...files.map((file) => ({ ...of, file })))
  }

  /** @returns how many files were deleted */
  deleteReplaced(beforeMs: number): number {
    const left = this.replaced.filter(({ atMs }) => atMs > beforeMs)
    const deleted = this.replaced.length - left.length
    this.replaced = left
    return deleted
  }

  #list(file: ModelFile): void {
    this.#live.push(file)
    const table = file.table as TableName
    this.#lastSeqs.set(table, Math.max(file.last, this.#lastSeqs.get(table) ?? 0))
  }

  #takeOff(files: readonly ModelFile[], atMs: number): void {
    this.#live = this.#live.filter((file) => !files.includes(file))
    this.replaced.push(...files.map((file) => ({ file, atMs })))
  }
}

function makeFile(
  table: TableName,
  content: readonly FileRow[],
  nowMs: number,
  range: SeqRange = { first: content[0].seq, last: content[content.length - 1].seq },
): ModelFile {
  return {
    ...{ table, date: utcDate(content[0].dateMs), ...range, content },
    ...{ rows: content.length, bytes: content.length * ROW_BYTES, writtenAtMs: nowMs },
    ...{ sha256: null, schemaVersion: 1 },
  }
}
