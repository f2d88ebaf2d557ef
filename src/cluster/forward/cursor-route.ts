// The market list where another node has frozen it: the page behind a cursor is made by the node that made the cursor.
import { nodeOfCursor } from '../../http/response/cursors.ts'
import type { PlainRoute, Route } from '../../http/route.ts'
import { MARKET_PATH } from '../../http/routes/market.ts'
import { type Forwarding, forwardToNode } from './forwarded-route.ts'

/**
 * The route, or for the market list one that has other nodes answer for their cursors.
 * @param nodeId of this node
 * @param forwarding may throw a ServiceError while the bus was not reached
 */
export function withCursors(route: Route, nodeId: string, forwarding: () => Forwarding): Route {
  if (route.path !== MARKET_PATH || route.access !== 'read') return route
  const handle: PlainRoute['handle'] = (context) => {
    const cursor = context.query.get('cursor')
    // A stream reads no cursor, and has no end.
    const owner = cursor && !context.query.get('follow') ? nodeOfCursor(cursor) : null
    if (owner === null || owner === nodeId) return route.handle(context)
    return forwardToNode(owner, context, forwarding())
  }
  return { ...route, handle }
}
