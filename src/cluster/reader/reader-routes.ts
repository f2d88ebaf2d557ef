// The routes of a reader: what is about the market, documents and the state of the node are answered here, all else by the writer.
import type { HttpNode } from '../../http/node.ts'
import { nodeOfCursor } from '../../http/response/cursors.ts'
import type { PlainRoute, Route } from '../../http/route.ts'
import { MARKET_PATH } from '../../http/routes/market.ts'
import { STREAM_PATH } from '../../http/stream/stream-socket.ts'
import { ServiceError } from '../../schema/errors.ts'
import { type Forwarding, forwardedRoute, forwardToNode } from '../forward/forwarded-route.ts'
import type { ReaderLink } from './reader-link.ts'

/** @throws ServiceError while it is not connected */
function forwardingOf({ parts }: ReaderLink): Forwarding {
  if (parts !== null) return { client: parts.forward, names: parts.bus.names }
  const headers = { 'Retry-After': '1' }
  throw new ServiceError('store_unavailable', 'This reader is not connected to the writer yet.', {}, headers)
}

const isLocal = ({ access, answersMarket, method, path }: Route): boolean =>
  answersMarket === true || path === STREAM_PATH || (access === 'open' && method === 'GET')

/** @param routes those of a server that has everything itself */
export const readerRoutes = (routes: readonly Route[], node: HttpNode, link: ReaderLink): Route[] =>
  routes.map((route) => {
    if (!isLocal(route)) return forwarded(route, link)
    return route.path === MARKET_PATH && route.access === 'read' ? withCursors(route, node, link) : route
  })

/** The connection is there only later than the routes. */
function forwarded(route: Route, link: ReaderLink): PlainRoute {
  const access = route.access === 'feed' ? 'feed' : 'forwarded'
  const { countLimit: _, answersMarket: _market, ...rest } = route
  return {
    ...rest,
    access,
    handle: (context) => forwardedRoute(route, forwardingOf(link)).handle(context),
  }
}

/** A list that another node has frozen is read there. */
const withCursors = (route: PlainRoute, node: HttpNode, link: ReaderLink): PlainRoute => ({
  ...route,
  handle: (context) => {
    const cursor = context.query.get('cursor')
    const owner = cursor ? nodeOfCursor(cursor) : null
    if (owner === null || owner === node.id) return route.handle(context)
    return forwardToNode(owner, context, forwardingOf(link))
  },
})
