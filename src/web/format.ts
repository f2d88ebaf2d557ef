// Numbers and times as people read them. Prices of new tokens lie between 1e-9 and 1: leading zeros are counted in a subscript.
import { dayInZone, inZone } from './time-zone.ts'

const DASH = '–'
const SUBSCRIPT_DIGITS = '₀₁₂₃₄₅₆₇₈₉'
const PRICE_DIGITS = 4
/** Of an amount below a hundredth. */
const AMOUNT_DIGITS = 2
/** From so many zeros behind the point on they are written as a count. */
const COUNTED_ZEROS_MIN = 4
const SUFFIXES = ['', 'K', 'M', 'B', 'T'] as const

const subscript = (count: number): string =>
  [...`${count}`].map((digit) => SUBSCRIPT_DIGITS[Number(digit)]).join('')

/** A price in USD: 0.0000000123 is $0.0₇1230. Always with as many digits, so that one that moves keeps its width. */
export function formatPrice(usd: number | null | undefined): string {
  if (usd == null) return DASH
  if (usd === 0) return '$0'
  if (usd < 0) return `−${formatPrice(-usd)}`
  // Just below it rounds up to it.
  if (usd >= 999.995) return `$${WHOLE.format(usd)}`
  if (usd >= 1) return `$${usd.toFixed(2)}`
  // Just below one it rounds up to it.
  return usd >= 0.999_95 ? '$1.00' : `$${belowOne(usd, PRICE_DIGITS)}`
}

/** With so many digits behind the zeros. */
function belowOne(value: number, count: number): string {
  const [digits = '0', exponent = '0'] = value.toExponential(count - 1).split('e')
  return `0.${withCountedZeros(-Number(exponent) - 1, digits.replace('.', ''))}`
}

/** What stands behind the point. */
const withCountedZeros = (zeros: number, digits: string): string =>
  `${zeros < COUNTED_ZEROS_MIN ? '0'.repeat(zeros) : `0${subscript(zeros)}`}${digits}`

/** An axis reaches below zero, where there are no prices; what is this near to zero is a rounding error. */
export const NO_PRICE_MAX = 1e-13

/** Prices of an axis, all with the same place last: $0.0₄10 stands above $0.0₄09. Where there are no prices it stays empty. */
export function formatAxisPrices(prices: readonly number[]): string[] {
  const largest = Math.max(...prices.map(Math.abs))
  const step = Math.min(...prices.slice(1).map((price, at) => Math.abs(price - (prices[at] ?? 0))))
  const formatEach = (format: (price: number) => string) =>
    prices.map((price) => (price < NO_PRICE_MAX ? '' : format(price)))
  if (!(largest > 0) || !(step > 0) || step >= 1) return formatEach(formatPrice)
  // A step of 0.00025 needs five places; what is left of the division of floats does not make one more.
  const places = Math.min(AXIS_PLACES_MAX, decimalPlaces(step))
  const zeros = Math.max(0, Math.ceil(-Math.log10(largest * (1 + 1e-9))) - 1)
  return formatEach((price) => {
    const fixed = price.toFixed(places)
    if (zeros < COUNTED_ZEROS_MIN) return `$${fixed}`
    return `$0.${withCountedZeros(zeros, fixed.slice('0.'.length + zeros))}`
  })
}

/** Beyond these toFixed has none. */
const AXIS_PLACES_MAX = 20

/** How many digits stand behind the point of a number with at most two significant ones. */
function decimalPlaces(value: number): number {
  const [digits = '', exponent = '0'] = value.toExponential(2).split('e')
  return Math.max(0, digits.replace('.', '').replace(/0+$/, '').length - 1 - Number(exponent))
}

/** In the largest unit of which there is one, as it is written without digits behind the point. */
function scaled(size: number, units: readonly string[], step = 1_000, from = 999.5): [number, number] {
  let [value, unit] = [size, 0]
  while (value >= from && unit < units.length - 1) {
    value /= step
    unit++
  }
  return [value, unit]
}

