// The market list: one page of it in any format, or a stream of its changes (follow=1). Rows are never parsed for JSON and NDJSON.
import { jsonLine } from '../../lib/text/json-text.ts'
import { searchWords } from '../../lib/text/search-words.ts'
import type { ListFilter, MarketEngine, Page, PageQuery } from '../../market/types.ts'
import type { MarketItem } from '../../schema/market-item.ts'
import { ORDERS, SORTS, type Sort, TABS } from '../../schema/vocabulary.ts'
import { type Context, type HttpAnswer, JSON_TYPE, NDJSON_TYPE, NO_BYTES, type Query } from '../context.ts'
import { ARROW_TYPE, itemsToArrow, MSGPACK_TYPE, toMsgpack } from '../encode/items.ts'
import { parseRows, wrapRows } from '../encode/ndjson-rows.ts'
import {
  CACHED_RESPONSE_BYTES_MAX,
  MARKET_LIMIT_DEFAULT,
  MARKET_LIMIT_MAX_JSON,
  ROWS_PER_TURN,
  SEARCH_CHARACTERS_MAX,
} from '../limits.ts'
import { type HttpNode, whenReached } from '../node.ts'
import { type Format, negotiateFormat } from '../request/negotiate.ts'
import { flag, invalidParameter, oneOf, readAll, wholeNumber } from '../request/parameters.ts'
import { ChunkedBody } from '../response/chunked-body.ts'
import type { Cursors, ListPosition } from '../response/cursors.ts'
import { hasCurrent, notModified, versionEtag } from '../response/etag.ts'
import type { LargePages } from '../response/large-pages.ts'
import type { Broadcaster } from '../stream/broadcaster.ts'
import { countSnapshotRows, MarketChannel } from '../stream/market-channel.ts'
import { type FollowedMarket, parseMarketRequest } from '../stream/stream-request.ts'

export interface ListDeps {
  market: MarketEngine
  node: HttpNode
  broadcaster: Broadcaster
  cursors: Cursors
  largePages: LargePages
}

export const CACHE_ONE_SECOND = 'public, max-age=1'
const LIST_FORMATS = ['json', 'ndjson', 'msgpack', 'arrow'] as const
const JSON_START = '{"ok":true,"data":['
/** Not for streams: all followers of a tab share the rows that they are sent. */
const FILTER_PARAMETERS = ['search', 'max_analyses']

/** One page, and the cursor of the next: null at the end of the list, or if none was asked for. */
interface ListPage {
  page: Page
  nextCursor: string | null
}

/** Where a page is taken from: the list as it is now, or a frozen list, if it is filtered or a cursor names it. */
interface PageSource {
  query: PageQuery
  filter: ListFilter | null
  take(): ListPage
  /** Encodes at most so many rows ahead of `take`. @returns whether all are encoded. */
  prepare(rowsMax: number): boolean
}

export function answerList(deps: ListDeps, context: Context): HttpAnswer | Promise<HttpAnswer> {
  const { market, node, cursors, largePages } = deps
  const { query } = context
  if (asksToFollow(query)) {
    const format = negotiateFormat(context, LIST_FORMATS)
    if (format !== 'ndjson' && query.get('format')) throw invalidParameter('follow', 'needs format=ndjson')
    return answerFollowFrom(deps, context)
  }
  const request = parseList(context)
  const { format } = request
  // NDJSON is sent row by row. The other formats are made of a whole page, which blocks the event loop.
  const limit = Math.min(request.limit, format === 'ndjson' ? market.tokensMax : MARKET_LIMIT_MAX_JSON)
  const cursor = query.get('cursor')
  const source = cursor
    ? frozenSource(cursors.at(cursor), limit, true)
    : // A frozen list costs later writes a copy: other formats than JSON pay for it only if `cursor=` was sent.
      findSource(deps, { ...request, limit }, cursor !== null || format === 'json')
  const answer = () => answerPage(node, context, format, source, limit < request.limit)
  if (limit <= MARKET_LIMIT_MAX_JSON || source.prepare(ROWS_PER_TURN)) return answer()
  // The rows are counted after the wait; by then the address could not be read any more.
  context.ip()
  return largePages.make(() => context.admitRows(), source.prepare, limit, answer)
}

