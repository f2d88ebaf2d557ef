// The rows of a query as a table, and as CSV to save.
import { html, type TemplateResult } from 'lit-html'
import type { QueryResult } from '../../../client/index.ts'
import { type CsvValue, csvLine } from '../../../lib/text/csv.ts'

/** Longer texts are cut in the table, and whole in the CSV. */
const CELL_CHARACTERS_MAX = 200
const IS_NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL)/
/** What a spreadsheet runs as a formula. Texts of tokens come from strangers. */
const IS_FORMULA = /^[=+\-@\t\r]/
const REVOKE_MS = 10_000

/** A value as JSON has it; the answer is JSON, so it is nothing else. */
const toValue = (value: unknown): CsvValue =>
  typeof value === 'string' ||
  typeof value === 'number' ||
  typeof value === 'boolean' ||
  typeof value === 'object'
    ? value
    : null

export const resultTable = ({ data: { columns, rows } }: QueryResult): TemplateResult => {
  const classes = columns.map(({ type }) => (IS_NUMBER.test(type) && !type.endsWith('[]') ? 'num' : ''))
  return html`<div class="card below result" tabindex="0" role="region" aria-label="Result">
    <table class="plain">
      <thead><tr>${columns.map(({ name, type }, at) => html`<th class=${classes[at] ?? ''} title=${type}>${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${row.map((value, at) => cell(toValue(value), classes[at] ?? ''))}</tr>`)}</tbody>
    </table>
    ${rows.length === 0 ? html`<p class="note">The result has no rows.</p>` : ''}
  </div>`
}

function cell(value: CsvValue, className: string): TemplateResult {
  if (value === null) return html`<td class="dim ${className}">NULL</td>`
  const text = typeof value === 'object' ? JSON.stringify(value) : `${value}`
  const isCut = text.length > CELL_CHARACTERS_MAX
  return html`<td class=${className}>${isCut ? `${text.slice(0, CELL_CHARACTERS_MAX)}…` : text}</td>`
}

/** Saves all rows (RFC 4180). A text that a spreadsheet would run gets a quote before it. */
export function saveAsCsv({ data: { columns, rows } }: QueryResult): void {
  const harmless = (value: CsvValue): CsvValue =>
    typeof value === 'string' && IS_FORMULA.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value
  const lines = [columns.map(({ name }) => name), ...rows.map((row) => row.map(toValue))]
  const text = lines.map((line) => csvLine(line.map(harmless))).join('')
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  Object.assign(document.createElement('a'), { href: url, download: 'mintlake-query.csv' }).click()
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS)
}
