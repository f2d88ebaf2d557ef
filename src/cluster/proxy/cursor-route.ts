// The market list where other nodes have frozen it: the page behind a cursor is made by a node that keeps the list.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context, HttpAnswer } from '../../http/context.ts'
import { CURSOR_TTL_MS } from '../../http/limits.ts'
import { flag } from '../../http/request/parameters.ts'
import { type Cursors, cursorExpired } from '../../http/response/cursors.ts'
import { tryAgain } from '../../http/response/rate-limit-headers.ts'
import type { PlainRoute, Route } from '../../http/route.ts'
import { MARKET_PATH } from '../../http/routes/market.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { UnansweredError } from './errors.ts'
import { FIND_MS_MAX, FIND_PAUSE_MS, LIST_ANSWER_MS_MAX, LIST_MS_MAX, SILENT_LISTS_MAX } from './limits.ts'
import { RATE_LIMIT_HEADER, requestOf, sentOn } from './passed-route.ts'
import { discard, type PassingOn } from './passing-on.ts'

/**
 * The route, or for the market list one that has other nodes answer for lists that they keep and this one does not.
 * @param elsewhere null while the bus was not reached
 * @param now monotonic clock, ms
 */
export function withCursors(
  route: Route,
  cursors: Pick<Cursors, 'missing'>,
  elsewhere: () => PassingOn | null,
  now = () => performance.now(),
): Route {
  if (route.path !== MARKET_PATH || route.access !== 'read') return route
  /** Since when nobody answers for a list that may be kept. */
  const silentSince = new BoundedMap<string, number>({ entriesMax: SILENT_LISTS_MAX })
  const answerElsewhere = async (list: string, context: Context): Promise<HttpAnswer> => {
    const answer = await askKeepers(list, context, elsewhere)
    if (answer === null) {
      const nowMs = now()
      const sinceMs = silentSince.get(list) ?? nowMs
      // The node may go on in a moment, with the same list. One that it does not answer for any longer would have expired.
      if (nowMs - sinceMs > CURSOR_TTL_MS) throw cursorExpired()
      silentSince.set(list, sinceMs)
      const sentence = 'The node that keeps the list of this cursor does not answer: try again, or elsewhere.'
      throw tryAgain('warming_up', sentence)
    }
    silentSince.delete(list)
    return answer
  }
  const handle: PlainRoute['handle'] = (context) => {
    const cursor = context.query.get('cursor')
    // A stream reads no cursor. What another node has passed on is answered here or not at all.
    if (!cursor || flag(context.query, 'follow') || context.isRelayed()) return route.handle(context)
    const list = cursors.missing(cursor)
    return list === null ? route.handle(context) : answerElsewhere(list, context)
  }
  return { ...route, handle }
}

/** @returns null: no node that may keep the list answers at present. @throws ServiceError `cursor_expired`: no node keeps it */
async function askKeepers(
  list: string,
  context: Context,
  elsewhere: () => PassingOn | null,
): Promise<HttpAnswer | null> {
  // The address of the client cannot be read after a wait.
  const request = requestOf(context, '', 'read', LIST_ANSWER_MS_MAX)
  const untilMs = performance.now() + LIST_MS_MAX
  let isAbsent = false
  for (; performance.now() < untilMs; await sleep(FIND_PAUSE_MS)) {
    try {
      const findMs = Math.max(1, Math.min(FIND_MS_MAX, untilMs - performance.now()))
      const answer = await elsewhere()?.toKeeper(list, request, findMs)
      if (answer === undefined) return null
      // That a node keeps the list may be known on the bus a moment after the client has come.
      if (answer === null && isAbsent) throw cursorExpired()
      isAbsent = answer === null
      // Others may still keep it.
      if (answer?.status === 410) discard(answer)
      else if (answer !== null) return sentOn(answer, RATE_LIMIT_HEADER)
    } catch (error) {
      if (!(error instanceof UnansweredError)) throw error
      if (error.reason === 'disconnected') return null
      isAbsent = false
    }
  }
  return null
}
