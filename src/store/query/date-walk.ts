/** A UTC date of the lake, YYYY-MM-DD, and its rows. */
export interface DateRows {
  date: string
  rows: number
}

/**
 * Walks dates from the newest on: first one, then two, then four … so that what is recent is found at once, and what is old
 * in few steps. Ends when the rows of the walked dates reach `rowsMax`; the first date is walked whatever it has.
 */
export class DateWalk {
  readonly #dates: readonly DateRows[]
  #rowsLeft: number
  #walked = 0
  #stepDates = 1

  constructor(dates: readonly DateRows[], rowsMax: number) {
    this.#dates = [...dates].sort((a, b) => (a.date < b.date ? 1 : -1))
    this.#rowsLeft = rowsMax
  }

  /** The next dates; empty: the walk has ended. */
  next(): string[] {
    const taken: string[] = []
    for (const { date, rows } of this.#dates.slice(this.#walked, this.#walked + this.#stepDates)) {
      const isFirst = this.#walked + taken.length === 0
      if (rows > this.#rowsLeft && !isFirst) break
      this.#rowsLeft -= rows
      taken.push(date)
    }
    this.#walked += taken.length
    this.#stepDates *= 2
    return taken
  }

  /** Where the last walked date begins, Unix ms; null: all dates were walked. */
  get walkedToMs(): number | null {
    const last = this.#dates[this.#walked - 1]
    return last === undefined || this.#walked === this.#dates.length ? null : Date.parse(last.date)
  }
}
