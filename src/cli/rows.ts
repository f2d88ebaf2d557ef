// Writes rows as a table for people, or as CSV, JSON or NDJSON for programs. Holds one batch at a time, except for tables.

import type { Writable } from 'node:stream'
import Table from 'cli-table3'
import { csvLine } from '../lib/text/csv.ts'
import { jsonLine } from '../lib/text/json-text.ts'
import type { QueryResult } from '../store/query/lake-reader.ts'
import type { Plain } from '../store/query/plain-value.ts'
import type { Option } from './command.ts'
import { counted, FORMAT } from './common.ts'
import { TABLE_CELL_CHARACTERS_MAX, TABLE_ROWS_MAX } from './limits.ts'
import { write } from './terminal.ts'

export const ROW_FORMATS = ['table', 'csv', 'json', 'jsonl'] as const
export type RowFormat = (typeof ROW_FORMATS)[number]
export const ROW_FORMAT: Option = { ...FORMAT, allowed: ROW_FORMATS }

/** Text of one value. NULL becomes `nothing`. */
const textOf = (value: Plain, nothing: string): string =>
  value === null ? nothing : typeof value === 'object' ? JSON.stringify(value) : String(value)

function jsonObject(names: readonly string[], row: readonly Plain[]): string {
  return `{${names.map((name, index) => `${jsonLine(name)}:${jsonLine(row[index])}`).join(',')}}`
}

/** Escapes control characters, which a terminal would take for commands. */
const shownCell = (value: Plain): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
  textOf(value, 'NULL').replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, ' ')

function cut(text: string): string {
  const points = [...text]
  return points.length <= TABLE_CELL_CHARACTERS_MAX
    ? text
    : `${points.slice(0, TABLE_CELL_CHARACTERS_MAX - 1).join('')}…`
}

/** Formats rows as a table. */
export function tableText(
  columns: readonly { name: string; isNumber: boolean }[],
  rows: readonly (readonly Plain[])[],
): string {
  const table = new Table({
    head: columns.map(({ name }) => name),
    colAligns: columns.map(({ isNumber }) => (isNumber ? 'right' : 'left')),
    style: { head: [], border: [], compact: true },
  })
  for (const row of rows) table.push(row.map((value) => cut(shownCell(value))))
  return `${table.toString()}\n`
}

const NUMBER = /^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|U\w+INT|FLOAT|DOUBLE|DECIMAL.*)$/

async function writeTable({ columns, batches }: QueryResult, out: Writable): Promise<void> {
  const rows: Plain[][] = []
  for await (const batch of batches) {
    rows.push(...batch)
    if (rows.length > TABLE_ROWS_MAX) break
  }
  const shown = rows.slice(0, TABLE_ROWS_MAX)
  // DuckDB formats query plans itself.
  if (columns[0]?.name === 'explain_key')
    return void (await write(out, `${rows.map(([, plan = null]) => textOf(plan, '')).join('\n')}\n`))
  const described = columns.map(({ name, type }) => ({ name, isNumber: NUMBER.test(type) }))
  await write(out, tableText(described, shown))
  const more = rows.length > TABLE_ROWS_MAX
  const count = counted(shown.length, 'row')
  await write(out, more ? `the first ${count}; --format csv, json or jsonl gives all\n` : `${count}\n`)
}

async function writeJson({ columns, batches }: QueryResult, out: Writable): Promise<void> {
  const names = columns.map(({ name }) => name)
  let before = '[\n'
  for await (const batch of batches) {
    if (batch.length === 0) continue
    await write(out, before + batch.map((row) => jsonObject(names, row)).join(',\n'))
    before = ',\n'
  }
  await write(out, before === '[\n' ? '[]\n' : '\n]\n')
}

/** Writes the result of a query. Nothing is written before its first rows have come. */
export async function writeRows(answer: QueryResult, format: RowFormat, out: Writable): Promise<void> {
  if (format === 'table') return writeTable(answer, out)
  if (format === 'json') return writeJson(answer, out)
  const names = answer.columns.map(({ name }) => name)
  let head = format === 'csv' ? csvLine(names) : ''
  for await (const batch of answer.batches) {
    const lines = batch.map((row) => (format === 'csv' ? csvLine(row) : `${jsonObject(names, row)}\n`))
    await write(out, head + lines.join(''))
    head = ''
  }
  if (head !== '') await write(out, head)
}

/** Writes rows that are in memory, by column name. Null is blank in a table. */
export async function writeObjects<Name extends string>(
  columns: readonly Name[],
  rows: readonly Readonly<Record<Name, string | number | null>>[],
  format: RowFormat,
  out: Writable,
): Promise<void> {
  const isNumber = (name: Name): boolean => rows.some((row) => typeof row[name] === 'number')
  const described = columns.map((name) => ({ name, type: isNumber(name) ? 'DOUBLE' : 'VARCHAR' }))
  const nothing = format === 'table' ? '' : null
  const values = rows.map((row) => columns.map((name) => row[name] ?? nothing))
  const batches = (async function* () {
    yield values
  })()
  await writeRows({ columns: described, batches }, format, out)
}
