// The OpenAPI 3.1 document. Fields, bounds and vocabularies come from the schemas, paths and summaries from the routes.
import { z } from 'zod'
import { EXPORT_FORMATS } from '../../schema/api/queries.ts'
import { BAR_FILLS, BAR_SHAPES, barSchema, TIMEFRAMES } from '../../schema/bar.ts'
import { dataPointSchema } from '../../schema/datapoint.ts'
import { ERRORS } from '../../schema/errors.ts'
import { ingestRecordSchema } from '../../schema/event.ts'
import { marketItemSchema } from '../../schema/market-item.ts'
import { MSGPACK_MEDIA_TYPES, NDJSON_MEDIA_TYPES } from '../../schema/media-types.ts'
import { MINT_SHAPE } from '../../schema/mint.ts'
import { submissionSchema } from '../../schema/submission.ts'
import { ORDERS, SORTS, TABS } from '../../schema/vocabulary.ts'
import { NDJSON_TYPE } from '../context.ts'
import { ARROW_TYPE, MSGPACK_TYPE } from '../encode/items.ts'
import {
  BARS_LIMIT_DEFAULT,
  BARS_LIMIT_MAX,
  EXPORT_LIMIT_DEFAULT,
  EXPORT_LIMIT_MAX,
  LEADERBOARD_LIMIT_DEFAULT,
  LEADERBOARD_LIMIT_MAX,
  MARKET_LIMIT_DEFAULT,
  MARKET_LIMIT_MAX_JSON,
} from '../limits.ts'
import { FORMATS } from '../request/negotiate.ts'
import type { Route } from '../route.ts'
import { CONTENT_TYPES, EXPORT_PATH } from '../routes/export.ts'
import { INGEST_PATH } from '../stream/ingest-socket.ts'
import { STREAM_PATH } from '../stream/stream-socket.ts'

/** JSON Schema of what a client sends: before defaults and conversions. */
export const inputSchema = (schema: z.ZodType): object =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
const outputSchema = (schema: z.ZodType): object => z.toJSONSchema(schema, { unrepresentable: 'any' })

const parameter = (name: string, schema: object, required = false) => ({
  name,
  in: 'query',
  required,
  schema,
})
const wordSchema = (words: readonly string[], otherwise?: string) => ({
  type: 'string',
  enum: words,
  ...(otherwise && { default: otherwise }),
})
const mint = parameter('mint', { type: 'string', description: 'Mint address, base58', ...MINT_SHAPE }, true)
const limit = (otherwise: number, maximum: number) =>
  parameter('limit', { type: 'integer', minimum: 1, maximum, default: otherwise })

