import { jsonLine } from '../../lib/text/json-text.ts'
import type { Market } from '../../market/market.ts'
import type { DataPointText } from '../../market/types.ts'
import {
  BATCH_MINTS_MAX,
  batchAnswerSchema,
  batchQuery,
  batchSchema,
  dataPointAnswerSchema,
  datapointQuery,
  totalsAnswerSchema,
} from '../../schema/api/market.ts'
import type { DataPoint } from '../../schema/datapoint.ts'
import { ServiceError } from '../../schema/errors.ts'
import { type Context, type HttpAnswer, JSON_TYPE, type Notes, okData } from '../context.ts'
import { json, jsonDocs } from '../docs/operation-docs.ts'
import { datapointFields, pick } from '../request/fields.ts'
import { negotiateFormat } from '../request/negotiate.ts'
import { checkMint, requiredMint } from '../request/parameters.ts'
import { hasCurrent, notModified, versionEtag } from '../response/etag.ts'
import { LargePages } from '../response/large-pages.ts'
import { hasNotes } from '../response/notes.ts'
import type { PlainRoute } from '../route.ts'
import { SharedGzip } from '../stream/gzip-stream.ts'
import { streamRoute } from '../stream/stream-socket.ts'
import { jsonObject } from './agents.ts'
import { answerList, CACHE_ONE_SECOND, LIST_DOCS, type MarketParts } from './market-list.ts'

export const MARKET_PATH = '/api/v1/market'
export const DATAPOINT_PATH = '/api/v1/datapoint'
const TOTALS_PATH = '/api/v1/market/totals'

/** Reads of the market list, of DataPoints, and the WebSocket that streams both. */
export function marketRoutes(deps: MarketParts): PlainRoute[] {
  const { market } = deps
  const listParts = { ...deps, largePages: new LargePages(), sharedGzip: new SharedGzip() }
  return [
    {
      method: 'GET',
      path: MARKET_PATH,
      access: 'read',
      answersMarket: true,
      summary: 'The market list; follow=1 streams its changes',
      docs: LIST_DOCS,
      handle: (context) => answerList(listParts, context),
    },
    {
      method: 'GET',
      path: TOTALS_PATH,
      access: 'read',
      answersMarket: true,
      summary: 'The whole market in a few numbers',
      docs: jsonDocs('getMarketTotals', 'market', 'The totals', totalsAnswerSchema, {
        description:
          'Sums over all tokens that the market holds, at most a second old. Of more than 2048 tokens whose trades grow a day old at once, the others follow within minutes.',
      }),
      handle: () => answerTotals(market),
    },
    {
      method: 'GET',
      path: DATAPOINT_PATH,
      access: 'read',
      answersMarket: true,
      summary: 'A token’s snapshot, the DataPoint',
      docs: jsonDocs('getDataPoint', 'market', 'The DataPoint', dataPointAnswerSchema, {
        description:
          'What the market says of a token now. A submission may send its compared fields back as `snapshot`, with `snapshotAt`.',
        query: datapointQuery,
        errors: ['invalid_mint', 'token_not_found', 'not_acceptable'],
      }),
      handle: (context) => answerDatapoint(deps, context),
    },
    {
      method: 'POST',
      path: '/api/v1/datapoint/batch',
      access: 'read',
      answersMarket: true,
      summary: 'Up to ten DataPoints',
      docs: jsonDocs(
        'getDataPoints',
        'market',
        'The DataPoints that are known, each mint once',
        batchAnswerSchema,
        {
          query: batchQuery,
          body: json(batchSchema),
          errors: ['invalid_mint'],
        },
      ),
      handle: (context) => answerBatch(deps, context),
    },
    streamRoute(deps.broadcaster),
  ]
}

/** Taken at most once a second, for all who ask. */
function answerTotals(market: Market): HttpAnswer {
  const { tokens, launches24h, volume24hUsd, buys24h, sells24h } = market.totals()
  const data = {
    tokens,
    launches_24h: launches24h,
    volume_24h_usd: volume24hUsd,
    trades_24h: buys24h + sells24h,
    buys_24h: buys24h,
    sells_24h: sells24h,
    ts: market.timeMs,
  }
  return { ...okData(data), headers: { 'Cache-Control': CACHE_ONE_SECOND } }
}

export const unknownToken = (mint: string) =>
  new ServiceError(
    'token_not_found',
    `No DataPoint is known for ${mint}: GET /api/v1/market?search= finds tokens by name, symbol or the beginning of their mint.`,
  )

function answerDatapoint({ market, node, onDataPoint }: MarketParts, context: Context): HttpAnswer {
  negotiateFormat(context, ['json'])
  const mint = requiredMint(context.query)
  const fields = datapointFields(context.query)
  const found = market.datapointJson(mint)
  if (found === null) throw unknownToken(mint)
  onDataPoint?.(mint)
  const version = fields === null ? found.version : `${found.version}-${fields.join('.')}`
  const etag = versionEtag(node, context.notes, version)
  const headers = { ETag: etag, 'Cache-Control': CACHE_ONE_SECOND }
  if (hasCurrent(context, etag)) return notModified(headers)
  return {
    status: 200,
    body: answerBody(found, fields, context.notes),
    contentType: JSON_TYPE,
    headers,
    reusable: true,
  }
}

function answerBody(
  { json, answer }: DataPointText,
  fields: readonly (keyof DataPoint)[] | null,
  notes: Notes,
): Buffer {
  if (fields === null && !hasNotes(notes)) return answer
  const point: DataPoint = JSON.parse(json.toString())
  const data = fields === null ? point : pick(point, fields)
  return Buffer.from(jsonLine({ ok: true, data, ...(hasNotes(notes) && { meta: notes }) }))
}

function answerBatch({ market, onDataPoint }: MarketParts, context: Context): HttpAnswer {
  const fields = datapointFields(context.query)
  const { mints } = jsonObject(context)
  if (!Array.isArray(mints) || mints.length === 0 || mints.length > BATCH_MINTS_MAX) {
    const message = `must be an array of 1 to ${BATCH_MINTS_MAX} mints`
    throw new ServiceError('validation_failed', `mints ${message}`, {
      errors: [{ pointer: '/mints', code: 'invalid_type', message }],
    })
  }
  const unique = [...new Set(mints.map((mint, index) => checkMint(mint, `/mints/${index}`)))]
  const found = unique.flatMap((mint) => market.datapoint(mint) ?? [])
  for (const { mint } of found) onDataPoint?.(mint)
  const data = fields === null ? found : found.map((point) => pick(point, fields))
  return okData(data, { meta: { notFound: unique.filter((mint) => !market.has(mint)) } })
}
