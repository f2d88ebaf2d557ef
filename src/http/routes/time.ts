import { timeAnswerSchema, timeQuery } from '../../schema/api/market.ts'
import { okData } from '../context.ts'
import { jsonDocs } from '../docs/operation-docs.ts'
import { timeMs } from '../request/parameters.ts'
import { parseBearer } from '../request/request-head.ts'
import type { PlainRoute } from '../route.ts'
import type { RouteParts } from './route-parts.ts'

/** Market time, now or once it has come as far as a client wants to wait for. */
export const timeRoute = (deps: RouteParts): PlainRoute => ({
  method: 'GET',
  path: '/api/v1/time',
  access: 'open',
  summary: 'Market time; until=T answers when it has come',
  docs: jsonDocs('getTime', 'market', 'Market time', timeAnswerSchema, {
    description:
      'The time up to which the market has gone. It follows the clock, except in a replay, where every answer tells it in X-Market-Time. ' +
      'Whoever wants to wait until a time asks with `until`, again and again where that is far: one request waits 10 seconds at most.',
    query: timeQuery,
    unversioned: true,
  }),
  handle: async ({ query, headers: sent, onGone }) => {
    const untilMs = timeMs(query, 'until')
    if (untilMs !== null) await deps.timeWaits.until(untilMs, onGone, parseBearer(sent.authorization))
    return { ...okData({ marketTime: deps.market.timeMs }), headers: { 'Cache-Control': 'no-store' } }
  },
})
