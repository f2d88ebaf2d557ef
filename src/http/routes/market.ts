// In: reads of the market list and of a token's DataPoint. Out: their bytes, as the engine made them:
// a row of the JSON answer is the same text as a line of the NDJSON answer. Never stringifies a row.
import type { MarketEngine, Page } from '../../market/types.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { MarketItem } from '../../schema/market-item.ts'
import { ORDERS, type Order, SORTS, type Sort, TABS, type Tab } from '../../schema/vocabulary.ts'
import { type Context, type HttpAnswer, JSON_TYPE, NDJSON_TYPE, type Query } from '../context.ts'
import { ARROW_TYPE, itemsToArrow, MSGPACK_TYPE, toMsgpack } from '../encode/items.ts'
import {
  BATCH_MINTS_MAX,
  CACHED_RESPONSE_BYTES_MAX,
  MARKET_LIMIT_DEFAULT,
  MARKET_LIMIT_MAX_JSON,
  ROWS_PER_TURN,
} from '../limits.ts'
import { type Format, formatOf } from '../request/negotiate.ts'
import { checkedMint, invalidParameter, mintOf, oneOf, wholeNumber } from '../request/parameters.ts'
import { ChunkedBody } from '../response/chunked-body.ts'
import type { Cursors } from '../response/cursors.ts'
import { isFresh, notModified, versionEtag } from '../response/etag.ts'
import { LargePages } from '../response/large-pages.ts'
import type { Route } from '../route.ts'
import type { Broadcaster } from '../stream/broadcaster.ts'
import { MarketChannel, snapshotRows } from '../stream/channel.ts'
import { marketRequest } from '../stream/stream-request.ts'
import { streamRoute } from '../stream/stream-socket.ts'

export const MARKET_PATH = '/api/v1/market'
export const CACHE_ONE_SECOND = 'public, max-age=1'
const NEWLINE = 10
const COMMA = 44
const OPEN_BRACKET = 91
const CLOSE_BRACKET = 93
const DATA_START = Buffer.from('{"ok":true,"data":')
const DATA_END = Buffer.from('}')

/** What the routes of the market need. */
export interface MarketDeps {
  market: MarketEngine
  broadcaster: Broadcaster
  cursors: Cursors
}

export function marketRoutes(deps: MarketDeps): Route[] {
  const { market } = deps
  const largePages = new LargePages()
  return [
    {
      method: 'GET',
      path: MARKET_PATH,
      access: 'read',
      summary: 'The market list; follow=1 streams its changes',
      handle: (context) => list(deps, largePages, context),
    },
    {
      method: 'GET',
      path: '/api/v1/datapoint',
      access: 'read',
      summary: 'A token’s snapshot, the DataPoint',
      handle: (context) => datapoint(market, context),
    },
    {
      method: 'POST',
      path: '/api/v1/datapoint/batch',
      access: 'read',
      summary: 'Up to ten DataPoints',
      handle: (context) => batch(market, context),
    },
    streamRoute,
  ]
}

const LIST_FORMATS = ['json', 'ndjson', 'msgpack', 'arrow'] as const

/** What a page is taken from: the list as it is now, or the version that a cursor stands in. */
interface Source {
  tab: Tab
  sort: Sort
  order: Order
  offset: number
  /** Takes the page. */
  page(): ListPage
  /** Makes rows of it before, at most so many. @returns whether all of them are made. */
  prepare(rowsMax: number): boolean
}

/** One page, and where the next one begins: null at the end, or when no cursor was asked for. */
interface ListPage {
  page: Page
  nextCursor: string | null
}