/** A large amount: 1 234 567 is 1.23M. */
export function formatAmount(amount: number | null | undefined): string {
  if (amount == null) return DASH
  const [value, suffix] = scaled(Math.abs(amount), SUFFIXES)
  // Little is not nothing.
  if (value > 0 && value < 0.01) return `${amount < 0 ? '−' : ''}${belowOne(value, AMOUNT_DIGITS)}`
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

/** Experience points: halves stay exact. */
const XP = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 })

export const formatXp = (xp: number | null | undefined): string => (xp == null ? DASH : XP.format(xp))

/** What is less than all of it is not written as all, nor what is more than nothing as nothing. */
export function formatPercent(percent: number | null | undefined, digits = 1): string {
  if (percent == null) return DASH
  const text = percent.toFixed(digits)
  const least = 10 ** -digits
  if (percent > 0 && Number(text) === 0) return `<${least.toFixed(digits)}%`
  return `${percent < 100 && Number(text) === 100 ? (100 - least).toFixed(digits) : text}%`
}

/** Changes from here on are written like large amounts: the first trades of a token may change its price a million times. */
const LARGE_CHANGE_PERCENT = 10_000

/** What rounds to zero has no direction: with two digits behind the point, and with one. */
const STILL_PERCENT = { fine: 0.005, short: 0.05 } as const
type Fineness = keyof typeof STILL_PERCENT

const signOf = (percent: number, fineness: Fineness): number =>
  Math.abs(percent) < STILL_PERCENT[fineness] ? 0 : Math.sign(percent)
const SHAPES: Readonly<Record<number, string>> = { 1: '▲ ', '-1': '▼ ', 0: '' }

/** A change with its direction as a shape, so that colour is not needed to see it. */
export function formatChange(percent: number | null | undefined): string {
  if (percent == null) return DASH
  const shape = SHAPES[signOf(percent, 'fine')]
  const size = Math.abs(percent)
  return `${shape}${size >= LARGE_CHANGE_PERCENT ? formatAmount(size) : size.toFixed(size < 10 ? 2 : 1)}%`
}

/** The same in a narrow column: at most three digits. */
export function formatChangeShort(percent: number | null | undefined): string {
  if (percent == null) return DASH
  const shape = SHAPES[signOf(percent, 'short')]
  const [size, suffix] = scaled(Math.abs(percent), SUFFIXES)
  const isFine = suffix === 0 ? size < 99.95 : size < 9.95
  return `${shape}${size.toFixed(isFine ? 1 : 0)}${SUFFIXES[suffix]}%`
}

/** With a minus sign as wide as a plus, one digit behind the point. */
export const formatSigned = (value: number, digits = 1): string =>
  `${value < 0 ? '−' : ''}${Math.abs(value).toFixed(digits)}`

const CHANGE_CLASSES: Readonly<Record<number, string>> = { 1: 'up', '-1': 'down', 0: '' }

/** The class of a change's colour: none where what is shown has no direction. */
export const changeClass = (change: number | null | undefined, fineness: Fineness = 'fine'): string =>
  change == null ? '' : (CHANGE_CLASSES[signOf(change, fineness)] ?? '')

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

/** A character that leaves a trace on the page. */
const VISIBLE = /[^\p{C}\p{Z}\p{M}\u115f\u1160\u2800\u3164\uffa0]/u

/** What a token is called: by its mint where its symbol shows nothing. */
export const symbolText = (symbol: string | null, mint: string): string =>
  symbol !== null && VISIBLE.test(symbol) ? symbol : shortAddress(mint)

/** What the server says as a clause. */
export const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function formatBytes(bytes: number | null | undefined): string {
  if (bytes == null) return DASH
  const [value, unit] = scaled(bytes, BYTE_UNITS, 1_024, 1_024)
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${BYTE_UNITS[unit]}`
}
