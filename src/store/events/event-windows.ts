// Which dates of the lake recorded events belong to. Market time hardly ever goes back, so the events of a date are few runs of
// consecutive numbers: windows.
import type { EventBatch } from '../../journal/event-batch.ts'
import { DAY_MS } from '../../lib/time.ts'
import { type SeqRange, utcDate } from '../lake/lake-files.ts'

/** Consecutive events of one UTC date. */
export interface EventWindow extends SeqRange {
  date: string
  /** How many of each there are, those included that fit no row. */
  trades: number
  events: number
}

/** The names of the lake's folders have years of four digits. */
const LAST_DATE_MS = Date.UTC(9999, 11, 31)

/** The UTC date of an event. One whose time is none gets a date for its number only: it fits no row. */
export const eventDate = (atMs: number): string =>
  utcDate(Math.min(Math.max(Number.isNaN(atMs) ? 0 : atMs, 0), LAST_DATE_MS))

export class EventWindows {
  readonly list: EventWindow[] = []
  /** UTC day that was asked for last, and its date: nearly all events are of one. */
  #day = Number.NaN
  #date = ''

  /** Adds the events of a batch from `firstNo` on. Numbers that are missing count to the window before or after them. */
  add({ trades, events, lastEventNo }: EventBatch, firstNo: number): void {
    let trade = 0
    while (trade < trades.count && trades.eventNo[trade] < firstNo) trade++
    let event = events.findIndex(({ eventNo }) => eventNo >= firstNo)
    if (event === -1) event = events.length
    while (trade < trades.count || event < events.length) {
      const other = events[event]
      if (other === undefined || trades.eventNo[trade] < other.eventNo) {
        this.#window(trades.atMs[trade], trades.eventNo[trade], firstNo).trades++
        trade++
      } else {
        this.#window(other.atMs, other.eventNo, firstNo).events++
        event++
      }
    }
    const window = this.list.at(-1)
    if (window !== undefined) window.last = lastEventNo
  }

  /** The window that an event belongs to: the last one, or a new one. */
  #window(atMs: number, eventNo: number, firstNo: number): EventWindow {
    const last = this.list.at(-1)
    const date = this.#dateOf(atMs)
    if (last !== undefined && last.date === date) {
      last.last = eventNo
      return last
    }
    const first = last === undefined ? firstNo : last.last + 1
    const window = { date, first, last: eventNo, trades: 0, events: 0 }
    this.list.push(window)
    return window
  }

  #dateOf(atMs: number): string {
    const day = Math.floor(atMs / DAY_MS)
    if (day !== this.#day) {
      this.#day = day
      this.#date = eventDate(atMs)
    }
    return this.#date
  }
}
