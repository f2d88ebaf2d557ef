import { z } from 'zod'
import { SingleFlight } from '../../lib/single-flight.ts'
import { ingestAnswerSchema } from '../../schema/api/ingest.ts'
import { healthSchema, historyQuery, historySchema, readySchema } from '../../schema/api/status.ts'
import { TIME_MS_MAX } from '../../schema/bounds.ts'
import { ServiceError } from '../../schema/errors.ts'
import { INGEST_BODY_BYTES_MAX, MSGPACK_MEDIA_TYPES, NDJSON_MEDIA_TYPES } from '../../schema/media-types.ts'
import { ok, okData } from '../context.ts'
import { ingestRecord, linesOf } from '../docs/components.ts'
import { type BodyDocs, jsonDocs, type OperationDocs, textType } from '../docs/operation-docs.ts'
import { INGEST_BODY_MS_MAX, METRICS_TTL_MS } from '../limits.ts'
import { wholeNumber } from '../request/parameters.ts'
import type { Route } from '../route.ts'
import { INGEST_PATH } from '../stream/ingest-socket.ts'
import { adminRoutes } from './admin.ts'
import { OHLC_PATH } from './bars.ts'
import { DATAPOINT_PATH, MARKET_PATH } from './market.ts'
import type { RouteParts } from './route-parts.ts'

const NO_STORE = { 'Cache-Control': 'no-store' }

/** The state of the server, for operators and load balancers. */
function statusRoutes(deps: RouteParts): Route[] {
  const readMetrics = async () => {
    await deps.health.refreshStore()
    return deps.metrics.text()
  }
  const metricsText = new SingleFlight(readMetrics, METRICS_TTL_MS, () => deps.nowMs())
  return [
    {
      method: 'GET',
      path: '/health',
      access: 'open',
      summary: 'Whether the server lives, and what feeds it',
      docs: jsonDocs('getHealth', 'status', 'The state of the server', healthSchema, { unversioned: true }),
      handle: async () => ({ ...ok(await deps.health.report()), headers: NO_STORE }),
    },
    {
      method: 'GET',
      path: '/health/history',
      access: 'open',
      summary: 'What the server did in the last hour, sampled',
      docs: jsonDocs('getHistory', 'status', 'Series, each with its limit', historySchema, {
        description:
          'Samples of a few metrics of the last hour, kept in memory; after a restart they begin anew.',
        query: historyQuery,
        unversioned: true,
      }),
      handle: ({ query }) => {
        const { value } = wholeNumber(query, 'since', { min: 0, max: TIME_MS_MAX, otherwise: 0 })
        return { ...okData(deps.history.since(value)), headers: NO_STORE }
      },
    },
    {
      method: 'GET',
      path: '/readyz',
      access: 'open',
      summary: 'Whether the server is ready to serve',
      docs: jsonDocs('getReadiness', 'status', 'The server is ready', readySchema, {
        errors: ['warming_up', 'draining'],
        unversioned: true,
      }),
      handle: () => {
        const [reason, feeds] = [deps.health.notReady(), deps.health.feedStates()]
        if (reason !== null)
          throw new ServiceError(reason.code, reason.sentence, { feeds }, { 'Retry-After': '1' })
        return { ...ok({ ready: true, feeds }), headers: NO_STORE }
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      access: 'open',
      summary: 'Metrics as Prometheus text',
      docs: {
        operationId: 'getMetrics',
        tag: 'status',
        answers: { 200: { description: 'Prometheus text', content: textType('text/plain') } },
        unversioned: true,
      },
      handle: async () => {
        const body = Buffer.from(await metricsText.get())
        return { status: 200, headers: NO_STORE, body, contentType: deps.metrics.contentType }
      },
    },
  ]
}

const byType = (types: readonly string[], schema: z.ZodType): BodyDocs =>
  Object.fromEntries(types.map((type) => [type, schema]))

const PUSH_DOCS: OperationDocs = jsonDocs(
  'pushEvents',
  'feeds',
  'What became of the records',
  ingestAnswerSchema,
  {
    description:
      'A record that is refused does not affect its neighbours. What is accepted is in the market at once and on the disk within a ' +
      'second: a killed server loses as a rule what it took in the last 100 ms, a power cut that of the last second, which the next start ' +
      'tells as a gap. The same address takes a WebSocket: each message is one record ' +
      'or an array of records, JSON as text or msgpack as bytes, and is answered with the same object. Whoever has missed data ' +
      'says so with `disconnect`, and `reconnect` when it has data again: silence, or the end of a WebSocket, tells nothing. Who can ' +
      'send what it has missed says until when with `healUntilMs` of the `disconnect`; sends it, oldest first, with the times of then; ' +
      'tells in `missing` of another `disconnect` what it knows by then it cannot; ' +
      'and says `reconnect` with `healed: true`, and in `missing` what it could not send: then nothing else is a gap.',
    body: {
      ...byType(NDJSON_MEDIA_TYPES, linesOf('IngestRecord', 'One record a line, as JSON')),
      ...byType(
        MSGPACK_MEDIA_TYPES,
        z.array(ingestRecord).meta({ description: 'An array of records, or records one after another' }),
      ),
    },
    errors: ['validation_failed', 'invalid_json'],
  },
)

/** Everything that feeds, operators and machines ask of the server: pushes, its state, administration. */
export const operationRoutes = (deps: RouteParts): Route[] => [
  {
    method: 'POST',
    path: INGEST_PATH,
    access: 'feed',
    summary: 'Push market events, NDJSON or msgpack',
    docs: PUSH_DOCS,
    changes: [DATAPOINT_PATH, OHLC_PATH],
    changesDear: [MARKET_PATH],
    bodyBytesMax: INGEST_BODY_BYTES_MAX,
    bodyMsMax: INGEST_BODY_MS_MAX,
    bodyTypes: [...NDJSON_MEDIA_TYPES, ...MSGPACK_MEDIA_TYPES],
    handle: async ({ body, headers }) => ok(await deps.push.ingest(body, headers.contentType)),
  },
  ...statusRoutes(deps),
  ...adminRoutes(deps),
]
