// Numbers and times as people read them. Prices of new tokens lie between 1e-9 and 1: leading zeros are counted in a subscript.
import { dayInZone, inZone } from './time-zone.ts'

const DASH = '–'
const SUBSCRIPT_DIGITS = '₀₁₂₃₄₅₆₇₈₉'
const PRICE_DIGITS = 4
/** From so many zeros behind the point on they are written as a count. */
const COUNTED_ZEROS_MIN = 4
const SUFFIXES = ['', 'K', 'M', 'B', 'T'] as const

const subscript = (count: number): string =>
  [...`${count}`].map((digit) => SUBSCRIPT_DIGITS[Number(digit)]).join('')

/** A price in USD: 0.0000000123 is $0.0₇123. */
export function formatPrice(usd: number | null | undefined): string {
  if (usd == null) return DASH
  if (usd === 0) return '$0'
  if (usd >= 1_000) return `$${WHOLE.format(usd)}`
  if (usd >= 1) return `$${usd.toFixed(2)}`
  const [digits = '0', exponent = '0'] = usd.toExponential(PRICE_DIGITS - 1).split('e')
  // A price just below one may round up to it.
  const zeros = Math.max(0, -Number(exponent) - 1)
  const significant = digits.replace('.', '').replace(/0+$/, '')
  return zeros < COUNTED_ZEROS_MIN
    ? `$0.${'0'.repeat(zeros)}${significant}`
    : `$0.0${subscript(zeros)}${significant}`
}

/** A large amount: 1 234 567 is 1.23M. */
export function formatAmount(amount: number | null | undefined): string {
  if (amount == null) return DASH
  let [value, suffix] = [Math.abs(amount), 0]
  while (value >= 999.5 && suffix < SUFFIXES.length - 1) {
    value /= 1_000
    suffix++
  }
  const digits = suffix === 0 && Number.isInteger(value) ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0
  return `${amount < 0 ? '−' : ''}${value.toFixed(digits)}${SUFFIXES[suffix]}`
}

export const formatUsd = (usd: number | null | undefined): string =>
  usd == null ? DASH : `$${formatAmount(usd)}`

/** Made once: to make it takes longer than to use it a hundred times. */
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

/** A whole number with separators. */
export const formatCount = (count: number | null | undefined): string =>
  count == null ? DASH : WHOLE.format(count)

export const formatPercent = (percent: number | null | undefined, digits = 1): string =>
  percent == null ? DASH : `${percent.toFixed(digits)}%`

/** Changes from here on are written like large amounts: the first trades of a token may change its price a million times. */
const LARGE_CHANGE_PERCENT = 10_000

/** A change with its direction as a shape, so that colour is not needed to see it. */
export function formatChange(percent: number | null | undefined): string {
  if (percent == null) return DASH
  const shape = percent > 0 ? '▲' : percent < 0 ? '▼' : '■'
  const size = Math.abs(percent)
  return `${shape} ${size >= LARGE_CHANGE_PERCENT ? formatAmount(size) : size.toFixed(size < 10 ? 2 : 1)}%`
}

/** The same in a narrow column: at most three digits. */
export function formatChangeShort(percent: number | null | undefined): string {
  if (percent == null) return DASH
  const shape = percent > 0 ? '▲' : percent < 0 ? '▼' : '■'
  let [size, suffix] = [Math.abs(percent), 0]
  while (size >= 999.5 && suffix < SUFFIXES.length - 1) {
    size /= 1_000
    suffix++
  }
  const isFine = suffix === 0 ? size < 99.95 : size < 9.95
  return `${shape} ${size.toFixed(isFine ? 1 : 0)}${SUFFIXES[suffix]}%`
}

/** With a minus sign as wide as a plus, one digit behind the point. */
export const formatSigned = (value: number, digits = 1): string =>
  `${value < 0 ? '−' : ''}${Math.abs(value).toFixed(digits)}`

/** The class of a change's colour. */
export const changeClass = (change: number | null | undefined): string =>
  change == null || change === 0 ? '' : change > 0 ? 'up' : 'down'

/** How long, in the largest unit that fits: 42s, 7m, 3h, 5d. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

/** How long ago. */
export const formatAge = (atMs: number | null | undefined, nowMs: number): string =>
  atMs == null ? DASH : formatSpan(nowMs - atMs)

/** A time of today as hours, minutes and seconds; another day with its date. In the zone of the page. */
export function formatTime(atMs: number | null | undefined, nowMs: number): string {
  if (atMs == null) return DASH
  const time = inZone(atMs, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  const day = dayInZone(atMs)
  return day === dayInZone(nowMs) ? time : `${day} ${time}`
}

/** The start and the end of an address, enough to recognise it. */
export const shortAddress = (address: string | null | undefined): string =>
  address == null ? DASH : address.length <= 12 ? address : `${address.slice(0, 4)}…${address.slice(-4)}`

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function formatBytes(bytes: number | null | undefined): string {
  if (bytes == null) return DASH
  let [value, unit] = [bytes, 0]
  while (value >= 1_024 && unit < BYTE_UNITS.length - 1) {
    value /= 1_024
    unit++
  }
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${BYTE_UNITS[unit]}`
}
