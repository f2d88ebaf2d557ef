import { healthSchema, historyQuery, historySchema, readySchema } from '../../schema/api/status.ts'
import { TIME_MS_MAX } from '../../schema/bounds.ts'
import { ServiceError } from '../../schema/errors.ts'
import { jsonDocs, textType } from '../docs/operation-docs.ts'
import { wholeNumber } from '../request/parameters.ts'
import type { Route } from '../route.ts'
import type { RouteParts } from './route-parts.ts'

const NO_STORE = { 'Cache-Control': 'no-store' }

/** The state of the server, for operators and load balancers. */
export function statusRoutes(deps: RouteParts): Route[] {
  return [
    {
      method: 'GET',
      path: '/health',
      access: 'open',
      summary: 'Whether the server lives, and what feeds it',
      docs: jsonDocs('getHealth', 'status', 'The state of the server', healthSchema, { unversioned: true }),
      handle: async () => ({
        status: 200,
        headers: NO_STORE,
        body: { ok: true, ...(await deps.health.report()) },
      }),
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
        return { status: 200, headers: NO_STORE, body: { ok: true, data: deps.history.since(value) } }
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
        return { status: 200, headers: NO_STORE, body: { ok: true, ready: true, feeds } }
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
        const { text, contentType } = await deps.metrics()
        return { status: 200, headers: NO_STORE, body: Buffer.from(text), contentType }
      },
    },
  ]
}
