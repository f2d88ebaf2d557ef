// Parses what a client asks to follow, from a query over HTTP or a message on a WebSocket, with the same rules for both.
import { unpack } from 'msgpackr'
import type { RowFields } from '../../market/types.ts'
import { BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX } from '../../schema/api/bars.ts'
import { MARKET_LIMIT_DEFAULT } from '../../schema/api/market.ts'
import { STREAM_TOPICS, SUBSCRIPTION_FIELDS } from '../../schema/api/stream.ts'
import type { Timeframe } from '../../schema/bar.ts'
import type { DataPoint } from '../../schema/datapoint.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ORDERS, SORTS, type Sort, TABS } from '../../schema/vocabulary.ts'
import type { Query } from '../context.ts'
import { WINDOW_ROWS_MAX } from '../limits.ts'
import { datapointFields, rowFields } from '../request/fields.ts'
import { listFilter, windowFilters } from '../request/list-filter.ts'
import {
  invalidParameter,
  LIST_PARAMETERS,
  oneOf,
  readAll,
  requiredMint,
  timeframe,
  timeMs,
  wholeNumber,
  wholeOrNull,
} from '../request/parameters.ts'
import { withIgnored } from '../response/notes.ts'
import type { MarketRequest } from './market-channel.ts'
import type { WindowRequest } from './window-channel.ts'

/** `since`: the position of the market to resume from, or null. `fields` of its rows; null: all that rows have by themselves. */
export type FollowedMarket = MarketRequest & { since: number | null; fields: RowFields | null }

/** What a WebSocket may subscribe to. */
export type Topic =
  | ({ topic: 'market' } & FollowedMarket)
  | ({ topic: 'window' } & WindowRequest)
  | { topic: 'token'; mint: string; since: number | null; fields: readonly (keyof DataPoint)[] | null }
  | { topic: 'ohlc'; mint: string; tf: Timeframe; limit: number; fromMs: number | null }
  | { topic: 'submissions'; since: number | null }

const FOLLOW = ['0', '1', 'false', 'true', 'window'] as const

/** What `follow` asks for. @throws ServiceError `invalid_parameter`. */
export function followOf(query: Query): 'no' | 'tab' | 'window' {
  const word = oneOf(query, 'follow', FOLLOW, '0')
  return word === 'window' ? word : ['1', 'true'].includes(word) ? 'tab' : 'no'
}

/** A window of a list. @throws ServiceError `invalid_parameter`, `invalid_mint`. */
export function parseWindow(query: Query): WindowRequest {
  const { since: _, ...wanted } = readAll({
    ...placeReaders(query),
    since: () => {
      if (query.get('since')) throw invalidParameter('since', 'is for streams of a whole tab')
    },
    filter: () => listFilter(query),
    fields: () => rowFields(query),
    limit: () => windowLimit(query),
  })
  return wanted
}

/** By default all of a set of mints. */
function windowLimit(query: Query): number {
  const mintsSent = query.get('mints')
  const otherwise = mintsSent ? Math.min(WINDOW_ROWS_MAX, mintsSent.split(',').length) : MARKET_LIMIT_DEFAULT
  const { value } = wholeNumber(query, 'limit', { min: 1, max: Number.MAX_SAFE_INTEGER, otherwise })
  if (value > WINDOW_ROWS_MAX) throw invalidParameter('limit', `of a window is at most ${WINDOW_ROWS_MAX}`)
  return value
}

/** @throws ServiceError `invalid_parameter`. */
export function parseMarketRequest(query: Query, limitMax: number): FollowedMarket {
  const limits = { min: 1, max: limitMax, otherwise: MARKET_LIMIT_DEFAULT }
  const { ofWindow: _, ...wanted } = readAll({
    ofWindow: () => refuseFiltersOfWindows(query),
    ...placeReaders(query),
    limit: () => wholeNumber(query, 'limit', limits).value,
    since: () => wholeOrNull(query, 'since'),
    fields: () => rowFields(query),
  })
  return wanted
}

function refuseFiltersOfWindows(query: Query): void {
  const [filtered] = windowFilters(query)
  if (filtered !== undefined)
    throw invalidParameter(filtered, 'is for windows: follow=window, or the topic window')
}

/** What reads where in the market a list is; see `readAll`. */
export const placeReaders = (query: Query) => ({
  tab: () => oneOf(query, 'tab', TABS, 'all'),
  sort: () => oneOf(query, 'sort', SORTS, sortOf(query.get('tab'))),
  order: () => oneOf(query, 'order', ORDERS, 'desc'),
  offset: () => wholeNumber(query, 'offset', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value,
})

/** The sort of a tab where none is asked for. */
const sortOf = (tab: string | null): Sort => (tab?.toLowerCase() === 'new' ? 'created_timestamp' : 'hot')

/** @throws ServiceError `invalid_parameter`, `invalid_mint`. */
export function parseTopic(message: Query, tokensMax: number): Topic {
  const topic = requiredWord(message, 'topic', STREAM_TOPICS)
  if (topic === 'submissions') return { topic, since: wholeOrNull(message, 'since') }
  if (topic === 'market') return { topic, ...parseMarketRequest(message, tokensMax) }
  if (topic === 'window') return { topic, ...parseWindow(message) }
  const mint = () => requiredMint(message)
  if (topic === 'token') {
    const fields = () => datapointFields(message)
    return { topic, ...readAll({ mint, since: () => wholeOrNull(message, 'since'), fields }) }
  }
  // Whoever resumes from a time wants every bar since.
  const otherwise = message.get('from') ? BARS_LIMIT_MAX : BARS_LIMIT_DEFAULT
  const limits = { min: 1, max: BARS_LIMIT_MAX, otherwise }
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
 * A message as named values: JSON in a text frame, msgpack in a binary one. Its values are texts, numbers or booleans, or arrays of
 * those, and are read as the same text in a query would be.
 * @throws ServiceError `invalid_json`, `invalid_parameter`.
 */
export function parseMessage(frame: Uint8Array, isBinary: boolean): Message {
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
    values.set(name, textOf(name, value).toWellFormed())
  }
  return { get: (name) => values.get(name) ?? null, names: [...values.keys()] }
}

/** What a client sent on a WebSocket. */
export interface Message extends Query {
  /** The names of its values. */
  names: readonly string[]
}

/** What the answer to a message that subscribes tells of it: as an answer over HTTP does of a query in its `meta`. */
export function notesOnSubscription(
  message: Message,
  topic: Topic,
): { clamped?: { limit: number }; ignored?: readonly string[] } {
  const isClamped = 'limit' in topic && Number(message.get('limit')) > topic.limit
  const ignored = message.names.filter((name) => !SUBSCRIPTION_FIELDS[topic.topic].includes(name))
  return {
    ...(isClamped && { clamped: { limit: topic.limit } }),
    ...withIgnored({}, ignored),
  }
}

/** A value as a query would have it: an array as its elements with commas between, and an empty one, which is no missing one, as a comma. */
function textOf(name: string, value: unknown): string {
  const parts: unknown[] = Array.isArray(value) && LIST_PARAMETERS.has(name) ? value : [value]
  const isPlain = (part: unknown) => ['string', 'number', 'boolean', 'bigint'].includes(typeof part)
  if (!parts.every(isPlain))
    throw invalidParameter(
      name,
      `must be a text or a number${LIST_PARAMETERS.has(name) ? ', or an array of texts' : ''}`,
    )
  return parts.length === 0 ? ',' : parts.join(',')
}
