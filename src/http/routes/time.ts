import type { MarketEngine } from '../../market/types.ts'
import { TIME_DOCS } from '../docs/market-docs.ts'
import { timeMs } from '../request/parameters.ts'
import type { PlainRoute } from '../route.ts'
import type { TimeWaits } from '../time-waits.ts'

export interface TimeDeps {
  market: MarketEngine
  timeWaits: TimeWaits
}

/** Market time, now or once it has come as far as a client wants to wait for. */
export const timeRoute = (deps: TimeDeps): PlainRoute => ({
  method: 'GET',
  path: '/api/v1/time',
  access: 'open',
  summary: 'Market time; until=T answers when it has come',
  docs: TIME_DOCS,
  handle: async ({ query, onGone }) => {
    const untilMs = timeMs(query, 'until')
    if (untilMs !== null) await deps.timeWaits.until(untilMs, onGone)
    const headers = { 'Cache-Control': 'no-store' }
    return { status: 200, headers, body: { ok: true, data: { marketTime: deps.market.timeMs } } }
  },
})
