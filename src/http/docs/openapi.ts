// In: the route table and the schemas. Out: the OpenAPI 3.1 document. Nothing of it is written twice: fields, bounds
// and vocabularies come from the schemas, paths and summaries from the routes.
import { z } from 'zod'
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
import { CONTENT_TYPES, EXPORT_PATH, EXPORT_WORDS } from '../routes/export.ts'
import { INGEST_PATH } from '../stream/ingest-socket.ts'
import { STREAM_PATH } from '../stream/stream-socket.ts'

/** JSON Schema of what a client sends. */
export const inputSchema = (schema: z.ZodType): object =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
const outputSchema = (schema: z.ZodType): object => z.toJSONSchema(schema, { unrepresentable: 'any' })

const parameter = (name: string, schema: object, required = false) => ({
  name,
  in: 'query',
  required,
  schema,
})
const oneOf = (words: readonly string[], otherwise?: string) => ({
  type: 'string',
  enum: words,
  ...(otherwise && { default: otherwise }),
})
const mint = parameter('mint', { type: 'string', description: 'Mint address, base58', ...MINT_SHAPE }, true)
const limit = (otherwise: number, maximum: number) =>
  parameter('limit', { type: 'integer', minimum: 1, maximum, default: otherwise })

const PARAMETERS: Readonly<Record<string, object[]>> = {
  '/api/v1/market': [
    parameter('tab', oneOf(TABS, 'all')),
    parameter('limit', {
      type: 'integer',
      minimum: 1,
      default: MARKET_LIMIT_DEFAULT,
      description: `More is cut to ${MARKET_LIMIT_MAX_JSON}, as meta.clamped says; NDJSON goes up to every token`,
    }),
    parameter('offset', { type: 'integer', minimum: 0, default: 0 }),
    parameter('sort', oneOf(SORTS)),
    parameter('order', oneOf(ORDERS, 'desc')),
    parameter('cursor', {
      type: 'string',
      description: 'meta.nextCursor or X-Next-Cursor of the page before, good for at least 30 s',
    }),
    parameter('follow', {
      type: 'integer',
      enum: [0, 1],
      description: '1: first the rows, then each changed row',
    }),
    parameter('since', {
      type: 'integer',
      description: 'With follow: only what changed after this seq; one that cannot be resumed gets resync',
    }),
    parameter('format', oneOf(FORMATS, 'json')),
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
      description: 'The same key and body again get the first answer again',
    },
  ],
  '/api/v1/ohlc': [
    mint,
    parameter('tf', oneOf(TIMEFRAMES, '1m')),
    limit(BARS_LIMIT_DEFAULT, BARS_LIMIT_MAX),
    parameter('from', { type: 'integer', description: 'Unix ms' }),
    parameter('to', { type: 'integer', description: 'Unix ms' }),
    parameter('fill', oneOf(BAR_FILLS, 'none')),
    parameter('shape', oneOf(BAR_SHAPES, 'short')),
    parameter('format', oneOf(FORMATS, 'json')),
  ],
  [EXPORT_PATH]: [
    parameter('format', oneOf(EXPORT_WORDS, 'parquet')),
    parameter('from', { type: 'integer', description: 'submitted_at from this time on, Unix ms' }),
    parameter('to', { type: 'integer', description: 'submitted_at before this time, Unix ms' }),
    parameter('since', {
      type: 'string',
      description:
        'X-Next-Since of the answer before: the rows after it; or Unix ms: rows known from then on',
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
/** What became of a submission. */
const VERDICT = {
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
    deviationPct: { type: 'number', description: 'The largest of deviations, percent' },
    worstField: { type: ['string', 'null'] },
    deviations: figures,
    snapshotSource: { enum: ['client', 'server'] },
    enriched: { type: 'object' },
    warning: { type: 'string', description: 'Where it is unvalidated' },
    createdAt: { type: 'integer', description: 'Unix ms' },
    nextAllowedAt: { type: 'integer', description: 'Unix ms' },
  },
}
const CREATING: readonly string[] = [
  '/api/v1/analysis/submit',
  '/api/v1/keys/register',
  '/api/v1/keys/rotate',
]
const ANSWERS: Readonly<Record<string, object>> = {
  '/api/v1/analysis/submit': VERDICT,
  '/api/v1/market': ok({ type: 'array', items: ref('MarketItem') }),
  '/api/v1/datapoint': ok(ref('DataPoint')),
  '/api/v1/datapoint/batch': ok({ type: 'array', items: ref('DataPoint') }),
  '/api/v1/ohlc': ok({ type: 'array', items: ref('Bar') }),
}
/** Of answers that are no JSON. */
const BINARY: Readonly<Record<string, { types: readonly string[]; headers: Record<string, object> }>> = {
  [EXPORT_PATH]: {
    types: Object.values(CONTENT_TYPES),
    headers: {
      'X-Result-Count': { description: 'Rows of this answer', schema: { type: 'integer' } },
      'X-Next-Since': {
        description: '`since` of the request that goes on from here',
        schema: { type: 'string' },
      },
      'X-More': { description: 'Whether there are more rows now', schema: { type: 'boolean' } },
    },
  },
}
/** Reads that answer in any of FORMATS. */
const FORMATTED: readonly string[] = ['/api/v1/market', '/api/v1/ohlc']
const OTHER_FORMATS = { [NDJSON_TYPE]: {}, [MSGPACK_TYPE]: {}, [ARROW_TYPE]: {} }
/** Reads of what is true of the moment only, and streams: they have no version. */
const UNVERSIONED: readonly string[] = ['/health', '/readyz', '/metrics', STREAM_PATH, EXPORT_PATH]
const ETAG = { ETag: { description: 'Its version, for If-None-Match', schema: { type: 'string' } } }
const contentOf = (types: readonly string[], schema: object) =>
  Object.fromEntries(types.map((type) => [type, { schema }]))
/** What a push may be. */
const PUSHED = {
  ...contentOf(NDJSON_MEDIA_TYPES, {
    type: 'string',
    description: 'One IngestRecord a line, as JSON',
    contentMediaType: 'application/json',
    contentSchema: ref('IngestRecord'),
  }),
  ...contentOf(MSGPACK_MEDIA_TYPES, {
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
    paths[route.path] ??= {}
    paths[route.path][route.method.toLowerCase()] = operation(route)
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

function operation({ method, path, summary, access }: Route): object {
  const parameters = [
    ...(PARAMETERS[path] ?? []),
    ...(path.includes('{id}')
      ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
      : []),
  ]
  const schema = BODIES[path]
  const body = path === INGEST_PATH ? PUSHED : schema && contentOf(['application/json'], schema)
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
      ...(isVersioned && { 304: { description: 'If-None-Match names its version', headers: ETAG } }),
      default: {
        description: 'Any error',
        content: { 'application/problem+json': { schema: ref('Problem') } },
      },
    },
  }
}
