// In: rows of commits. Out: for each table and UTC date a file of JSON lines for DuckDB to read. Holds a bounded amount of
// text in memory. Never checks a row: the log has checked ones.
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
  /** Numbers of its rows, where they are not those of commits. */
  range?: SeqRange
}

interface Pile extends StagedRows {
  lines: string[]
  characters: number
}

export class RowSplitter {
  readonly #folder: string
  readonly #piles = new Map<string, Pile>()

  /** `folder` is the splitter's own: what lies there is removed. */
  constructor(folder: string) {
    this.#folder = folder
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
  }

  add(table: LakeTable, row: Row, knownAtMs: number): void {
    const date = utcDate(row[table.lakeDateColumn] as number)
    const key = `${table.name}.${date}`
    let pile = this.#piles.get(key)
    if (pile === undefined) {
      const path = join(this.#folder, `${key}.ndjson`)
      pile = { table, date, path, rows: 0, lines: [], characters: 0 }
      this.#piles.set(key, pile)
    }
    const line = JSON.stringify({ ...row, known_at: knownAtMs })
    pile.lines.push(line)
    pile.rows++
    pile.characters += line.length
    if (pile.characters >= SPLIT_TEXT_CHARACTERS) writeOut(pile)
  }

  /** Everything that was added, in files; in order of table and date. */
  finish(): StagedRows[] {
    for (const pile of this.#piles.values()) writeOut(pile)
    return [...this.#piles.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { table, date, path, rows }]) => ({ table, date, path, rows }))
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function writeOut(pile: Pile): void {
  if (pile.lines.length === 0) return
  appendFileSync(pile.path, `${pile.lines.join('\n')}\n`)
  pile.lines = []
  pile.characters = 0
}
