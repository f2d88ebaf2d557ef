// Splits rows by table and UTC date into files of JSON lines, which DuckDB reads. Holds a bounded number of bytes per file in memory.
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolderNow } from '../../lib/files.ts'
import { DAY_MS } from '../../lib/time.ts'
import type { Row } from '../../schema/tables.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { type SeqRange, utcDate } from '../lake/lake-files.ts'
import { SPLIT_BYTES } from '../limits.ts'
import { NEWLINE } from '../log/segments/format.ts'

/** Rows of one table and date, as lines of JSON. */
export interface StagedRows {
  table: LakeTable
  /** YYYY-MM-DD, UTC. */
  date: string
  path: string
  rows: number
  /** Sequence numbers of its rows, where these are not LSNs. */
  range?: SeqRange
}

interface OpenFile extends StagedRows {
  /** Lines that are not written yet, and their length in bytes. */
  lines: Buffer
  bytes: number
}

/** The column that says when the row became durable, as it begins in JSON. */
const KNOWN_AT = Buffer.from('"known_at":')
/** Bytes of `,"known_at":…}` and a newline. */
const STAMP_BYTES_MAX = 32

export class RowSplitter {
  readonly #folder: string
  readonly #files = new Map<string, OpenFile>()

  /** @param folder for the splitter alone: it is emptied now, and deleted by `remove` */
  constructor(folder: string) {
    this.#folder = folder
    rmSync(folder, { recursive: true, force: true })
    makeFolderNow(folder)
  }

  add(table: LakeTable, row: Row, knownAtMs: number): void {
    const json = Buffer.from(JSON.stringify({ ...row, known_at: knownAtMs }))
    this.#write(table, Number(row[table.lakeDateColumn]), json, null)
  }

  /** Adds a row that is JSON already. @param dateMs the time that decides the row's date, Unix ms */
  addText(table: LakeTable, dateMs: number, json: Buffer, knownAtMs: number): void {
    // Logs of earlier versions may have rows with a time of their own, which does not count.
    if (json.includes(KNOWN_AT)) this.add(table, JSON.parse(json.toString()), knownAtMs)
    else this.#write(table, dateMs, json, knownAtMs)
  }

  /** @param knownAtMs added to the row; null: the row has it */
  #write(table: LakeTable, dateMs: number, json: Buffer, knownAtMs: number | null): void {
    const file = this.#fileOf(table, dateMs)
    if (file.bytes + json.length + STAMP_BYTES_MAX > file.lines.length) makeRoom(file, json.length)
    let end = file.bytes + json.copy(file.lines, file.bytes)
    if (knownAtMs !== null) end += file.lines.write(`,"known_at":${knownAtMs}}`, end - 1, 'latin1') - 1
    end = file.lines.writeUInt8(NEWLINE, end)
    file.bytes = end
    file.rows++
  }

  #fileOf(table: LakeTable, dateMs: number): OpenFile {
    const day = Math.floor(dateMs / DAY_MS)
    const key = `${table.name} ${day}`
    let file = this.#files.get(key)
    if (file === undefined) {
      const date = utcDate(dateMs)
      const path = join(this.#folder, `${table.name}.${date}.ndjson`)
      file = { table, date, path, rows: 0, lines: Buffer.allocUnsafe(SPLIT_BYTES), bytes: 0 }
      this.#files.set(key, file)
    }
    return file
  }

  /** Writes what is still in memory. @returns the files, in order of table and date */
  finish(): StagedRows[] {
    for (const file of this.#files.values()) writeLines(file)
    return Array.from(this.#files.values(), ({ table, date, path, rows }) => ({
      table,
      date,
      path,
      rows,
    })).sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function writeLines(file: OpenFile): void {
  if (file.bytes === 0) return
  appendFileSync(file.path, file.lines.subarray(0, file.bytes))
  file.bytes = 0
}

/** Writes the lines so far, and sees that a row of this length fits. */
function makeRoom(file: OpenFile, rowBytes: number): void {
  writeLines(file)
  if (rowBytes + STAMP_BYTES_MAX > file.lines.length)
    file.lines = Buffer.allocUnsafe(rowBytes + STAMP_BYTES_MAX)
}
