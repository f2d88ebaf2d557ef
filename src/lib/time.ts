/** Lengths of time in milliseconds. A day here is always 24 hours, as in UTC. */
export const SECOND_MS = 1_000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** Times of 2001 to 2100 in other units; as milliseconds they would lie in early 1970, or tens of thousands of years ahead. */
const OTHER_UNITS = [
  { unit: 'seconds', from: 1e9, to: 4.1e9, remedy: '1000 times this number' },
  { unit: 'microseconds', from: 1e15, to: 4.1e15, remedy: 'a thousandth of this number' },
]

/** What is to be told of a time that seems to be in another unit; null where it does not. */
export function unitHint(timeMs: number): string | null {
  const other = OTHER_UNITS.find(({ from, to }) => timeMs >= from && timeMs < to)
  return other === undefined ? null : `looks like ${other.unit}: send Unix milliseconds, ${other.remedy}`
}

/** A moment as Unix ms; NaN: it is none. An ISO 8601 time without a zone is in UTC. */
export function parseMoment(text: string): number {
  const iso = /^\d{4}-\d\d-\d\d(T[\d:.]+)?$/.test(text) ? `${text}${text.includes('T') ? 'Z' : ''}` : text
  return /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(iso)
}
