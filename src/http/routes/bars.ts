// Reads of a token's bars, encoded from the market's text (JSON, NDJSON) or its columns (Arrow, msgpack).
import { z } from 'zod'
import { jsonLine } from '../../lib/text/json-text.ts'
import type { Market } from '../../market/market.ts'
import type { BarColumns, BarsQuery, BarsText, TextForm, WithGaps } from '../../market/types.ts'
import { BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX, barsQuery, barsSchema } from '../../schema/api/bars.ts'
import { FORMATS } from '../../schema/api/parts.ts'
import { BAR_FILLS, BAR_SHAPES, type BarShape } from '../../schema/bar.ts'
import { type Gap, tellGap } from '../../schema/event.ts'
import type { Context, HttpAnswer } from '../context.ts'
import { linesOf } from '../docs/components.ts'
import { CLAMPED_HEADER, maybeText, maybeWhole, whole } from '../docs/headers.ts'
import type { OperationDocs } from '../docs/operation-docs.ts'
import { barsToArrow } from '../encode/bar-arrow.ts'
import { barsToMsgpack } from '../encode/bar-msgpack.ts'
import { ARROW_TYPE, MSGPACK_TYPE } from '../encode/items.ts'
import type { HttpNode } from '../node.ts'
import { CONTENT_TYPES, type Format, negotiateFormat } from '../request/negotiate.ts'
import {
  checkSpan,
  oneOf,
  readAll,
  requiredMint,
  timeframe,
  timeMs,
  wholeNumber,
} from '../request/parameters.ts'
import { hasCurrent, notModified, versionEtag } from '../response/etag.ts'
import type { PlainRoute } from '../route.ts'
import { unknownToken } from './market.ts'
import { CACHE_ONE_SECOND } from './market-list.ts'
import type { RouteParts } from './route-parts.ts'

export const OHLC_PATH = '/api/v1/ohlc'

const BARS_HEADERS = z.object({
  'X-Result-Count': whole('Bars of this answer'),
  'X-Complete-From': maybeWhole('Bars that start earlier may lack trades').meta({ unit: 'Unix ms' }),
  'X-Held-From': maybeWhole('Where older bars were asked for: from then on they are held').meta({
    unit: 'Unix ms',
  }),
  'X-Clamped': CLAMPED_HEADER,
  'X-Incomplete': maybeText(
    'Intervals in which trades may be missing, as `meta.incomplete` has them; without an end where they go on',
  ).meta({ examples: ['1772000000000/1772000060000;reason=disconnect;feed=pumpportal'] }),
})

const BARS_DOCS: OperationDocs = {
  operationId: 'getBars',
  tag: 'market',
  description: 'The most recent bars, ascending; the last one may still be forming.',
  query: barsQuery,
  answers: {
    200: {
      description: 'Bars',
      content: {
        'application/json': barsSchema,
        'application/x-ndjson': linesOf('BarLine', 'One bar a line'),
        [MSGPACK_TYPE]: barsSchema,
        [ARROW_TYPE]: null,
      },
      headers: BARS_HEADERS,
    },
  },
  errors: ['invalid_mint', 'token_not_found', 'not_acceptable'],
}

export const barRoute = (deps: Pick<RouteParts, 'market' | 'node'>): PlainRoute => ({
  method: 'GET',
  path: OHLC_PATH,
  access: 'read',
  answersMarket: true,
  summary: 'OHLC bars of a token',
  docs: BARS_DOCS,
  handle: (context) => bars(deps, context),
})

type BarsRequest = ReturnType<typeof parseRequest>

/** The parameters of a request. */
function parseRequest(node: HttpNode, context: Context) {
  const { query } = context
  const limits = { min: 1, max: BARS_LIMIT_MAX, otherwise: BARS_LIMIT_DEFAULT }
  const { format, shape, limit, ...wanted } = readAll({
    format: () => negotiateFormat(context, FORMATS),
    mint: () => requiredMint(query),
    tf: () => timeframe(query),
    limit: () => wholeNumber(query, 'limit', limits),
    fill: () => oneOf(query, 'fill', BAR_FILLS, 'none'),
    shape: () => oneOf(query, 'shape', BAR_SHAPES, 'short'),
    fromMs: () => timeMs(query, 'from'),
    toMs: () => timeMs(query, 'to'),
  })
  checkSpan(wanted.fromMs, wanted.toMs)
  return {
    query: { ...wanted, limit: limit.value },
    shape,
    format,
    clamped: limit.clamped,
    notes: context.notes,
    node,
  }
}

