// Reads the rows of a commit from its JSON in the log, with only the columns that the state needs. A start reads up to a million
// commits, and a flush hands their text on as it is; parsing the sixty other columns would take most of their time. A commit with
// unusual text is parsed as a whole.
import { parseJson } from '../../lib/text/json-text.ts'
import { type Cell, type Row, TABLES, type TableName } from '../../schema/tables.ts'
import { parseRows } from '../log/segments/format.ts'
import { STATE_COLUMNS } from './state.ts'

type TableRow = [TableName, Row]

const isTableName = (text: string): text is TableName => Object.hasOwn(TABLES, text)

/** A column to read from a table of which not all columns are needed. */
interface NeededColumn {
  name: string
  /** How the column begins in a row. No value contains this: inside a text, quotes are escaped, and a quote that ends a text
   *  is not followed by a colon. */
  mark: string
  /** Its texts repeat, so equal ones are kept once. */
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
const AFTER_TABLE = '",'
/** Between two rows. A text may contain this too, but then no name of a table follows. */
const NEXT_ROW = '}],["'
/** The part of it before the bracket of the next row. */
const BETWEEN_ROWS = '}],'
/** After the last row. */
const END = ']]}'
const QUOTE = 34
/** Text that JSON writes without escapes, with one byte for each character. */
const PLAIN = /^[ !#-[\]-~]*$/

/** Use one parser for many commits: equal texts, such as agents and tokens, share one string in memory. */
export class StateRowParser {
  readonly #texts = new Map<string, string>()

  /** @param texts takes the JSON of each row: views of the payload, where that is possible */
  parse(payload: Buffer, texts: Buffer[] | null = null): TableRow[] {
    const rows = this.#plainRows(payload, texts)
    if (rows !== null) return rows
    const parsed = parseRows(payload)
    texts?.splice(0, texts.length, ...parsed.map(([, row]) => Buffer.from(JSON.stringify(row))))
    return parsed
  }

  /** Null: the commit must be parsed as a whole. */
  #plainRows(payload: Buffer, texts: Buffer[] | null): TableRow[] | null {
    // latin1 gives one character for each byte, so that offsets are those of the payload. All that is searched for is ASCII.
    const text = payload.toString('latin1')
    const rows: TableRow[] = []
    let at = text.indexOf(ROWS) + ROWS.length
    while (at < text.length) {
      const tableEnd = text.indexOf('"', at + BEFORE_TABLE.length)
      const table = text.slice(at + BEFORE_TABLE.length, tableEnd)
      if (!isTableName(table)) return null
      const from = tableEnd + AFTER_TABLE.length
      const next = text.indexOf(NEXT_ROW, from)
      const to = next === -1 ? text.length - END.length : next + 1
      const row = this.#row(table, text.slice(from, to), payload, from)
      if (row === null) return null
      rows.push([table, row])
      texts?.push(payload.subarray(from, to))
      at = next === -1 ? text.length : next + BETWEEN_ROWS.length
    }
    return rows
  }

  /** Reads a row from its text, which begins at `from` in the payload. */
  #row(table: string, text: string, payload: Buffer, from: number): Row | null {
    const needed = NEEDED.get(table)
    // Not JSON where its end was found inside a text.
    if (needed === undefined)
      return (parseJson(payload.toString('utf8', from, from + text.length)) as Row | undefined) ?? null
    const row: Row = {}
    let at = 0
    for (const { name, mark, isShared } of needed) {
      let found = text.indexOf(mark, at)
      // Rows of another order are searched from their beginning.
      if (found === -1 && at > 0) found = text.indexOf(mark)
      if (found === -1) continue
      at = found + mark.length
      const cell = this.#cell(text, at, isShared, payload, from)
      if (cell === undefined) return null
      row[name] = cell
    }
    return row
  }

  /** Reads the cell at `at`. Undefined where it is neither plain text nor a number nor null. */
  #cell(text: string, at: number, isShared: boolean, payload: Buffer, from: number): Cell | undefined {
    if (text.charCodeAt(at) === QUOTE) {
      const end = text.indexOf('"', at + 1)
      // V8 keeps the whole text in memory while a slice of it is used. So the slice only looks up the text, and a copy is kept.
      const part = text.slice(at + 1, end)
      const known = isShared ? this.#texts.get(part) : undefined
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