function list(deps: MarketDeps, largePages: LargePages, context: Context): HttpAnswer | Promise<HttpAnswer> {
  const { market, broadcaster } = deps
  const { query } = context
  const format = formatOf(context, LIST_FORMATS)
  // Lines go out as they are; the other formats are made of a page, while everybody waits.
  const limitMax = format === 'ndjson' ? market.tokensMax : MARKET_LIMIT_MAX_JSON
  const limit = wholeNumber(query, 'limit', { min: 1, max: limitMax, otherwise: MARKET_LIMIT_DEFAULT })
  const isFollowed = oneOf(query, 'follow', ['0', '1', 'false', 'true'], '0')
  if (isFollowed === '1' || isFollowed === 'true') {
    if (format !== 'ndjson' && query.get('format')) throw invalidParameter('follow', 'needs format=ndjson')
    return follow(market, broadcaster, query)
  }
  const source = sourceOf(deps, query, format, limit.value)
  const answer = () => listAnswer(context, format, source, limit)
  if (limit.value <= MARKET_LIMIT_MAX_JSON || source.prepare(ROWS_PER_TURN)) return answer()
  context.ip()
  return largePages.make(context.admitRows, source.prepare, limit.value, answer)
}

function listAnswer(
  context: Context,
  format: Format,
  source: Source,
  limit: { value: number; clamped: boolean },
): HttpAnswer {
  const { tab, sort, order, offset } = source
  const { page, nextCursor } = source.page()
  // The answer holds the cursor, and one address answers in several formats.
  const etag = versionEtag(
    [page.contentVersion, format, ...(nextCursor === null ? [] : [nextCursor])].join('-'),
  )
  const headers: Record<string, string> = {
    ETag: etag,
    'Cache-Control': CACHE_ONE_SECOND,
    'X-Result-Count': `${page.rowCount}`,
    'X-List-Version': `${page.version}`,
    ...(nextCursor !== null && { 'X-Next-Cursor': nextCursor }),
  }
  if (isFresh(context, etag)) return notModified(headers)
  const answer = { headers, rows: page.rowCount, reusable: true } as const
  if (format === 'ndjson') return { status: 200, body: linesOf(page), contentType: NDJSON_TYPE, ...answer }
  if (format === 'arrow')
    return {
      status: 200,
      body: itemsToArrow(itemsOf(page)),
      contentType: ARROW_TYPE,
      ...answer,
    }
  const meta = {
    tab,
    sort,
    order,
    limit: limit.value,
    offset,
    count: page.rowCount,
    total: page.total,
    version: page.version,
    nextCursor,
    ...(limit.clamped && { clamped: { limit: limit.value } }),
  }
  if (format === 'msgpack')
    return {
      status: 200,
      body: toMsgpack({ ok: true, data: itemsOf(page), meta }),
      contentType: MSGPACK_TYPE,
      ...answer,
    }
  return { status: 200, body: jsonOf(page, meta), contentType: JSON_TYPE, ...answer }
}

/** A large page goes out line by line. */
const linesOf = (page: Page): Buffer | ChunkedBody =>
  page.bytes <= CACHED_RESPONSE_BYTES_MAX ? page.ndjson : new ChunkedBody(page)

const itemsOf = ({ ndjson }: Page): MarketItem[] =>
  JSON.parse(`[${ndjson.toString().trimEnd().replaceAll('\n', ',')}]`)

