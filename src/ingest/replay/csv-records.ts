// Divides lines of CSV into fields, and finds out how a file does it: its delimiter, its quotes and its header.
import { TRADE_QUOTED_CHARS_MAX } from '../limits.ts'
import { readNumber, readTime } from './trade-values.ts'

export interface CsvDialect {
  delimiter: string
  quote: string
}

/** The fields of a record; or the text of a line that cannot be divided. */
export type CsvRecord = string[] | string

/** Says of a line that one of its quotes is not closed. */
const OPEN = Symbol('open')
const isBlank = (char: string): boolean => char !== '\n' && char.trim() === ''

/** A line feed is none of them: no value of a trade has one. */
const BLANK_ENDS = /^[ \t\r]+|[ \t\r]+$/g

/** The end of the quoted field whose text begins at `start`: the place of its closing quote; -1 where there is none. */
function closingQuote(line: string, start: number, quote: string): number {
  for (let at = line.indexOf(quote, start); at >= 0; at = line.indexOf(quote, at + 2))
    if (line[at + 1] !== quote) return at
  return -1
}

function splitQuoted(line: string, { delimiter, quote }: CsvDialect): string[] | typeof OPEN | null {
  const fields: string[] = []
  for (let from = 0; ; ) {
    let at = from
    while (at < line.length && line[at] !== delimiter && isBlank(line[at])) at++
    if (line[at] !== quote) {
      const end = line.indexOf(delimiter, at)
      fields.push(line.slice(from, end < 0 ? undefined : end).trim())
      if (end < 0) return fields
      from = end + 1
      continue
    }
    const close = closingQuote(line, at + 1, quote)
    if (close < 0) return OPEN
    const text = line.slice(at + 1, close).replaceAll(quote + quote, quote)
    fields.push(text.replace(BLANK_ENDS, ''))
    at = close + 1
    while (at < line.length && line[at] !== delimiter && isBlank(line[at])) at++
    if (at >= line.length) return fields
    if (line[at] !== delimiter) return null
    from = at + 1
  }
}

/** The fields of a line without the blanks around them; null where a closing quote is followed by text. */
function split(line: string, dialect: CsvDialect): string[] | typeof OPEN | null {
  if (line.includes(dialect.quote)) return splitQuoted(line, dialect)
  const fields = line.split(dialect.delimiter)
  for (let at = 0; at < fields.length; at++) fields[at] = fields[at].trim()
  return fields
}

/** The fields of one line; none where its quotes are not closed. */
export function splitLine(line: string, dialect: CsvDialect): string[] {
  const fields = split(line, dialect)
  return fields === null || fields === OPEN ? [] : fields
}

/** The record that begins at a line, and how many lines it has; null where more lines are needed to tell. */
function readRecord(
  lines: readonly string[],
  from: number,
  dialect: CsvDialect,
  isEnd: boolean,
): { record: CsvRecord; lines: number } | null {
  let text = lines[from]
  let fields = split(text, dialect)
  let next = from + 1
  while (fields === OPEN && text.length < TRADE_QUOTED_CHARS_MAX && next < lines.length) {
    text += `\n${lines[next++]}`
    fields = split(text, dialect)
  }
  if (fields === OPEN && text.length < TRADE_QUOTED_CHARS_MAX && !isEnd) return null
  // A quote that is never closed spoils its line, and not those behind it.
  if (fields === OPEN || fields === null) return { record: lines[from], lines: 1 }
  return { record: fields, lines: next - from }
}

/** The records of some lines without blank ones, and the lines of a record that goes on behind them. */
export function readRecords(
  lines: readonly string[],
  dialect: CsvDialect,
  isEnd: boolean,
): { records: CsvRecord[]; rest: string[] } {
  const records: CsvRecord[] = []
  for (let at = 0; at < lines.length; ) {
    if (lines[at].trim() === '') {
      at++
      continue
    }
    const read = readRecord(lines, at, dialect, isEnd)
    if (read === null) return { records, rest: lines.slice(at) }
    records.push(read.record)
    at += read.lines
  }
  return { records, rest: [] }
}

/** Those that stand in texts and numbers least come first. */
const DELIMITERS = ['\t', '|', ';', ',']

/** The number of fields that most records have, and how many have it. */
export function usualWidth(records: readonly CsvRecord[]): { width: number; count: number } {
  const counts = new Map<number, number>()
  for (const record of records) {
    const width = typeof record === 'string' ? 0 : record.length
    counts.set(width, (counts.get(width) ?? 0) + 1)
  }
  let usual = { width: 0, count: 0 }
  for (const [width, count] of counts) if (count > usual.count) usual = { width, count }
  return usual
}

/** Quotes are single ones where fields begin and end with those, and never with double ones. */
const findQuote = (lines: readonly string[]): string =>
  lines.some((line) => /(^|[\t|;,])\s*'[^']*'\s*($|[\t|;,])/.test(line)) &&
  !lines.some((line) => /(^|[\t|;,])\s*"/.test(line))
    ? "'"
    : '"'

/** The delimiter that divides most of the lines into equally many fields, and into the most fields. */
export function findDialect(lines: readonly string[]): CsvDialect {
  const quote = findQuote(lines)
  const declared = /^\s*sep=(.)\s*$/i.exec(lines[0] ?? '')?.[1]
  if (declared !== undefined) return { delimiter: declared, quote }
  let best = { delimiter: ',', width: 1, count: 0 }
  for (const delimiter of DELIMITERS) {
    const { width, count } = usualWidth(readRecords(lines, { delimiter, quote }, true).records)
    if (width > 1 && (count > best.count || (count === best.count && width > best.width)))
      best = { delimiter, width, count }
  }
  return { delimiter: best.delimiter, quote }
}

const FLAG = /^(true|false)$/i
/** Whether a record names columns: none of its fields is a value of a trade. */
export const isHeader = (fields: readonly string[]): boolean =>
  fields.some((field) => field !== '') &&
  fields.every(
    (field) => Number.isNaN(readNumber(field)) && Number.isNaN(readTime(field)) && !FLAG.test(field),
  )