const PARAMETERS: Readonly<Record<string, object[]>> = {
  '/api/v1/market': [
    parameter('tab', wordSchema(TABS, 'all')),
    parameter('limit', {
      type: 'integer',
      minimum: 1,
      default: MARKET_LIMIT_DEFAULT,
      description: `Clamped to ${MARKET_LIMIT_MAX_JSON}, which meta.clamped tells; NDJSON may have all tokens`,
    }),
    parameter('offset', { type: 'integer', minimum: 0, default: 0 }),
    parameter('sort', wordSchema(SORTS)),
    parameter('order', wordSchema(ORDERS, 'desc')),
    parameter('cursor', {
      type: 'string',
      description: 'meta.nextCursor or X-Next-Cursor of the page before, valid for at least 30 s',
    }),
    parameter('follow', {
      type: 'integer',
      enum: [0, 1],
      description: '1: the rows, then each row that changes',
    }),
    parameter('since', {
      type: 'integer',
      description: 'With follow: only what changed after this seq; resync if that is no longer known',
    }),
    parameter('format', wordSchema(FORMATS, 'json')),
  ],
  '/api/v1/datapoint': [mint],
  '/api/v1/analysis': [limit(LEADERBOARD_LIMIT_DEFAULT, LEADERBOARD_LIMIT_MAX)],
  '/api/v1/agents/leaderboard': [limit(LEADERBOARD_LIMIT_DEFAULT, LEADERBOARD_LIMIT_MAX)],
  '/api/v1/analysis/submit': [
    {
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      schema: { type: 'string' },
      description: 'A repeated request with the same key and body gets the first answer',
    },
  ],
  '/api/v1/ohlc': [
    mint,
    parameter('tf', wordSchema(TIMEFRAMES, '1m')),
    limit(BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX),
    parameter('from', { type: 'integer', description: 'Unix ms' }),
    parameter('to', { type: 'integer', description: 'Unix ms' }),
    parameter('fill', wordSchema(BAR_FILLS, 'none')),
    parameter('shape', wordSchema(BAR_SHAPES, 'short')),
    parameter('format', wordSchema(FORMATS, 'json')),
  ],
  [EXPORT_PATH]: [
    parameter('format', wordSchema(EXPORT_FORMATS, 'parquet')),
    parameter('from', { type: 'integer', description: 'submitted_at from this time on, Unix ms' }),
    parameter('to', { type: 'integer', description: 'submitted_at before this time, Unix ms' }),
    parameter('since', {
      type: 'string',
      description:
        'X-Next-Since of the answer before, for the rows after it; or Unix ms, for rows known from then on',
    }),
    limit(EXPORT_LIMIT_DEFAULT, EXPORT_LIMIT_MAX),
  ],
}

const ok = (data: object) => ({
  type: 'object',
  required: ['ok', 'data'],
  properties: { ok: { const: true }, data },
})
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const figures = { type: 'object', additionalProperties: { type: 'number' } }
/** The result of a submission. */
const SUBMISSION_RESULT = {
  type: 'object',
  required: [
    'ok',
    'analysisId',
    'mint',
    'outcome',
    'validated',
    'xpEarned',
    'xpTotal',
    'xpBreakdown',
    'deviationPct',
  ],
  properties: {
    ok: { const: true },
    analysisId: { type: 'string' },
    mint: { type: 'string' },
    outcome: { enum: ['validated', 'unvalidated'] },
    validated: { type: 'boolean' },
    xpEarned: { type: 'number' },
    xpTotal: { type: 'number' },
    xpBreakdown: figures,
    deviationPct: { type: 'number', description: 'The largest of the deviations, percent' },
    worstField: { type: ['string', 'null'] },
    deviations: figures,
    snapshotSource: { enum: ['client', 'server'] },
    enriched: { type: 'object' },
    warning: { type: 'string', description: 'If the submission is unvalidated' },
    createdAt: { type: 'integer', description: 'Unix ms' },
    nextAllowedAt: { type: 'integer', description: 'Unix ms' },
  },
}
/** Routes that answer 201. */
const CREATING: readonly string[] = [
  '/api/v1/analysis/submit',
  '/api/v1/keys/register',
  '/api/v1/keys/rotate',
]
const ANSWERS: Readonly<Record<string, object>> = {
  '/api/v1/analysis/submit': SUBMISSION_RESULT,
  '/api/v1/market': ok({ type: 'array', items: ref('MarketItem') }),
  '/api/v1/datapoint': ok(ref('DataPoint')),
  '/api/v1/datapoint/batch': ok({ type: 'array', items: ref('DataPoint') }),
  '/api/v1/ohlc': ok({ type: 'array', items: ref('Bar') }),
}
/** Answers that are not JSON. */
const BINARY: Readonly<Record<string, { types: readonly string[]; headers: Record<string, object> }>> = {
  [EXPORT_PATH]: {
    types: Object.values(CONTENT_TYPES),
    headers: {
      'X-Result-Count': { description: 'Rows of this answer', schema: { type: 'integer' } },
      'X-Next-Since': {
        description: '`since` of the next request',
        schema: { type: 'string' },
      },
      'X-More': { description: 'Whether there are more rows now', schema: { type: 'boolean' } },
    },
  },
}
/** Reads with a choice of FORMATS. */
const FORMATTED: readonly string[] = ['/api/v1/market', '/api/v1/ohlc']
const OTHER_FORMATS = { [NDJSON_TYPE]: {}, [MSGPACK_TYPE]: {}, [ARROW_TYPE]: {} }
/** Reads without an ETag: the state of the moment, and streams. */
const UNVERSIONED: readonly string[] = ['/health', '/readyz', '/metrics', STREAM_PATH, EXPORT_PATH]
const ETAG = { ETag: { description: 'Its version, for If-None-Match', schema: { type: 'string' } } }
const contentByType = (types: readonly string[], schema: object) =>
  Object.fromEntries(types.map((type) => [type, { schema }]))
