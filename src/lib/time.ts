/** Lengths of time in milliseconds. A day here is always 24 hours, as in UTC. */
export const SECOND_MS = 1_000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** The longest that a timer waits: one that is to wait longer ends at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1

/**
 * The start of the interval of `lengthMs` that holds `timeMs`. Uses a division, because for numbers beyond 2^31 `%` calls the C
 * library, which takes ten times as long. Exact for whole milliseconds: their quotients are far from the next whole number.
 */
export const intervalStart = (timeMs: number, lengthMs: number): number =>
  Math.floor(timeMs / lengthMs) * lengthMs

/** Times of 2001 to 2100 in other units; as milliseconds they would lie in early 1970, or tens of thousands of years ahead. */
const OTHER_UNITS = [
  { unit: 'seconds', from: 1e9, to: 4.1e9, remedy: '1000 times this number' },
  { unit: 'microseconds', from: 1e15, to: 4.1e15, remedy: 'a thousandth of this number' },
  { unit: 'nanoseconds', from: 1e18, to: 4.1e18, remedy: 'a millionth of this number' },
]

/** What is to be told of a time that seems to be in another unit; null where it does not. */
export function unitHint(timeMs: number): string | null {
  const other = OTHER_UNITS.find(({ from, to }) => timeMs >= from && timeMs < to)
  return other === undefined ? null : `looks like ${other.unit}: send Unix milliseconds, ${other.remedy}`
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/

/** From 1973 to 5138: a shorter number is a year, or seconds, a longer one microseconds. */
const UNIX_MS = /^\d{12,14}$/

/**
 * A moment, given as Unix ms or in ISO 8601: a date, or a date and time, in UTC where no zone is named.
 * @returns Unix ms; NaN: it is none, as 31 February
 */
export function parseMoment(text: string): number {
  if (UNIX_MS.test(text)) return Number(text)
  const [, date, time = '00:00', zone = 'Z'] = ISO.exec(text) ?? []
  // By itself 31 February is 3 March.
  if (date === undefined || !new Date(date).toJSON()?.startsWith(date)) return Number.NaN
  return Date.parse(`${date}T${time}${zone}`)
}
