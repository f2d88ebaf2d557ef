// The one time zone that a page shows its times in: the browser's own unless UTC was chosen here. The frame names it.
import { MINUTE_MS } from '../lib/time.ts'
import { keptForGood } from './kept.ts'

const CHOICE_ITEM = 'mintlake-time-zone'
const listeners = new Set<() => void>()

const isUtc = (): boolean => keptForGood.get(CHOICE_ITEM) === 'utc'

/** The zone as `Intl` has it. */
const timeZone = (): string =>
  isUtc() ? 'UTC' : new Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

/** The zone's place, empty for UTC, and its distance from UTC at a time. */
export function zoneParts(atMs: number): { place: string; offset: string } {
  const zone = timeZone()
  if (zone === 'UTC') return { place: '', offset: 'UTC' }
  const minutes = zoneOffsetMs(atMs) / MINUTE_MS
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  const offset = `UTC${minutes < 0 ? '−' : '+'}${hours}${rest === 0 ? '' : `:${`${rest}`.padStart(2, '0')}`}`
  return { place: zone.slice(zone.lastIndexOf('/') + 1).replaceAll('_', ' '), offset }
}

/** `UTC`, or `Berlin (UTC+1)`. */
export function zoneName(atMs: number): string {
  const { place, offset } = zoneParts(atMs)
  return place === '' ? offset : `${place} (${offset})`
}

/** How far the zone is ahead of UTC at a time. */
export function zoneOffsetMs(atMs: number): number {
  return isUtc() ? 0 : -new Date(atMs).getTimezoneOffset() * MINUTE_MS
}

/** UTC, or the browser's own zone again. */
export function switchTimeZone(): void {
  keptForGood.set(CHOICE_ITEM, isUtc() ? null : 'utc')
  zoneChanged()
}

/** For what draws times by itself. @returns a function that ends it. */
export function onZoneChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Tells all listeners; another tab may have chosen. */
export const zoneChanged = (): void => {
  for (const listener of listeners) listener()
}

/** Formats are made once for each zone: to make one takes longer than to use it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>()

/** A time in the zone of the page. */
export function inZone(atMs: number, options: Intl.DateTimeFormatOptions): string {
  const zone = timeZone()
  const key = `${zone} ${JSON.stringify(options)}`
  const format = formats.get(key) ?? new Intl.DateTimeFormat('en-GB', { ...options, timeZone: zone })
  formats.set(key, format)
  return format.format(atMs)
}

/** The day in the zone of the page, as 2026-11-25. */
export const dayInZone = (atMs: number): string =>
  inZone(atMs, { year: 'numeric', month: '2-digit', day: '2-digit' }).split('/').toReversed().join('-')