/** Whether a stream is asked for. What is neither yes nor no is told with the other faults, by `parseList`. */
const asksToFollow = (query: Query): boolean =>
  ['1', 'true'].includes(query.get('follow')?.toLowerCase() ?? '')

/** A list that is asked for. */
interface ListRequest extends PageQuery {
  format: Format
  filter: ListFilter | null
}

/** With a cursor, which says what the list is, what else is asked for has no effect. @throws ServiceError `invalid_parameter`. */
function parseList(context: Context): ListRequest {
  const query: Query = context.query.get('cursor') ? { get: ofCursor(context.query) } : context.query
  const whole = { min: 0, max: Number.MAX_SAFE_INTEGER }
  const { search, analysesMax, sort, ...wanted } = readAll({
    format: () => negotiateFormat(context, LIST_FORMATS),
    follow: () => flag(query, 'follow'),
    limit: () => wholeNumber(query, 'limit', { ...whole, min: 1, otherwise: MARKET_LIMIT_DEFAULT }).value,
    offset: () => wholeNumber(query, 'offset', { ...whole, otherwise: 0 }).value,
    tab: () => oneOf(query, 'tab', TABS, 'all'),
    sort: () => oneOf<Sort | ''>(query, 'sort', SORTS, ''),
    order: () => oneOf(query, 'order', ORDERS, 'desc'),
    search: () => parseSearch(query),
    analysesMax: () => wholeNumber(query, 'max_analyses', { ...whole, otherwise: -1 }).value,
  })
  return {
    ...wanted,
    sort: sort || (wanted.tab === 'new' ? 'created_timestamp' : 'hot'),
    filter:
      search === null && analysesMax === -1
        ? null
        : { search, analysesMax: analysesMax === -1 ? null : analysesMax },
  }
}

/** Parameters that count beside a cursor. */
const BESIDE_CURSOR: readonly string[] = ['limit', 'follow']
const ofCursor =
  (query: Query): Query['get'] =>
  (name) =>
    BESIDE_CURSOR.includes(name) ? query.get(name) : null

function findSource({ market, cursors }: ListDeps, request: ListRequest, withCursor: boolean): PageSource {
  const { tab, sort, order, limit, offset, filter } = request
  if (filter !== null)
    return frozenSource({ ...cursors.begin(tab, sort, filter), order, offset }, limit, withCursor)
  const wanted: PageQuery = { tab, sort, order, limit, offset }
  return {
    query: wanted,
    filter,
    take: () => {
      const page = market.page(wanted)
      if (!withCursor || offset + page.rowCount >= page.total) return { page, nextCursor: null }
      // The page must be of the same version as its cursor, which under load may be an earlier one.
      const { list, cursorAt } = cursors.begin(tab, sort)
      return {
        page: list.version === page.version ? page : list.page(order, offset, limit),
        nextCursor: cursorAt(order, offset + limit),
      }
    },
    prepare: (rowsMax) => market.preparePage(wanted, rowsMax),
  }
}

/** What is searched for; null: nothing. @throws ServiceError `invalid_parameter`. */
function parseSearch(query: Query): string | null {
  const search = query.get('search') || null
  if (search !== null && search.length > SEARCH_CHARACTERS_MAX)
    throw invalidParameter('search', `must be at most ${SEARCH_CHARACTERS_MAX} characters long`)
  if (search !== null && searchWords(search) === '')
    throw invalidParameter('search', 'must have a letter, a digit or a pictograph')
  return search
}

/** A page of a list that stays as it is. */
function frozenSource(
  { list, order, offset, cursorAt }: ListPosition,
  limit: number,
  withCursor: boolean,
): PageSource {
  return {
    query: { tab: list.tab, sort: list.sort, order, limit, offset },
    filter: list.filter,
    take: () => ({
      page: list.page(order, offset, limit),
      nextCursor: withCursor ? cursorAt(order, offset + limit) : null,
    }),
    prepare: (rowsMax) => list.preparePage(order, offset, limit, rowsMax),
  }
}

