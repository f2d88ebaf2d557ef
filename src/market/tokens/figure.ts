import { bounded } from '../../schema/bounds.ts'

/** A column's number for readers: null where it is unknown (NaN) or beyond the bounds. */
export function numberOrNull(value: number): number | null {
  const figure = bounded(value)
  return Number.isNaN(figure) ? null : figure
}
