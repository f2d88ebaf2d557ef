// Answers in a form that costs a language model few tokens: rows as lists below their columns, numbers rounded.
import { z } from 'zod'
import { truncateText } from '../lib/text/truncate-text.ts'
import { LONG_TEXT_CHARACTERS, SIGNIFICANT_DIGITS } from './limits.ts'

/** Rows as lists of cells, in the order of their columns. */
export const compactTableShape = {
  columns: z.array(z.string()).optional(),
  rows: z.array(z.array(z.unknown())).optional(),
}
/** A table, or with `detail` whole rows. */
export const tableOutput = z.looseObject({
  ...compactTableShape,
  data: z.array(z.looseObject({})).optional(),
  meta: z.looseObject({}).optional(),
})
export const detailInput = z
  .boolean()
  .optional()
  .meta({ description: 'true: every field, all digits, whole texts. Many more tokens' })

/** A number with the digits that a model can use. Those before the point all stay: it may be a time or a count. */
function roundedNumber(value: number): number {
  if (Math.abs(value) >= 10 ** SIGNIFICANT_DIGITS) return Math.round(value)
  return Number.isInteger(value) ? value : Number(value.toPrecision(SIGNIFICANT_DIGITS))
}

/** A value whose numbers are rounded. */
export function rounded(value: unknown): unknown {
  if (typeof value === 'number') return roundedNumber(value)
  if (Array.isArray(value)) return value.map(rounded)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, rounded(member)]))
}

/** The named columns of rows. */
export const tableOf = (rows: readonly object[], columns: readonly string[]) => ({
  columns,
  rows: rows.map((row) => {
    const cells = row as Record<string, unknown>
    return columns.map((name) => rounded(cells[name] ?? null))
  }),
})

/** An object without the members that are unknown, with short texts and lists; `cut` names those that were longer. */
export function shortened(
  whole: object,
  left: ReadonlySet<string>,
  itemsMax: Readonly<Record<string, number>>,
): object {
  const cut: string[] = []
  const members = Object.entries(whole).flatMap(([name, value]): [string, unknown][] => {
    if (value === null || left.has(name)) return []
    const short = shortValue(value, itemsMax[name])
    if (short !== value) cut.push(name)
    return [[name, rounded(short)]]
  })
  return { ...Object.fromEntries(members), ...(cut.length > 0 && { cut }) }
}

function shortValue(value: unknown, itemsMax = Number.POSITIVE_INFINITY): unknown {
  if (Array.isArray(value) && value.length > itemsMax) return value.slice(0, itemsMax)
  return typeof value === 'string' && value.length > LONG_TEXT_CHARACTERS
    ? truncateText(value, LONG_TEXT_CHARACTERS)
    : value
}
