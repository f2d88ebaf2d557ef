/** A UTC date of the lake, YYYY-MM-DD, and its rows. */
export interface DateRows {
  date: string
  rows: number
}

/**
 * Walks dates from the newest on: first one, then two, then four … so that what is recent is found at once, and what is old
 * in few steps. Ends when the rows of the walked dates reach `rowsMax`; the first date is walked whatever it has.
 * @returns the dates of each step, and where the last of them begins, Unix ms; null: all dates were walked
 */
export function* walkDates(
  dates: readonly DateRows[],
  rowsMax: number,
): Generator<{ step: readonly string[]; toMs: number | null }, void> {
  let rows = 0
  const within = dates
    .toSorted((a, b) => (a.date < b.date ? 1 : -1))
    .filter((each, index) => {
      rows += each.rows
      return rows <= rowsMax || index === 0
    })
    .map(({ date }) => date)
  for (let from = 0; from < within.length; from = 2 * from + 1) {
    const step = within.slice(from, 2 * from + 1)
    const isLast = from + step.length === dates.length
    yield { step, toMs: isLast ? null : Date.parse(step[step.length - 1]) }
  }
}
