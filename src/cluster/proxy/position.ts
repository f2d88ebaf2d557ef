// What a node must have applied to know all that a request has changed: the writer says it in a header of its answer.
import type { HttpAnswer } from '../../http/context.ts'
import { isWrite, type Route } from '../../http/route.ts'

/** A position of the writer. */
export interface Position {
  /** Its last event. */
  eventNo: number
  /** Revision of the accounts on the bus. */
  accounts: number
}

export const POSITION_HEADER = 'X-Mintlake-Position'

/** @param headers of an answer, by name in lower case. @returns null: nothing was changed */
export function positionOf(headers: Readonly<Record<string, string>>): Position | null {
  const [, eventNo, accounts] = /^(\d+) (\d+)$/.exec(headers[POSITION_HEADER.toLowerCase()] ?? '') ?? []
  return eventNo === undefined ? null : { eventNo: Number(eventNo), accounts: Number(accounts) }
}

/** The route, which tells a node that has passed a request on what it has changed. */
export function withPosition(route: Route, position: () => Promise<Position>): Route {
  if (!isWrite(route)) return route
  const handle = async (...[context]: Parameters<typeof route.handle>): Promise<HttpAnswer> => {
    const answer = await (route.handle as (asked: typeof context) => HttpAnswer | Promise<HttpAnswer>)(
      context,
    )
    if (!context.isRelayed() || answer.status >= 300) return answer
    const { eventNo, accounts } = await position()
    return { ...answer, headers: { ...answer.headers, [POSITION_HEADER]: `${eventNo} ${accounts}` } }
  }
  return { ...route, handle } as Route
}
