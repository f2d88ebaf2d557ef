// How long rows stay in the lake, as one setting: `training=90,bars=30,trades=30d|20gb|20%,unasked=10%`.
import { z } from 'zod'
import { keysOf, recordFrom } from '../lib/record.ts'
import { pairs, part } from '../lib/settings/pairs.ts'
import type { TableName } from '../schema/tables.ts'
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
  days: { -readonly [Table in TableName]?: number }
  /**
   * Of recorded market events, which are the tables trades and events: full days before today on which they were recorded (their own
   * times may be older, in a replay), and how much they may take, also in percent of the disk that the lake is on. What is reached first
   * counts; 0: no limit.
   */
  events: { days: number; bytesMax: number; diskPct: number }
  /** Percent of a table's rows that may leave at once for their age without an operator's word. */
  unaskedPct: number
}

export const KEEP_FOR_EVER: Retention = {
  days: {},
  events: { days: 0, bytesMax: 0, diskPct: 0 },
  unaskedPct: RETAIN_UNASKED_PCT_DEFAULT,
}

const BYTES_PER_UNIT = 1e9
const UNITS_MAX = { d: 36_500, gb: 1_000_000, '%': 100 } as const
type Unit = keyof typeof UNITS_MAX
type Limits = Partial<Record<Unit, number>>

/** Whole numbers, each with another of these units; the first unit may be left out. */
const limits = (...units: readonly [Unit, ...Unit[]]) =>
  z.string().transform((text, context): Limits => {
    const found: Limits = {}
    const issue = (message: string) => {
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
    for (const limit of text.split('|')) {
      const [, digits = '', sentUnit = ''] = /^(\d{1,7})(d|gb|%)?$/.exec(limit.trim()) ?? []
      const unit = units.find((each) => each === (sentUnit || units[0]))
      if (digits === '' || unit === undefined)
        return issue(`must be a whole number with ${units.join(' or ')}, such as 30${units[0]}`)
      if (Number(digits) > UNITS_MAX[unit]) return issue(`must be at most ${UNITS_MAX[unit]}${unit}`)
      if (found[unit] !== undefined) return issue('names a limit twice')
      found[unit] = Number(digits)
    }
    return found
  })

/** 0: for ever. */
const days = (min: number) =>
  limits('d')
    .transform(({ d = 0 }) => d)
    .refine((d) => d === 0 || d >= min, `must be 0 or at least ${min}`)

const eventLimits = limits('d', 'gb', '%').transform(({ d = 0, gb = 0, '%': diskPct = 0 }) => ({
  days: d,
  bytesMax: gb * BYTES_PER_UNIT,
  diskPct,
}))

const EVENTS_DEFAULT = `${RETAIN_TRADES_DAYS_DEFAULT}d|${RETAIN_TRADES_GB_DEFAULT}gb|${RETAIN_TRADES_DISK_PCT_DEFAULT}%`

const given = pairs(
  'retain',
  {
    ...recordFrom(keysOf(DAYS_MIN), (table) => part(0, days(DAYS_MIN[table]))),
    trades: part(EVENTS_DEFAULT, eventLimits),
    unasked: part(
      `${RETAIN_UNASKED_PCT_DEFAULT}%`,
      limits('%').transform(({ '%': pct = 0 }) => pct),
    ),
  },
  'How long rows stay in the lake: full days before today of training, rejections, bars and outcomes (0 or not named: for ever); of recorded market events (trades) days, size or percent of the disk, whichever is reached first (0: no limit); and percent of a table’s rows that may leave at once for their age without `mintlake lake retire` (unasked). Such as training=90,bars=30,trades=7d|50gb',
)

export const RETAIN = {
  ...given,
  schema: given.schema.transform(({ trades, unasked, ...ofTables }): Retention => {
    const kept: Retention['days'] = {}
    for (const table of keysOf(DAYS_MIN)) if (ofTables[table] > 0) kept[table] = ofTables[table]
    return { days: kept, events: trades, unaskedPct: unasked }
  }),
}

/** Whether nothing ever leaves. */
export const isForEver = ({ days: kept, events }: Retention): boolean =>
  Object.keys(kept).length === 0 && events.days === 0 && events.bytesMax === 0 && events.diskPct === 0
