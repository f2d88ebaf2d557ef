// The market list: one page of it in any format, or a stream of its changes (follow=1). Rows are never parsed for JSON and NDJSON.
import { searchWords } from '../../lib/text/search-words.ts'
import type { ListFilter, MarketEngine, Page, PageQuery } from '../../market/types.ts'
import type { MarketItem } from '../../schema/market-item.ts'
import { ORDERS, SORTS, TABS } from '../../schema/vocabulary.ts'
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
import { flag, invalidParameter, oneOf, wholeNumber } from '../request/parameters.ts'
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
  const { query } = context
  const format = negotiateFormat(context, LIST_FORMATS)
  // NDJSON is sent row by row. The other formats are made of a whole page, which blocks the event loop.
  const limitMax = format === 'ndjson' ? deps.market.tokensMax : MARKET_LIMIT_MAX_JSON
  const limit = wholeNumber(query, 'limit', { min: 1, max: limitMax, otherwise: MARKET_LIMIT_DEFAULT })
  if (flag(query, 'follow')) {
    if (format !== 'ndjson' && query.get('format')) throw invalidParameter('follow', 'needs format=ndjson')
    return answerFollowFrom(deps, context)
  }
  const source = findSource(deps, query, format, limit.value)
  const answer = () => answerPage(deps.node, context, format, source, limit.clamped)
  if (limit.value <= MARKET_LIMIT_MAX_JSON || source.prepare(ROWS_PER_TURN)) return answer()
  // The rows are counted after the wait; by then the address could not be read any more.
  context.ip()
  return deps.largePages.make(() => context.admitRows(), source.prepare, limit.value, answer)
}

/** @throws ServiceError `cursor_expired`, `invalid_parameter`. */
function findSource({ market, cursors }: ListDeps, query: Query, format: Format, limit: number): PageSource {
  const cursor = query.get('cursor')
  if (cursor) return frozenSource(cursors.at(cursor), limit, true)
  const tab = oneOf(query, 'tab', TABS, 'all')
  const sort = oneOf(query, 'sort', SORTS, tab === 'new' ? 'created_timestamp' : 'hot')
  const order = oneOf(query, 'order', ORDERS, 'desc')
  const offset = wholeNumber(query, 'offset', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value
  const filter = parseFilter(query)
  // A frozen list costs later writes a copy: other formats than JSON pay for it only if `cursor=` was sent.
  const withCursor = cursor !== null || format === 'json'
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

/** The filter that a query asks for, or null. @throws ServiceError `invalid_parameter`. */
function parseFilter(query: Query): ListFilter | null {
  const search = query.get('search') || null
  if (search !== null && search.length > SEARCH_CHARACTERS_MAX)
    throw invalidParameter('search', `must be at most ${SEARCH_CHARACTERS_MAX} characters long`)
  if (search !== null && searchWords(search) === '')
    throw invalidParameter('search', 'must have a letter, a digit or a pictograph')
  const bounds = { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: -1 }
  const { value } = wholeNumber(query, 'max_analyses', bounds)
  const analysesMax = value === bounds.otherwise ? null : value
  return search === null && analysesMax === null ? null : { search, analysesMax }
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
  const etag = versionEtag(node, `${page.contentVersion}-${format}`)
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
      const end = `,"meta":${JSON.stringify(makeMeta())}}`
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
