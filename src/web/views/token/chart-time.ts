// Times on the chart's axis. The library knows UTC alone: bars are moved by the zone's distance from it, so that its ticks stand at
// the zone's own hours and days, and every label is made of the time itself.

import { TickMarkType, type Time } from 'lightweight-charts'
import { DAY_MS } from '../../../lib/time.ts'
import { dayInZone, inZone, zoneOffsetMs } from '../../time-zone.ts'

const HOUR_AND_MINUTE = { hour: '2-digit', minute: '2-digit' } as const
const TO_THE_SECOND = { ...HOUR_AND_MINUTE, second: '2-digit' } as const

const TICKS: Readonly<Record<TickMarkType, Intl.DateTimeFormatOptions>> = {
  [TickMarkType.Year]: { year: 'numeric' },
  [TickMarkType.Month]: { month: 'short' },
  [TickMarkType.DayOfMonth]: { day: 'numeric', month: 'short' },
  [TickMarkType.Time]: HOUR_AND_MINUTE,
  [TickMarkType.TimeWithSeconds]: TO_THE_SECOND,
}

const utcDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

export class ChartTime {
  /** One distance for all bars, so that they stay in order where the zone changes it. */
  readonly #shiftMs: number
  readonly #barMs: number

  constructor(barMs: number) {
    // Days are those of UTC, wherever they are looked at.
    this.#shiftMs = barMs >= DAY_MS ? 0 : zoneOffsetMs(Date.now())
    this.#barMs = barMs
  }

  toTime(ms: number): Time {
    return ((ms + this.#shiftMs) / 1_000) as Time
  }

  toMs(time: Time): number {
    return Number(time) * 1_000 - this.#shiftMs
  }

  /** The label of a tick of the axis. */
  tick(time: Time, type: TickMarkType): string {
    const ms = this.toMs(time)
    return this.#barMs >= DAY_MS ? utcDay(ms) : inZone(ms, TICKS[type])
  }

  /** When a bar begins: what the crosshair's label and the legend say. */
  full(ms: number): string {
    if (this.#barMs >= DAY_MS) return `${utcDay(ms)} UTC`
    return `${dayInZone(ms)} ${inZone(ms, this.#barMs < 60_000 ? TO_THE_SECOND : HOUR_AND_MINUTE)}`
  }
}
