// In: the JSON of a commit, as the log has it. Out: its rows, with those columns alone that a start needs: it reads up to a
// million commits, and to parse the sixty other columns of each would take most of its time. Never guesses: a commit whose text
// is not of the plain kind is parsed whole.
import { type Cell, type Row, TABLES, type TableName } from '../../schema/tables.ts'
import { rowsOf } from '../log/segments/format.ts'
import { STATE_COLUMNS } from './state.ts'

type TableRow = [TableName, Row]

/** A column of a table of which not all are needed. */
interface NeededColumn {
  name: string
  /** How it begins in a row. No text holds this: there a quote has a backslash before it or ends the text, and only a name is
   *  followed by a colon. */
  mark: string
  /** Its texts come again and again. */
  isShared: boolean
}

const NEEDED: ReadonlyMap<string, readonly NeededColumn[]> = new Map(
  Object.entries(STATE_COLUMNS).map(([table, columns]) => [
    table,
    columns.map((name) => ({ name, mark: `"${name}":`, isShared: name !== 'analysis_id' })),
  ]),
)
const ROWS = '"rows":['
const BEFORE_TABLE = '["'
const BEHIND_TABLE = '",'
/** From a row to the next. A text may end so too; then no name of a table follows. */
const NEXT_ROW = '}],["'
/** From a row to the next one's bracket. */
const BETWEEN_ROWS = '}],'
/** Behind the last row. */
const END = ']]}'
const QUOTE = 34
/** Text that stands in JSON as it is, a byte for each character. */
const PLAIN = /^[ !#-[\]-~]*$/

/** Reads one commit after the other. Texts that come again, as those of agents and tokens do, are one in memory. */
export class StateRowParser {
  readonly #texts = new Map<string, string>()

  parse(payload: Buffer): TableRow[] {
    return this.#plainRows(payload) ?? rowsOf(payload)
  }

  /** Null: the commit must be parsed whole. */
  #plainRows(payload: Buffer): TableRow[] | null {
    // One character for each byte: what is looked for is ASCII, and places are those of the payload.
    const text = payload.toString('latin1')
    const rows: TableRow[] = []
    let at = text.indexOf(ROWS) + ROWS.length
    while (at < text.length) {
      const tableEnd = text.indexOf('"', at + BEFORE_TABLE.length)
      const table = text.slice(at + BEFORE_TABLE.length, tableEnd)
      if (!Object.hasOwn(TABLES, table)) return null
      const from = tableEnd + BEHIND_TABLE.length
      const next = text.indexOf(NEXT_ROW, from)
      const to = next === -1 ? text.length - END.length : next + 1
      const row = this.#row(table, text.slice(from, to), payload, from)
      if (row === null) return null
      rows.push([table as TableName, row])
      at = next === -1 ? text.length : next + BETWEEN_ROWS.length
    }
    return rows
  }

  /** A row by its text, which begins at `from` in the payload. */
  #row(table: string, text: string, payload: Buffer, from: number): Row | null {
    const needed = NEEDED.get(table)
    if (needed === undefined) return parsed(payload.toString('utf8', from, from + text.length))
    const row: Row = {}
    for (const { name, mark, isShared } of needed) {
      const found = text.indexOf(mark)
      if (found === -1) continue
      const cell = this.#cell(text, found + mark.length, isShared, payload, from)
      if (cell === undefined) return null
      row[name] = cell
    }
    return row
  }

  /** What stands there; undefined: neither plain text nor a number nor null. */
  #cell(text: string, at: number, isShared: boolean, payload: Buffer, from: number): Cell | undefined {
    if (text.charCodeAt(at) === QUOTE) {
      const end = text.indexOf('"', at + 1)
      // A part of a text holds the whole of it in memory: so it is compared, and what is kept is a copy.
      const part = text.slice(at + 1, end)
      const known = this.#texts.get(part)
      if (known !== undefined) return known
      if (!PLAIN.test(part)) return undefined
      const copy = payload.toString('latin1', from + at + 1, from + end)
      if (isShared) this.#texts.set(copy, copy)
      return copy
    }
    const comma = text.indexOf(',', at)
    const value = text.slice(at, comma === -1 ? text.length - 1 : comma)
    if (value === 'null') return null
    const number = Number(value)
    return Number.isFinite(number) ? number : undefined
  }
}

/** Null where it is no JSON: what ended it was a part of a text. */
function parsed(text: string): Row | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
