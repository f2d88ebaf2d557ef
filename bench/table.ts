// Formats rows as a table for a terminal or a README. Figures are rounded, but never so far that they contradict the verdict.
import type { Row } from './runner.ts'

/** Three significant digits, with spaces between thousands. */
export function figure(value: number | null): string {
  if (value === null) return ''
  const rounded = Number(value.toPrecision(3))
  return Math.abs(rounded) >= 10_000 ? rounded.toLocaleString('en').replaceAll(',', ' ') : `${rounded}`
}

const HEADINGS = ['question', 'unit', 'ours', 'against', 'theirs', 'ratio', 'gate', 'stretch', 'met']

function cells(row: Row): string[] {
  const sign = row.better === 'higher' ? '≥ ' : '≤ '
  const target = (value: number | null) => (value === null ? '' : `${sign}${figure(value)}`)
  return [
    row.title,
    row.unit,
    figure(row.ours),
    row.against,
    figure(row.theirs),
    figure(row.ratio),
    target(row.gate),
    target(row.stretch),
    row.note === '' ? row.met : `${row.met} (${row.note})`,
  ]
}

export function terminalTable(rows: readonly Row[]): string {
  const lines = [HEADINGS, ...rows.map(cells)]
  const widths = HEADINGS.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function markdownTable(rows: readonly Row[]): string {
  const line = (parts: readonly string[]) =>
    `| ${parts.map((part) => part.replaceAll('|', '/')).join(' | ')} |`
  return [line(HEADINGS), line(HEADINGS.map(() => '---')), ...rows.map((row) => line(cells(row)))].join('\n')
}
