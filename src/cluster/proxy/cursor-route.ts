// The market list where other nodes have frozen it: the page behind a cursor is made by a node that keeps the list.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context, HttpAnswer } from '../../http/context.ts'
import { CURSOR_TTL_MS } from '../../http/limits.ts'
import { flag } from '../../http/request/parameters.ts'
import { type Cursors, cursorExpired } from '../../http/response/cursors.ts'
import type { PlainRoute, Route } from '../../http/route.ts'
import { MARKET_PATH } from '../../http/routes/market.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { BusNames } from '../bus.ts'
import { UnansweredError } from './errors.ts'
import { FIND_MS_MAX, FIND_PAUSE_MS, LIST_ANSWER_MS_MAX, LIST_MS_MAX, SILENT_LISTS_MAX } from './limits.ts'
import type { PassedAnswer, PassedRequest } from './node-http.ts'
import { RATE_LIMIT_HEADER, requestOf, sentOn } from './passed-route.ts'
import { discard, type PassingOn } from './passing-on.ts'

/** The way to other nodes. */
export interface Elsewhere {
  passingOn: PassingOn
  names: BusNames
}

/**
 * The route, or for the market list one that has other nodes answer for lists that they keep and this one does not.
 * @param elsewhere null while the bus was not reached
 * @param now monotonic clock, ms
 */
export function withCursors(
  route: Route,
  cursors: Pick<Cursors, 'missing'>,
  elsewhere: () => Elsewhere | null,
  now = () => performance.now(),
): Route {
  if (route.path !== MARKET_PATH || route.access !== 'read') return route
  const lists = new ListsElsewhere(elsewhere, now)
  const handle: PlainRoute['handle'] = (context) => {
    const cursor = context.query.get('cursor')
    // A stream reads no cursor. What another node has passed on is answered here or not at all.
    if (!cursor || flag(context.query, 'follow') || context.isRelayed()) return route.handle(context)
    const list = cursors.missing(cursor)
    return list === null ? route.handle(context) : lists.answer(list, context)
  }
  return { ...route, handle }
}

/** Has other nodes answer requests with cursors of lists that are not kept here. */
class ListsElsewhere {
  readonly #elsewhere: () => Elsewhere | null
  readonly #now: () => number
  /** Since when nobody answers for a list that may be kept. */
  readonly #silentSince = new BoundedMap<string, number>({ entriesMax: SILENT_LISTS_MAX })

  constructor(elsewhere: () => Elsewhere | null, now: () => number) {
    this.#elsewhere = elsewhere
    this.#now = now
  }

  /** @throws ServiceError `cursor_expired`: no node keeps the list; `warming_up`: none that may keep it answers at present. */
  async answer(list: string, context: Context): Promise<HttpAnswer> {
    // The address of the client cannot be read after a wait.
    const request = requestOf(context, '', 'read', LIST_ANSWER_MS_MAX)
    const untilMs = performance.now() + LIST_MS_MAX
    let isAbsent = false
    while (performance.now() < untilMs) {
      const elsewhere = this.#elsewhere()
      if (elsewhere === null) break
      const asked = await ask(list, request, elsewhere, untilMs)
      if (asked === 'disconnected') break
      if (typeof asked === 'object') {
        this.#silentSince.delete(list)
        return sentOn(asked, RATE_LIMIT_HEADER)
      }
      if (asked === 'expired') continue
      // That a node keeps the list may be known on the bus a moment after the client has come.
      if (asked === 'absent' && isAbsent) throw cursorExpired()
      isAbsent = asked === 'absent'
      await sleep(FIND_PAUSE_MS)
    }
    throw this.#silent(list)
  }

  /** The node may go on in a moment, with the same list. A list that it does not answer for any longer would have expired. */
  #silent(list: string): ServiceError {
    const nowMs = this.#now()
    const sinceMs = this.#silentSince.get(list) ?? nowMs
    if (nowMs - sinceMs > CURSOR_TTL_MS) return cursorExpired()
    this.#silentSince.set(list, sinceMs)
    const sentence = 'The node that keeps the list of this cursor does not answer: try again, or elsewhere.'
    return new ServiceError('warming_up', sentence, { retryAfterMs: 1_000 }, { 'Retry-After': '1' })
  }
}

/**
 * Has a node that keeps the list answer. `absent`: none keeps it. `expired`: one did until now, and others may still. `silent`: there was
 * no reply in time.
 */
async function ask(
  list: string,
  request: PassedRequest,
  { passingOn, names }: Elsewhere,
  untilMs: number,
): Promise<PassedAnswer | 'absent' | 'expired' | 'silent' | 'disconnected'> {
  try {
    const msLeft = Math.max(1, untilMs - performance.now())
    const node = await passingOn.find(names.list(list), Math.min(FIND_MS_MAX, msLeft))
    if (node === null) return 'absent'
    const answer = await passingOn.toNode(node, request)
    if (answer.status !== 410) return answer
    discard(answer)
    return 'expired'
  } catch (error) {
    if (!(error instanceof UnansweredError)) throw error
    return error.reason === 'disconnected' ? 'disconnected' : 'silent'
  }
}