/** Where a page is to be taken from. @throws ServiceError `cursor_expired`, `invalid_parameter`. */
function sourceOf({ market, cursors }: MarketDeps, query: Query, format: Format, limit: number): Source {
  const cursor = query.get('cursor')
  if (cursor) {
    const { list, order, offset, next } = cursors.at(cursor)
    return {
      tab: list.tab,
      sort: list.sort,
      order,
      offset,
      page: () => ({ page: list.page(order, offset, limit), nextCursor: next(order, offset + limit) }),
      prepare: (rowsMax) => list.preparePage(order, offset, limit, rowsMax),
    }
  }
  const tab = oneOf(query, 'tab', TABS, 'all')
  const sort = oneOf(query, 'sort', SORTS, tab === 'new' ? 'created_timestamp' : 'hot')
  const order = oneOf(query, 'order', ORDERS, 'desc')
  const offset = wholeNumber(query, 'offset', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value
  const wanted = { tab, sort, order, limit, offset }
  // Freezing a list costs later writes a copy: the bulk formats pay for it only when a cursor is asked for.
  const isPaged = cursor !== null || format === 'json'
  return {
    tab,
    sort,
    order,
    offset,
    page: () => {
      const page = market.page(wanted)
      if (!isPaged || offset + page.rowCount >= page.total) return { page, nextCursor: null }
      // The page and its cursor are of one version, which in a crowd may be an earlier one than now.
      const { list, next } = cursors.begin(tab, sort)
      return {
        page: list.version === page.version ? page : list.page(order, offset, limit),
        nextCursor: next(order, offset + limit),
      }
    },
    prepare: (rowsMax) => market.preparePage(wanted, rowsMax),
  }
}

/** First the rows, then whatever changes in the tab; or, with `since`, only what changed after it. */
function follow(market: MarketEngine, broadcaster: Broadcaster, query: Query): HttpAnswer {
  const request = marketRequest(query, market.tokensMax)
  const channel = new MarketChannel(market, request.tab)
  const { since } = request
  const resumedFrom = since === null || channel.isLost({ seq: since }) ? null : since
  broadcaster.admit()
  return {
    status: 200,
    body: Buffer.alloc(0),
    contentType: NDJSON_TYPE,
    headers: {
      'Cache-Control': 'no-store',
      'X-List-Version': `${resumedFrom ?? market.seq}`,
      'X-Accel-Buffering': 'no',
    },
    rows: snapshotRows(market, request),
    stream: (writer) => {
      const follower = broadcaster.connect(writer, 'ndjson')
      // The line that says where a resumed stream goes on; one that is lost is told so instead.
      if (resumedFrom !== null) broadcaster.heartbeat(follower, resumedFrom)
      broadcaster.subscribe(follower, channel, since ?? channel.open(request))
    },
  }
}

/** `{ok,data,meta}` around the rows as they are: each newline between two rows becomes a comma. */
function jsonOf({ ndjson }: Page, meta: object): Buffer {
  const end = Buffer.from(`,"meta":${JSON.stringify(meta)}}`)
  const body = Buffer.allocUnsafe(DATA_START.length + 1 + Math.max(1, ndjson.length) + end.length)
  DATA_START.copy(body)
  body[DATA_START.length] = OPEN_BRACKET
  const first = DATA_START.length + 1
  ndjson.copy(body, first)
  // A newline inside a string is escaped in JSON, so every newline byte stands between rows.
  for (
    let at = body.indexOf(NEWLINE, first);
    at !== -1 && at < first + ndjson.length;
    at = body.indexOf(NEWLINE, at + 1)
  )
    body[at] = COMMA
  body[first + Math.max(1, ndjson.length) - 1] = CLOSE_BRACKET
  end.copy(body, first + Math.max(1, ndjson.length))
  return body
}

export const unknownToken = (mint: string) =>
  new ServiceError('token_not_found', `No DataPoint is known for ${mint}.`)

function datapoint(market: MarketEngine, context: Context): HttpAnswer {
  formatOf(context, ['json'])
  const mint = mintOf(context.query)
  const found = market.datapointJson(mint)
  if (found === null) throw unknownToken(mint)
  const etag = versionEtag(`${found.version}`)
  const headers = { ETag: etag, 'Cache-Control': CACHE_ONE_SECOND }
  if (isFresh(context, etag)) return notModified(headers)
  return {
    status: 200,
    body: Buffer.concat([DATA_START, found.json, DATA_END]),
    contentType: JSON_TYPE,
    headers,
    reusable: true,
  }
}

function batch(market: MarketEngine, { body }: Context): HttpAnswer {
  let parsed: unknown
  try {
    parsed = JSON.parse(body.toString('utf8'))
  } catch {
    throw new ServiceError('invalid_json', 'The body is not valid JSON.')
  }
  const mints = (parsed as { mints?: unknown } | null)?.mints
  if (!Array.isArray(mints) || mints.length < 1 || mints.length > BATCH_MINTS_MAX) {
    const message = `must be an array of 1 to ${BATCH_MINTS_MAX} mints`
    throw new ServiceError('validation_failed', `mints ${message}`, {
      errors: [{ pointer: '/mints', code: 'invalid_type', message }],
    })
  }
  const unique = [...new Set(mints.map((mint, index) => checkedMint(mint, `/mints/${index}`)))]
  const data = unique.flatMap((mint) => market.datapoint(mint) ?? [])
  return {
    status: 200,
    body: { ok: true, data, meta: { notFound: unique.filter((mint) => !market.has(mint)) } },
  }
}
