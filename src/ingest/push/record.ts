// Checks a parsed record of a feed. Trades, nearly all of the traffic, take a hand-written check; a property test holds it equal
// to the schema. All other records are checked by the schema, which also explains every fault.
import { isRecord } from '../../lib/record.ts'
import { firstIssue, safeParse } from '../../lib/safe-parse.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import { DAY_MS } from '../../lib/time.ts'
import { AMOUNT_MAX, PRICE_MIN, TIME_MS_MAX, TIME_MS_MIN, WORD_CHARS_MAX } from '../../schema/bounds.ts'
import {
  hasQuoteFields,
  type IngestRecord,
  ingestRecordSchema,
  type MarketEvent,
  type TradeEvent,
} from '../../schema/event.ts'
import { isMint } from '../../schema/mint.ts'
import { TS_AHEAD_MS_MAX } from '../limits.ts'

export interface RecordFault {
  code: string
  message: string
}

/** Name of the feed of everything that is pushed. */
export const PUSH_FEED = 'push'
const SECONDS_HINT_AGE_MS_MAX = 10 * 365 * DAY_MS
const RECORD_TYPES: ReadonlySet<unknown> = new Set(ingestRecordSchema.options.map((o) => o.shape.type.value))

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= AMOUNT_MAX
const isAbsentOrAmount = (value: unknown): boolean => value == null || isAmount(value)
const isAbsentOrPositive = (value: unknown): boolean => value == null || (isAmount(value) && value > 0)
const isAbsentOrPrice = (value: unknown): boolean => value == null || (isAmount(value) && value >= PRICE_MIN)
const isAbsentOrText = (value: unknown): boolean => value == null || typeof value === 'string'
// Number.isInteger is true for numbers only. Asking for the type as well would raise the check of a trade from 19 to 27 ns.
const isTime = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= TIME_MS_MIN && (value as number) <= TIME_MS_MAX

/** A text as it is kept: cut to its maximum, and in memory of its own. */
const storedText = <Text extends string | null | undefined>(text: Text, isOwn: boolean): Text | string =>
  text == null || (isOwn && text.length <= WORD_CHARS_MAX && text.isWellFormed())
    ? text
    : truncateText(text, WORD_CHARS_MAX)

type TradeFields = Omit<TradeEvent, 'type' | 'mint'>

/** Whether all fields of a trade but its mint are valid. */
function isValidTrade(trade: Partial<TradeEvent>): trade is TradeFields {
  const { side, tokenAmount, priceUsd, solAmount, vSol, vTokens, wallet, tx, ts } = trade
  if (side !== 'buy' && side !== 'sell') return false
  if (!isTime(ts) || !isAmount(tokenAmount)) return false
  if (priceUsd == null && solAmount == null) return false
  if (!isAbsentOrPrice(priceUsd) || !isAbsentOrAmount(solAmount)) return false
  if (!isAbsentOrPositive(vSol) || !isAbsentOrPositive(vTokens)) return false
  return isAbsentOrText(wallet) && isAbsentOrText(tx)
}

/**
 * A trade, or null where the schema must say what is wrong. Every trade has the same keys in the same order, so that the
 * market's code sees one shape.
 * @param areTextsOwn no text of it is cut out of a larger one, which it would keep alive
 */
export function readTrade(record: Record<string, unknown>, areTextsOwn = false): TradeEvent | null {
  const { mint: sent } = record
  // Few trades have a quote: the schema reads these.
  if (hasQuoteFields(record)) return null
  if (!isValidTrade(record)) return null
  if (!isMint(sent)) return null
  const { ts, side, tokenAmount, priceUsd, solAmount, vSol, vTokens, wallet, tx } = record
  return {
    type: 'trade',
    mint: storedText(sent, areTextsOwn),
    ts,
    side,
    tokenAmount,
    priceUsd,
    solAmount,
    vSol,
    vTokens,
    wallet: storedText(wallet, areTextsOwn),
    tx: storedText(tx, areTextsOwn),
  }
}

function readWithSchema(record: unknown): IngestRecord | RecordFault {
  const parsed = safeParse(ingestRecordSchema, record)
  if (parsed.success) return parsed.data
  const issue = firstIssue(parsed.error)
  const code = issue.code === 'custom' ? `${issue.params?.code}` : issue.code
  const field = issue.path.join('.')
  return { code, message: field === '' ? issue.message : `${field}: ${issue.message}` }
}

/** Why an event with this time is refused; null where it is not. */
export function timeFault(ts: number, receivedAtMs: number): RecordFault | null {
  if (ts > receivedAtMs + TS_AHEAD_MS_MAX) {
    const unit = ts > receivedAtMs * 1e5 ? 'nanoseconds' : ts > receivedAtMs * 100 ? 'microseconds' : null
    const hint = unit === null ? '' : `; it looks like ${unit}, send Unix milliseconds`
    return { code: 'ts_in_future', message: `ts: more than 60 s ahead of its receipt${hint}` }
  }
  const asSecondsMs = ts * 1000
  if (asSecondsMs <= receivedAtMs + TS_AHEAD_MS_MAX && asSecondsMs > receivedAtMs - SECONDS_HINT_AGE_MS_MAX) {
    return { code: 'ts_in_seconds', message: 'ts: looks like seconds, send Unix milliseconds' }
  }
  return null
}

/** Whether `readRecord` found a fault instead of an event. */
export const isFault = (outcome: MarketEvent | IngestRecord | RecordFault): outcome is RecordFault =>
  'code' in outcome

/**
 * One record as an event, or what is wrong with it, both by the schema: `readTrade` reads most trades before.
 * @param receivedAtMs Unix ms; the record's time may lie at most `TS_AHEAD_MS_MAX` ahead of it.
 */
export function readRecord(record: unknown, receivedAtMs: number): MarketEvent | RecordFault {
  if (!isRecord(record)) return { code: 'invalid_type', message: 'a record must be an object' }
  if (!RECORD_TYPES.has(record.type))
    return { code: 'unknown_type', message: `type: must be one of ${[...RECORD_TYPES].join(', ')}` }
  const read = readWithSchema(record)
  if (isFault(read)) return read
  return timeFault(read.ts, receivedAtMs) ?? creationFault(read, receivedAtMs) ?? toEvent(read)
}

/** All that push are one feed to the market. */
function toEvent(record: IngestRecord): MarketEvent {
  switch (record.type) {
    case 'disconnect': {
      const { type, ts, sinceMs, healUntilMs, missing } = record
      const gap = { type, ts, feed: PUSH_FEED, sinceMs: sinceMs ?? ts }
      return healUntilMs == null ? gap : { ...gap, healUntilMs, ...(missing?.length && { missing }) }
    }
    case 'reconnect': {
      const { type, ts, healed, missing } = record
      if (healed !== true) return { type, ts, feed: PUSH_FEED }
      return { type, ts, feed: PUSH_FEED, healed, ...(missing?.length && { missing }) }
    }
    default:
      return record
  }
}

/** A token created in the future would stay first in the list of new tokens. */
function creationFault(event: IngestRecord, receivedAtMs: number): RecordFault | null {
  const createdAtMs = event.type === 'patch' ? (event.fields.createdAt ?? 0) : 0
  if (createdAtMs <= receivedAtMs + TS_AHEAD_MS_MAX) return null
  return { code: 'created_in_future', message: 'fields.createdAt: more than 60 s ahead of its receipt' }
}