function bars({ market, node }: Pick<RouteParts, 'market' | 'node'>, context: Context): HttpAnswer {
  const request = parseRequest(node, context)
  const { format, query, shape } = request
  const isText = format === 'json' || format === 'ndjson'
  const form: TextForm = { shape, separator: format === 'json' ? ',' : '\n' }
  const found = isText ? market.barsText(query, form) : market.barColumns(query)
  if (found === null) throw unknownToken(query.mint)
  const from = beginningOf(market, query, found.rowCount)
  const headers = createHeaders(found, request, from)
  if (hasCurrent(context, headers.ETag)) return notModified(headers)
  const meta = () => createMeta(request, found, from)
  const body = 'open' in found ? textBody(found, format, meta) : columnsBody(found, format, shape, meta)
  return { status: 200, body, contentType: CONTENT_TYPES[format], headers, reusable: true }
}

/** The rows; as JSON with `{ok,data,meta}` around them, without the comma after the last one. */
function textBody(text: BarsText, format: Format, meta: () => object): Buffer {
  if (format === 'ndjson') return wrapRows('', text, '', 0)
  return wrapRows('{"ok":true,"data":[', text, `],"meta":${jsonLine(meta())}}`, text.rowCount > 0 ? 1 : 0)
}

const columnsBody = (columns: BarColumns, format: Format, shape: BarShape, meta: () => object): Buffer =>
  format === 'arrow' ? barsToArrow(columns, shape) : barsToMsgpack(columns, shape, meta())

/** Where the bars of a token begin. */
const beginningOf = (market: Market, query: BarsQuery, rowCount: number) => ({
  /** Bars that start before it may lack trades, as the token had been evicted; 0: all are whole. */
  wholeFromMs: market.barsWholeFromMs(query.mint),
  /** Bars that start before it are not held, though they were asked for; 0: there are none. */
  heldFromMs: market.barsHeldFromMs(query, rowCount),
})
type Beginning = ReturnType<typeof beginningOf>

function createHeaders(
  { version, rowCount, incomplete }: Pick<WithGaps<BarColumns>, 'version' | 'rowCount' | 'incomplete'>,
  { clamped, format, node, notes }: BarsRequest,
  { wholeFromMs, heldFromMs }: Beginning,
): Record<string, string> & { ETag: string } {
  return {
    // Several formats share one URL.
    ETag: versionEtag(node, notes, [version, rowCount, format, wholeFromMs, heldFromMs].join('-')),
    'Cache-Control': CACHE_ONE_SECOND,
    'X-Result-Count': `${rowCount}`,
    ...(wholeFromMs > 0 && { 'X-Complete-From': `${wholeFromMs}` }),
    ...(heldFromMs > 0 && { 'X-Held-From': `${heldFromMs}` }),
    ...(clamped && { 'X-Clamped': `limit=${BARS_LIMIT_MAX}` }),
    ...(incomplete.length > 0 && { 'X-Incomplete': incomplete.map(gapText).join(', ') }),
  }
}

/** `from/to;reason=…;feed=…`; without `to` it goes on. */
const gapText = ({ fromMs, toMs, reason, feed }: Gap): string =>
  `${fromMs}/${toMs ?? ''};reason=${reason}${feed === null ? '' : `;feed=${feed.replace(/[^\w.-]/g, '_')}`}`

const createMeta = (
  { query, clamped, notes }: BarsRequest,
  { gaps, incomplete }: Pick<WithGaps<BarColumns>, 'gaps' | 'incomplete'>,
  { wholeFromMs, heldFromMs }: Beginning,
) => ({
  mint: query.mint,
  tf: query.tf,
  limit: query.limit,
  fill: query.fill,
  gaps,
  ...(wholeFromMs > 0 && { completeFrom: wholeFromMs }),
  ...(heldFromMs > 0 && { heldFrom: heldFromMs }),
  ...(incomplete.length > 0 && { incomplete: incomplete.map(tellGap) }),
  ...(clamped && { clamped: { limit: BARS_LIMIT_MAX } }),
  ...notes,
})

/** Joins texts and rows, without the last `cut` bytes of the rows. All but `after` is ASCII. */
function wrapRows(before: string, { closed, open }: BarsText, after: string, cut: number): Buffer {
  const rowsEnd = before.length + closed.length + open.length - cut
  const end = rowsEnd + Buffer.byteLength(after)
  const body = Buffer.allocUnsafe(end + cut)
  body.write(before, 'latin1')
  closed.copy(body, before.length)
  body.write(open, before.length + closed.length, 'latin1')
  body.write(after, rowsEnd)
  return body.subarray(0, end)
}
