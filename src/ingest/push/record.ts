// In: one parsed record from a feed, of unknown shape. Out: a typed event, or the fault with the field it lies in.
// Trades, nearly all of the traffic, take a hand-written check that a property test holds equal to the schema; the
// schema alone judges the rest and explains every fault. Never touches the market, or the bytes of a body.

import { safeParse } from '../../lib/safe-parse.ts'
import { DAY_MS } from '../../lib/time.ts'
import { truncateText } from '../../lib/truncate-text.ts'
import { AMOUNT_MAX, PRICE_MIN, TIME_MS_MAX, TIME_MS_MIN, WORD_CHARS_MAX } from '../../schema/bounds.ts'
import { type IngestRecord, ingestRecordSchema, type TradeEvent } from '../../schema/event.ts'
import { isMint } from '../../schema/mint.ts'
import { TS_AHEAD_MS_MAX } from '../limits.ts'

export interface RecordFault {
  code: string
  message: string
}

const SECONDS_HINT_AGE_MS_MAX = 10 * 365 * DAY_MS
const RECORD_TYPES: ReadonlySet<unknown> = new Set(ingestRecordSchema.options.map((o) => o.shape.type.value))

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= AMOUNT_MAX
const isAbsentOrAmount = (value: unknown): boolean => value == null || isAmount(value)
const isAbsentOrPositive = (value: unknown): boolean => value == null || (isAmount(value) && value > 0)
const isAbsentOrPrice = (value: unknown): boolean => value == null || (isAmount(value) && value >= PRICE_MIN)
const isAbsentOrText = (value: unknown): boolean => value == null || typeof value === 'string'
const isTime = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= TIME_MS_MIN && (value as number) <= TIME_MS_MAX
const own = (text: string | null | undefined): string | null | undefined =>
  text == null ? text : truncateText(text, WORD_CHARS_MAX)

/** What a trade must keep besides its mint. */
export function isValidTrade(trade: Partial<TradeEvent>): boolean {
  const { side, tokenAmount, priceUsd, solAmount, vSol, vTokens, wallet, tx, ts } = trade
  if (side !== 'buy' && side !== 'sell') return false
  if (!isTime(ts) || !isAmount(tokenAmount)) return false
  if (priceUsd == null && solAmount == null) return false
  if (!isAbsentOrPrice(priceUsd) || !isAbsentOrAmount(solAmount)) return false
  if (!isAbsentOrPositive(vSol) || !isAbsentOrPositive(vTokens)) return false
  return isAbsentOrText(wallet) && isAbsentOrText(tx)
}

/**
 * A trade, or null where the schema has to say what is wrong. Every trade has the same keys in the same order, so that
 * the engine's code sees one shape.
 */
export function tradeOf(record: Record<string, unknown>): TradeEvent | null {
  if (!isValidTrade(record) || !isMint(record.mint)) return null
  const { mint, ts, side, tokenAmount, priceUsd, solAmount, vSol, vTokens, wallet, tx } = record as TradeEvent
  return {
    type: 'trade',
    mint: truncateText(mint, WORD_CHARS_MAX),
    ts,
    side,
    tokenAmount,
    priceUsd,
    solAmount,
    vSol,
    vTokens,
    wallet: own(wallet),
    tx: own(tx),
  }
}

function bySchema(record: unknown): IngestRecord | RecordFault {
  const parsed = safeParse(ingestRecordSchema, record)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const code = issue.code === 'custom' ? (issue.params?.code as string) : issue.code
  const field = issue.path.join('.')
  return { code, message: field === '' ? issue.message : `${field}: ${issue.message}` }
}

/** Why an event of that time is not taken, if it is not. */
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

/** True for the outcome of `readRecord` that is no event. */
export const isFault = (outcome: IngestRecord | RecordFault): outcome is RecordFault => 'code' in outcome

/** One record as an event, or why it is none. `receivedAtMs` (Unix ms) bounds how far ahead its time may lie. */
export function readRecord(record: unknown, receivedAtMs: number): IngestRecord | RecordFault {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) {
    return { code: 'invalid_type', message: 'a record must be an object' }
  }
  const type = (record as { type?: unknown }).type
  const event =
    (type === 'trade' ? tradeOf(record as Record<string, unknown>) : null) ?? parseWithSchema(record, type)
  if (isFault(event)) return event
  return timeFault(event.ts, receivedAtMs) ?? creationFault(event, receivedAtMs) ?? event
}

/** A token that is made in the future would lead the list of new ones for ever. */
function creationFault(event: IngestRecord, receivedAtMs: number): RecordFault | null {
  const createdAtMs = event.type === 'patch' ? (event.fields.createdAt ?? 0) : 0
  if (createdAtMs <= receivedAtMs + TS_AHEAD_MS_MAX) return null
  return { code: 'created_in_future', message: 'fields.createdAt: more than 60 s ahead of its receipt' }
}

function parseWithSchema(record: object, type: unknown): IngestRecord | RecordFault {
  if (RECORD_TYPES.has(type)) return bySchema(record)
  return { code: 'unknown_type', message: `type: must be one of ${[...RECORD_TYPES].join(', ')}` }
}
