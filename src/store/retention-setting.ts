// How long rows stay in the lake, as one setting: `training=90,bars=30,trades=30d|20gb|20%,unasked=10%`.
import { z } from 'zod'
import {
  RETAIN_TRADES_DAYS_DEFAULT,
  RETAIN_TRADES_DISK_PCT_DEFAULT,
  RETAIN_TRADES_GB_DEFAULT,
  RETAIN_UNASKED_PCT_DEFAULT,
} from './limits.ts'

/**
 * Tables with dates that may leave, and the fewest days of each: outcomes need the bars of the day after their submission. The XP ledger
 * and the token profiles are not among them: the ledger would no longer add up, and old profiles are still in force.
 */
const DAYS_MIN = { training: 1, rejections: 1, bars: 2, outcomes: 1 } as const

export interface Retention {
  /** Full days before today by table; those that are not named are kept for ever. */
  days: { -readonly [Table in keyof typeof DAYS_MIN]?: number }
  /** Of recorded market events, which are the tables trades and events; 0: no limit. */
  events: { days: number; bytesMax: number; diskPct: number }
  /** Percent of a table's rows that may leave at once for their age without an operator's word. */
  unaskedPct: number
}

const DAYS_MAX = 36_500
const BYTES_PER_UNIT = 1e9
const UNITS_MAX = { d: DAYS_MAX, gb: 1_000_000, '%': 100 } as const
type Unit = keyof typeof UNITS_MAX

const NAMES = [...Object.keys(DAYS_MIN), 'trades', 'unasked']

export const RETENTION_DEFAULT = `trades=${RETAIN_TRADES_DAYS_DEFAULT}d|${RETAIN_TRADES_GB_DEFAULT}gb|${RETAIN_TRADES_DISK_PCT_DEFAULT}%,unasked=${RETAIN_UNASKED_PCT_DEFAULT}%`

class RetentionError extends Error {}

/** A whole number with one of some units; the first of them may be left out. */
function amountOf(name: string, text: string, units: readonly Unit[]): [Unit, number] {
  const [, digits = '', sentUnit = ''] = /^(\d{1,7})(d|gb|%)?$/.exec(text) ?? []
  const unit = units.find((each) => each === (sentUnit || units[0]))
  if (digits === '' || unit === undefined)
    throw new RetentionError(
      `${name} takes a whole number with ${units.join(' or ')}, such as ${name}=30${units[0]}`,
    )
  const amount = Number(digits)
  if (amount > UNITS_MAX[unit]) throw new RetentionError(`${name} takes at most ${UNITS_MAX[unit]}${unit}`)
  return [unit, amount]
}

/** Adds what one pair says. */
function addPair(retention: Retention, name: string, text: string): void {
  if (name === 'unasked') {
    retention.unaskedPct = amountOf(name, text, ['%'])[1]
  } else if (name === 'trades') {
    const limits = text.split('|').map((limit) => amountOf(name, limit, ['d', 'gb', '%']))
    const amounts = new Map(limits)
    if (amounts.size < limits.length) throw new RetentionError('trades names a limit twice')
    const [d = 0, gb = 0, diskPct = 0] = [amounts.get('d'), amounts.get('gb'), amounts.get('%')]
    retention.events = { days: d, bytesMax: gb * BYTES_PER_UNIT, diskPct }
  } else {
    const [, days] = amountOf(name, text, ['d'])
    const daysMin = DAYS_MIN[name as keyof typeof DAYS_MIN]
    if (days > 0 && days < daysMin) throw new RetentionError(`${name} takes 0 or at least ${daysMin}`)
    if (days > 0) retention.days[name as keyof typeof DAYS_MIN] = days
  }
}

/** What the default says where the text says nothing else. @throws RetentionError */
function parseRetention(text: string): Retention {
  const retention: Retention = { days: {}, events: { days: 0, bytesMax: 0, diskPct: 0 }, unaskedPct: 0 }
  const seen = new Set<string>()
  for (const pairs of [RETENTION_DEFAULT, text]) {
    seen.clear()
    for (const pair of pairs.split(',')) {
      const [name = '', amount, ...more] = pair.trim().split('=')
      if (!NAMES.includes(name) || amount === undefined || more.length > 0)
        throw new RetentionError(
          `"${pair}" is not of the form NAME=LIMIT, with a name of ${NAMES.join(', ')}`,
        )
      if (seen.has(name)) throw new RetentionError(`${name} stands there twice`)
      seen.add(name)
      addPair(retention, name, amount.trim())
    }
  }
  return retention
}

export const retention = z.string().transform((text, context) => {
  try {
    return parseRetention(text)
  } catch (error) {
    if (!(error instanceof RetentionError)) throw error
    context.addIssue({ code: 'custom', message: error.message })
    return z.NEVER
  }
})

/** Whether nothing ever leaves. */
export const isForEver = ({ days, events }: Retention): boolean =>
  Object.keys(days).length === 0 && events.days === 0 && events.bytesMax === 0 && events.diskPct === 0
