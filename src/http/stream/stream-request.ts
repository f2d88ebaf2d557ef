// Parses what a client asks to follow, from a query over HTTP or a message on a WebSocket, with the same rules for both.
import { unpack } from 'msgpackr'
import { STREAM_TOPICS } from '../../schema/api/stream.ts'
import type { Timeframe } from '../../schema/bar.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ORDERS, SORTS, type Sort, TABS } from '../../schema/vocabulary.ts'
import type { Query } from '../context.ts'
import { BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX, MARKET_LIMIT_DEFAULT } from '../limits.ts'
import {
  invalidParameter,
  oneOf,
  readAll,
  requiredMint,
  timeframe,
  timeMs,
  wholeNumber,
} from '../request/parameters.ts'
import type { MarketRequest } from './market-channel.ts'

/** `since`: the position of the market to resume from, or null. */
export type FollowedMarket = MarketRequest & { since: number | null }

/** What a WebSocket may subscribe to. */
export type Topic =
  | ({ topic: 'market' } & FollowedMarket)
  | { topic: 'token'; mint: string; since: number | null }
  | { topic: 'ohlc'; mint: string; tf: Timeframe; limit: number; fromMs: number | null }
  | { topic: 'submissions'; since: number | null }

/** @throws ServiceError `invalid_parameter`. */
export function parseMarketRequest(query: Query, limitMax: number): FollowedMarket {
  const limits = { min: 1, max: limitMax, otherwise: MARKET_LIMIT_DEFAULT }
  const { sort, ...wanted } = readAll({
    tab: () => oneOf(query, 'tab', TABS, 'all'),
    sort: () => oneOf<Sort | ''>(query, 'sort', SORTS, ''),
    order: () => oneOf(query, 'order', ORDERS, 'desc'),
    limit: () => wholeNumber(query, 'limit', limits).value,
    offset: () => wholeNumber(query, 'offset', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value,
    since: () => parseSince(query),
  })
  return { ...wanted, sort: sort || (wanted.tab === 'new' ? 'created_timestamp' : 'hot') }
}

/** @throws ServiceError `invalid_parameter`, `invalid_mint`. */
export function parseTopic(message: Query, tokensMax: number): Topic {
  const topic = requiredWord(message, 'topic', STREAM_TOPICS)
  if (topic === 'submissions') return { topic, since: parseSince(message) }
  if (topic === 'market') return { topic, ...parseMarketRequest(message, tokensMax) }
  const mint = () => requiredMint(message)
  if (topic === 'token') return { topic, ...readAll({ mint, since: () => parseSince(message) }) }
  const limits = { min: 1, max: BARS_LIMIT_MAX, otherwise: BARS_LIMIT_DEFAULT }
  return {
    topic,
    ...readAll({
      mint,
      tf: () => timeframe(message),
      limit: () => wholeNumber(message, 'limit', limits).value,
      fromMs: () => timeMs(message, 'from'),
    }),
  }
}

function parseSince(query: Query): number | null {
  if (!query.get('since')) return null
  return wholeNumber(query, 'since', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value
}

/** One of the allowed words. @throws ServiceError `invalid_parameter`, also if the field is missing. */
export function requiredWord<Word extends string>(
  message: Query,
  name: string,
  allowed: readonly [Word, ...Word[]],
): Word {
  if (!message.get(name)) throw invalidParameter(name, `must be one of ${allowed.join(', ')}`, allowed)
  return oneOf(message, name, allowed, allowed[0])
}

/**
 * A message as named values: JSON in a text frame, msgpack in a binary one. Its values are texts, numbers or booleans, and are
 * read as the same text in a query would be.
 * @throws ServiceError `invalid_json`, `invalid_parameter`.
 */
export function parseMessage(frame: Uint8Array, isBinary: boolean): Query {
  let message: unknown
  try {
    message = isBinary ? unpack(frame) : JSON.parse(Buffer.from(frame).toString())
  } catch {
    throw new ServiceError('invalid_json', `The message is not valid ${isBinary ? 'msgpack' : 'JSON'}.`)
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    throw new ServiceError('invalid_json', 'The message must be an object.')
  const values = new Map<string, string>()
  for (const [name, value] of Object.entries(message)) {
    if (value === null || value === undefined) continue
    if (typeof value === 'object' || typeof value === 'function')
      throw invalidParameter(name, 'must be a text or a number')
    values.set(name, `${value}`.toWellFormed())
  }
  return { get: (name) => values.get(name) ?? null }
}