function answerPage(
  node: HttpNode,
  context: Context,
  format: Format,
  source: PageSource,
  isClamped: boolean,
): HttpAnswer {
  const { page, nextCursor } = source.take()
  // Several formats share one URL. The cursor follows from the list and its version.
  // A page that was told to be of half a market is another one than the same page of a whole one.
  const warming = context.notes.warming_up === undefined ? '' : '-warming'
  const etag = versionEtag(node, `${page.contentVersion}-${format}${warming}`)
  const headers: Record<string, string> = {
    ETag: etag,
    'Cache-Control': CACHE_ONE_SECOND,
    'X-Result-Count': `${page.rowCount}`,
    'X-List-Version': `${page.version}`,
    ...(nextCursor !== null && { 'X-Next-Cursor': nextCursor }),
  }
  if (hasCurrent(context, etag)) return notModified(headers)
  return {
    status: 200,
    ...encodePage(format, page, () => ({
      ...createMeta(source, page, nextCursor, isClamped),
      ...context.notes,
    })),
    headers,
    rows: page.rowCount,
    reusable: true,
    // Which rows a filtered list has may change with any row.
    ...(source.filter === null && { isUnchanged: () => page.isCurrent() }),
  }
}

const createMeta = (
  { query: { tab, sort, order, limit, offset }, filter }: PageSource,
  { rowCount, total, version }: Page,
  nextCursor: string | null,
  isClamped: boolean,
) => ({
  tab,
  sort,
  order,
  limit,
  offset,
  ...(filter !== null && filter.search !== null && { search: filter.search }),
  ...(filter !== null && filter.analysesMax !== null && { maxAnalyses: filter.analysesMax }),
  count: rowCount,
  total,
  version,
  nextCursor,
  ...(isClamped && { clamped: { limit } }),
})

function encodePage(
  format: Format,
  page: Page,
  makeMeta: () => object,
): Pick<HttpAnswer, 'body' | 'contentType'> {
  switch (format) {
    case 'ndjson':
      return { body: ndjsonBody(page), contentType: NDJSON_TYPE }
    case 'arrow':
      return { body: itemsToArrow(parseItems(page)), contentType: ARROW_TYPE }
    case 'msgpack': {
      const body = toMsgpack({ ok: true, data: parseItems(page), meta: makeMeta() })
      return { body, contentType: MSGPACK_TYPE }
    }
    case 'json': {
      const end = `,"meta":${jsonLine(makeMeta())}}`
      return { body: wrapRows(JSON_START, page.ndjson, end), contentType: JSON_TYPE }
    }
  }
}

/** A large page is sent from its rows, without joining them. */
const ndjsonBody = (page: Page): Buffer | ChunkedBody =>
  page.bytes <= CACHED_RESPONSE_BYTES_MAX ? page.ndjson : new ChunkedBody(page)

/** The market has made these rows, so they are not validated again. */
const parseItems = ({ ndjson }: Page): MarketItem[] => parseRows(ndjson) as MarketItem[]

/** The stream from the position that the client asks for, as soon as this node is there. */
function answerFollowFrom(deps: ListDeps, context: Context): HttpAnswer | Promise<HttpAnswer> {
  const { market, node } = deps
  const request = parseMarketRequest(context.query, market.tokensMax)
  const reached = whenReached(node, market, request.since ?? 0)
  if (reached === null) return answerFollow(deps, context.query, request)
  // Its rows are counted after the wait; by then the address could not be read any more.
  context.ip()
  return reached.then(() => answerFollow(deps, context.query, request))
}

/** First the rows, then each change of the tab; with `since`, only what changed after that position. */
function answerFollow({ market, broadcaster }: ListDeps, query: Query, request: FollowedMarket): HttpAnswer {
  const channel = new MarketChannel(market, request.tab)
  const { since } = request
  const resumedFrom = since === null || channel.isLost({ seq: since }) ? null : since
  broadcaster.admit()
  return {
    status: 200,
    body: NO_BYTES,
    contentType: NDJSON_TYPE,
    headers: {
      'Cache-Control': 'no-store',
      'X-List-Version': `${resumedFrom ?? market.seq}`,
      'X-Accel-Buffering': 'no',
    },
    rows: countSnapshotRows(market, request),
    ignored: FILTER_PARAMETERS.filter((name) => query.get(name)),
    stream: (writer) => {
      const follower = broadcaster.connect(writer, 'ndjson')
      // Confirms the position from which the stream resumes. If that is lost, the first line is a resync instead.
      if (resumedFrom !== null) broadcaster.heartbeat(follower, resumedFrom)
      broadcaster.subscribe(follower, channel, since ?? channel.open(request))
    },
  }
}
