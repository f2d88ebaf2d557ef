// In: reads of the market list, of a token's DataPoint and of its bars. Out: their bytes, as the engine made them:
// a row of the JSON answer is the same text as a line of the NDJSON answer. Never stringifies a row.
import { randomBytes } from 'node:crypto'
import type { MarketDoor, Page } from '../../market/types.ts'
import { BAR_FILLS, BAR_SHAPES, type Bar, TIMEFRAMES, type Timeframe } from '../../schema/bar.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ORDERS, SORTS, TABS } from '../../schema/vocabulary.ts'
import { type Context, type HttpAnswer, JSON_TYPE, NDJSON_TYPE } from '../context.ts'
import { isFresh, notModified, weakEtag } from '../etag.ts'
import {
  BARS_LIMIT_DEFAULT,
  BARS_LIMIT_MAX,
  BATCH_MINTS_MAX,
  MARKET_LIMIT_DEFAULT,
  MARKET_LIMIT_MAX_JSON,
} from '../limits.ts'
import { formatOf } from '../negotiate.ts'
import { checkedMint, mintOf, oneOf, time, wholeNumber } from '../parameters.ts'
import type { Route } from '../server.ts'

const CACHE_ONE_SECOND = 'public, max-age=1'
const NEWLINE = 10
const COMMA = 44
const OPEN_BRACKET = 91
const CLOSE_BRACKET = 93

/** Versions count from zero in every run of the server: this keeps an ETag of another run from matching. */
const RUN = randomBytes(4).toString('hex')

export function marketRoutes(market: MarketDoor): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/market',
      access: 'read',
      summary: 'The market list, JSON or NDJSON',
      handle: (context) => list(market, context),
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
    {
      method: 'GET',
      path: '/api/v1/ohlc',
      access: 'read',
      summary: 'OHLC bars of a token',
      handle: (context) => bars(market, context),
    },
  ]
}

function list(market: MarketDoor, context: Context): HttpAnswer {
  const { query } = context
  const format = formatOf(context, ['json', 'ndjson'])
  const tab = oneOf(query, 'tab', TABS, 'all')
  const sort = oneOf(query, 'sort', SORTS, tab === 'new' ? 'created_timestamp' : 'hot')
  const order = oneOf(query, 'order', ORDERS, 'desc')
  const limitMax = format === 'ndjson' ? market.stats().tokensMax : MARKET_LIMIT_MAX_JSON
  const limit = wholeNumber(query, 'limit', { min: 1, max: limitMax, otherwise: MARKET_LIMIT_DEFAULT })
  const offset = wholeNumber(query, 'offset', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 })
  const page = market.page({ tab, sort, order, limit: limit.value, offset: offset.value })
  const etag = weakEtag(`${RUN}-${page.version.toString(36)}-${page.rowCount}`)
  const headers: Record<string, string> = {
    ETag: etag,
    'Cache-Control': CACHE_ONE_SECOND,
    'X-Result-Count': `${page.rowCount}`,
    'X-List-Version': `${page.version}`,
  }
  if (isFresh(context, etag)) return notModified(headers)
  if (format === 'ndjson') return { status: 200, body: page.ndjson, contentType: NDJSON_TYPE, headers }
  const meta = {
    tab,
    sort,
    order,
    limit: limit.value,
    offset: offset.value,
    count: page.rowCount,
    total: page.total,
    version: page.version,
    ...(limit.clamped && { clamped: { limit: limitMax } }),
  }
  return { status: 200, body: jsonOf(page, meta), contentType: JSON_TYPE, headers }
}

/** `{ok,data,meta}` around the rows as they are: each newline between two rows becomes a comma. */
function jsonOf({ ndjson }: Page, meta: object): Buffer {
  const start = Buffer.from('{"ok":true,"data":')
  const end = Buffer.from(`,"meta":${JSON.stringify(meta)}}`)
  const body = Buffer.allocUnsafe(start.length + 1 + Math.max(1, ndjson.length) + end.length)
  start.copy(body)
  body[start.length] = OPEN_BRACKET
  const first = start.length + 1
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

const unknownToken = (mint: string) =>
  new ServiceError('token_not_found', `No DataPoint is known for ${mint}.`)

function datapoint(market: MarketDoor, context: Context): HttpAnswer {
  formatOf(context, ['json'])
  const mint = mintOf(context.query)
  const found = market.datapointJson(mint)
  if (found === null) throw unknownToken(mint)
  const etag = weakEtag(`${RUN}-${found.version}`)
  const headers = { ETag: etag, 'Cache-Control': CACHE_ONE_SECOND }
  if (isFresh(context, etag)) return notModified(headers)
  return {
    status: 200,
    body: Buffer.concat([Buffer.from('{"ok":true,"data":'), found.json, Buffer.from('}')]),
    contentType: JSON_TYPE,
    headers,
  }
}

function batch(market: MarketDoor, { body }: Context): HttpAnswer {
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
  const unique = [...new Set(mints.map(checkedMint))]
  const data = unique.flatMap((mint) => market.datapoint(mint) ?? [])
  return {
    status: 200,
    body: { ok: true, data, meta: { notFound: unique.filter((mint) => !market.has(mint)) } },
  }
}

function bars(market: MarketDoor, context: Context): HttpAnswer {
  const { query } = context
  const format = formatOf(context, ['json', 'ndjson'])
  const mint = mintOf(query)
  const tf = oneOf(query, 'tf', TIMEFRAMES, '1m') as Timeframe
  const limit = wholeNumber(query, 'limit', { min: 1, max: BARS_LIMIT_MAX, otherwise: BARS_LIMIT_DEFAULT })
  const fill = oneOf(query, 'fill', BAR_FILLS, 'none')
  const shape = oneOf(query, 'shape', BAR_SHAPES, 'short')
  const fromMs = time(query, 'from')
  const toMs = time(query, 'to')
  const answer = market.bars({ mint, tf, limit: limit.value, fill, fromMs, toMs })
  if (answer === null) throw unknownToken(mint)
  const etag = weakEtag(`${RUN}-${answer.version}-${answer.bars.length}-${fill}`)
  const headers = { ETag: etag, 'Cache-Control': CACHE_ONE_SECOND, 'X-Result-Count': `${answer.bars.length}` }
  if (isFresh(context, etag)) return notModified(headers)
  const data = shape === 'long' ? answer.bars.map(longBar) : answer.bars
  if (format === 'ndjson') {
    const lines = data.map((bar) => `${JSON.stringify(bar)}\n`).join('')
    return { status: 200, body: Buffer.from(lines), contentType: NDJSON_TYPE, headers }
  }
  const meta = {
    mint,
    tf,
    limit: limit.value,
    fill,
    gaps: answer.gaps,
    ...(limit.clamped && { clamped: { limit: BARS_LIMIT_MAX } }),
  }
  return { status: 200, body: { ok: true, data, meta }, headers }
}

const longBar = ({ t, o, h, l, c, v, n, closed }: Bar) => ({
  timestamp: t,
  open: o,
  high: h,
  low: l,
  close: c,
  volume: v,
  trades: n,
  closed,
})