/** The body of a push. */
const PUSH_BODY = {
  ...contentByType(NDJSON_MEDIA_TYPES, {
    type: 'string',
    description: 'One IngestRecord per line, as JSON',
    contentMediaType: 'application/json',
    contentSchema: ref('IngestRecord'),
  }),
  ...contentByType(MSGPACK_MEDIA_TYPES, {
    type: 'array',
    items: ref('IngestRecord'),
    description: 'An array of records, or records one after another',
  }),
}
const BODIES: Readonly<Record<string, object>> = {
  '/api/v1/analysis/submit': ref('Submission'),
  '/api/v1/datapoint/batch': {
    type: 'object',
    properties: { mints: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 10 } },
    required: ['mints'],
  },
  '/api/v1/keys/register': {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 64 }, description: { type: 'string', maxLength: 500 } },
    required: ['name'],
  },
}

export function openApi(routes: readonly Route[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const operation = { [route.method.toLowerCase()]: describeOperation(route) }
    paths[route.path] = { ...paths[route.path], ...operation }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Mintlake', version, description: 'Token analysis submission and market data' },
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      },
      schemas: {
        Submission: inputSchema(submissionSchema),
        IngestRecord: inputSchema(ingestRecordSchema),
        DataPoint: outputSchema(dataPointSchema),
        MarketItem: outputSchema(marketItemSchema),
        Bar: outputSchema(barSchema),
        Problem: {
          type: 'object',
          required: ['ok', 'error', 'code', 'type', 'title', 'status', 'detail', 'instance', 'requestId'],
          properties: {
            ok: { const: false },
            error: { type: 'string' },
            code: { enum: Object.keys(ERRORS) },
            type: { type: 'string' },
            title: { type: 'string' },
            status: { type: 'integer' },
            detail: { type: 'string' },
            instance: { type: 'string' },
            requestId: { type: 'string' },
            errors: { type: 'array', items: { type: 'object' } },
          },
        },
      },
    },
  }
}

function describeOperation({ method, path, summary, access }: Route): object {
  const parameters = [
    ...(PARAMETERS[path] ?? []),
    ...(path.includes('{id}')
      ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
      : []),
  ]
  const schema = BODIES[path]
  const body = path === INGEST_PATH ? PUSH_BODY : schema && contentByType(['application/json'], schema)
  const binary = BINARY[path]
  const isVersioned = method === 'GET' && !UNVERSIONED.includes(path)
  const success = CREATING.includes(path) ? '201' : '200'
  return {
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(method === 'POST' && body && { requestBody: { required: true, content: body } }),
    ...(access !== 'open' && access !== 'read' && { security: [{ bearer: [] }, { apiKey: [] }] }),
    responses: {
      [success]: {
        description: summary,
        ...(binary && { headers: binary.headers }),
        ...(isVersioned && { headers: ETAG }),
        content: binary
          ? Object.fromEntries(binary.types.map((type) => [type, {}]))
          : {
              'application/json': { schema: ANSWERS[path] ?? { type: 'object' } },
              ...(FORMATTED.includes(path) && OTHER_FORMATS),
            },
      },
      ...(isVersioned && { 304: { description: 'If-None-Match names the current version', headers: ETAG } }),
      default: {
        description: 'Any error',
        content: { 'application/problem+json': { schema: ref('Problem') } },
      },
    },
  }
}
