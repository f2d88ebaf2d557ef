// In: what a client asks to follow, as a query of the HTTP road or a message of a WebSocket. Out: the same typed request
// from both, or ServiceError that says which field is wrong and why. Never looks at the market.
import { unpack } from 'msgpackr'
import { TIMEFRAMES, type Timeframe } from '../../schema/bar.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ORDERS, SORTS, TABS } from '../../schema/vocabulary.ts'
import type { Query } from '../context.ts'
import { BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX, MARKET_LIMIT_DEFAULT } from '../limits.ts'
import { invalidParameter, mintOf, oneOf, time, wholeNumber } from '../request/parameters.ts'
import type { MarketRequest } from './channel.ts'

export const OPERATIONS = ['subscribe', 'unsubscribe', 'ping'] as const
export const TOPICS = ['market', 'token', 'ohlc'] as const

/** A number of the market to go on from, or null. */
function sinceOf(query: Query): number | null {
  if (!query.get('since')) return null
  return wholeNumber(query, 'since', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value
}

/** Which rows of the market list a stream opens with, and from where it goes on. */
export function marketRequest(query: Query, limitMax: number): MarketRequest & { since: number | null } {
  const tab = oneOf(query, 'tab', TABS, 'all')
  return {
    tab,
    sort: oneOf(query, 'sort', SORTS, tab === 'new' ? 'created_timestamp' : 'hot'),
    order: oneOf(query, 'order', ORDERS, 'desc'),
    limit: wholeNumber(query, 'limit', { min: 1, max: limitMax, otherwise: MARKET_LIMIT_DEFAULT }).value,
    offset: wholeNumber(query, 'offset', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value,
    since: sinceOf(query),
  }
}

/** What a WebSocket may follow. */
export type Topic =
  | ({ topic: 'market' } & ReturnType<typeof marketRequest>)
  | { topic: 'token'; mint: string; since: number | null }
  | { topic: 'ohlc'; mint: string; tf: Timeframe; limit: number; fromMs: number | null }

/** The topic that a message names. */
export function topicOf(message: Query, tokensMax: number): Topic {
  const topic = required(message, 'topic', TOPICS)
  if (topic === 'market') return { topic, ...marketRequest(message, tokensMax) }
  const mint = mintOf(message)
  if (topic === 'token') return { topic, mint, since: sinceOf(message) }
  return {
    topic,
    mint,
    tf: oneOf(message, 'tf', TIMEFRAMES, '1m'),
    limit: wholeNumber(message, 'limit', { min: 1, max: BARS_LIMIT_MAX, otherwise: BARS_LIMIT_DEFAULT })
      .value,
    fromMs: time(message, 'from'),
  }
}

export function required<Word extends string>(message: Query, name: string, allowed: readonly Word[]): Word {
  if (!message.get(name)) throw invalidParameter(name, `must be one of ${allowed.join(', ')}`, allowed)
  return oneOf(message, name, allowed, allowed[0])
}

/** A message as fields: JSON in a text frame, msgpack in a binary one. Its values are plain, as those of a query are. */
export function readMessage(frame: Uint8Array, isBinary: boolean): URLSearchParams {
  let message: unknown
  try {
    message = isBinary ? unpack(frame) : JSON.parse(Buffer.from(frame).toString())
  } catch {
    throw new ServiceError('invalid_json', `The message is not valid ${isBinary ? 'msgpack' : 'JSON'}.`)
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    throw new ServiceError('invalid_json', 'The message must be an object.')
  const fields = new URLSearchParams()
  for (const [name, value] of Object.entries(message)) {
    if (value === null || value === undefined) continue
    if (typeof value === 'object' || typeof value === 'function')
      throw invalidParameter(name, 'must be a text or a number')
    fields.set(name, `${value}`)
  }
  return fields
}
