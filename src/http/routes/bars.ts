// In: reads of a token's bars. Out: their bytes, made from the engine's text or columns: a row of the JSON answer is the
// same text as a line of the NDJSON answer. Never makes an object of a bar where the format does without.
import type { BarColumns, BarsQuery, BarsText, MarketEngine, TextForm } from '../../market/types.ts'
import { BAR_FILLS, BAR_SHAPES, type BarShape, TIMEFRAMES } from '../../schema/bar.ts'
import { type Context, type HttpAnswer, JSON_TYPE, NDJSON_TYPE } from '../context.ts'
import { barsToArrow } from '../encode/bar-arrow.ts'
import { barsToMsgpack } from '../encode/bar-msgpack.ts'
import { ARROW_TYPE, MSGPACK_TYPE } from '../encode/items.ts'
import { BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX } from '../limits.ts'
import { type Format, formatOf } from '../request/negotiate.ts'
import { mintOf, oneOf, time, wholeNumber } from '../request/parameters.ts'
import { isFresh, notModified, versionEtag } from '../response/etag.ts'
import type { Route } from '../route.ts'
import { CACHE_ONE_SECOND, unknownToken } from './market.ts'

const BAR_FORMATS = ['json', 'ndjson', 'msgpack', 'arrow'] as const

export const barRoute = (market: MarketEngine): Route => ({
  method: 'GET',
  path: '/api/v1/ohlc',
  access: 'read',
  summary: 'OHLC bars of a token',
  handle: (context) => bars(market, context),
})

/** What a request asks for. */
interface Asked {
  query: BarsQuery
  shape: BarShape
  format: Format
  clamped: boolean
}

function askedIn(context: Context): Asked {
  const { query } = context
  const format = formatOf(context, BAR_FORMATS)
  const mint = mintOf(query)
  const tf = oneOf(query, 'tf', TIMEFRAMES, '1m')
  const limit = wholeNumber(query, 'limit', { min: 1, max: BARS_LIMIT_MAX, otherwise: BARS_LIMIT_DEFAULT })
  const fill = oneOf(query, 'fill', BAR_FILLS, 'none')
  const shape = oneOf(query, 'shape', BAR_SHAPES, 'short')
  const fromMs = time(query, 'from')
  const toMs = time(query, 'to')
  return {
    query: { mint, tf, limit: limit.value, fill, fromMs, toMs },
    shape,
    format,
    clamped: limit.clamped,
  }
}

function bars(market: MarketEngine, context: Context): HttpAnswer {
  const asked = askedIn(context)
  const { format } = asked
  return format === 'json' || format === 'ndjson'
    ? textAnswer(market, context, asked)
    : columnsAnswer(market, context, asked)
}

function textAnswer(market: MarketEngine, context: Context, asked: Asked): HttpAnswer {
  const { format, query, shape } = asked
  const form: TextForm = { shape, separator: format === 'json' ? ',' : '\n' }
  const text = market.barsText(query, form)
  if (text === null) throw unknownToken(query.mint)
  const wholeFromMs = market.barsWholeFromMs(query.mint)
  const headers = headersOf(text, asked, wholeFromMs)
  if (isFresh(context, headers.ETag)) return notModified(headers)
  const [body, contentType] =
    format === 'json'
      ? [barsJson(text, metaOf(asked, text.gaps, wholeFromMs)), JSON_TYPE]
      : [joined('', text, '', 0), NDJSON_TYPE]
  return { status: 200, body, contentType, headers, reusable: true }
}

function columnsAnswer(market: MarketEngine, context: Context, asked: Asked): HttpAnswer {
  const { format, query, shape } = asked
  const columns = market.barColumns(query)
  if (columns === null) throw unknownToken(query.mint)
  const wholeFromMs = market.barsWholeFromMs(query.mint)
  const headers = headersOf(columns, asked, wholeFromMs)
  if (isFresh(context, headers.ETag)) return notModified(headers)
  const [body, contentType] =
    format === 'arrow'
      ? [barsToArrow(columns, shape), ARROW_TYPE]
      : [barsToMsgpack(columns, shape, metaOf(asked, columns.gaps, wholeFromMs)), MSGPACK_TYPE]
  return { status: 200, body, contentType, headers, reusable: true }
}

/** `wholeFromMs`: bars that start before it may lack trades, as their token had given way to another; 0: all are whole. */
function headersOf(
  { version, rowCount }: Pick<BarColumns, 'version' | 'rowCount'>,
  { format }: Asked,
  wholeFromMs: number,
): Record<string, string> {
  return {
    // One address answers in several formats.
    ETag: versionEtag(`${version}-${rowCount}-${format}`),
    'Cache-Control': CACHE_ONE_SECOND,
    'X-Result-Count': `${rowCount}`,
    ...(wholeFromMs > 0 && { 'X-Complete-From': `${wholeFromMs}` }),
  }
}

const metaOf = ({ query, clamped }: Asked, gaps: number, wholeFromMs: number) => ({
  mint: query.mint,
  tf: query.tf,
  limit: query.limit,
  fill: query.fill,
  gaps,
  ...(wholeFromMs > 0 && { completeFrom: wholeFromMs }),
  ...(clamped && { clamped: { limit: BARS_LIMIT_MAX } }),
})

/** `{ok,data,meta}` around the rows; the comma after the last one is left out. */
function barsJson(text: BarsText, meta: object): Buffer {
  return joined('{"ok":true,"data":[', text, `],"meta":${JSON.stringify(meta)}}`, text.rowCount > 0 ? 1 : 0)
}

/** Texts and rows in one buffer, without the last `cut` bytes of the rows. All of it is ASCII. */
function joined(before: string, { closed, open }: BarsText, after: string, cut: number): Buffer {
  const rowsEnd = before.length + closed.length + open.length - cut
  const body = Buffer.allocUnsafe(rowsEnd + after.length + cut)
  body.write(before, 'latin1')
  closed.copy(body, before.length)
  body.write(open, before.length + closed.length, 'latin1')
  body.write(after, rowsEnd, 'latin1')
  return body.subarray(0, rowsEnd + after.length)
}
