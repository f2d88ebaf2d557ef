// Splits rows by table and UTC date into files of JSON lines, which DuckDB reads. Holds a bounded amount of text per file in memory.
import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Row } from '../../schema/tables.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { type SeqRange, utcDate } from '../lake/lake-files.ts'
import { SPLIT_TEXT_CHARACTERS } from '../limits.ts'

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
  /** Lines that are not written yet. */
  lines: string[]
  /** Length of these lines. */
  characters: number
}

export class RowSplitter {
  readonly #folder: string
  readonly #files = new Map<string, OpenFile>()

  /** @param folder for the splitter alone: it is emptied now, and deleted by `remove` */
  constructor(folder: string) {
    this.#folder = folder
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
  }

  add(table: LakeTable, row: Row, knownAtMs: number): void {
    const date = utcDate(Number(row[table.lakeDateColumn]))
    const key = `${table.name}.${date}`
    let file = this.#files.get(key)
    if (file === undefined) {
      const path = join(this.#folder, `${key}.ndjson`)
      file = { table, date, path, rows: 0, lines: [], characters: 0 }
      this.#files.set(key, file)
    }
    const line = JSON.stringify({ ...row, known_at: knownAtMs })
    file.lines.push(line)
    file.rows++
    file.characters += line.length
    if (file.characters >= SPLIT_TEXT_CHARACTERS) writeLines(file)
  }

  /** Writes what is still in memory. @returns the files, in order of table and date */
  finish(): StagedRows[] {
    for (const file of this.#files.values()) writeLines(file)
    return [...this.#files.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { table, date, path, rows }]) => ({ table, date, path, rows }))
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function writeLines(file: OpenFile): void {
  if (file.lines.length === 0) return
  appendFileSync(file.path, `${file.lines.join('\n')}\n`)
  file.lines = []
  file.characters = 0
}
