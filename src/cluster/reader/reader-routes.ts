// The routes of a reader: what is about the market, documents and the state of the node are answered here, all else by the writer.
import type { Cursors } from '../../http/response/cursors.ts'
import type { PlainRoute, Route } from '../../http/route.ts'
import { ServiceError } from '../../schema/errors.ts'
import { withCursors } from '../forward/cursor-route.ts'
import { type Forwarding, forwardedRoute } from '../forward/forwarded-route.ts'
import type { ReaderLink } from './reader-link.ts'

/** Null while it is not connected. */
const forwardingOf = ({ parts }: ReaderLink): Forwarding | null =>
  parts && { client: parts.forward, names: parts.bus.names }

/** @throws ServiceError while it is not connected */
function toWriter(link: ReaderLink): Forwarding {
  const forwarding = forwardingOf(link)
  if (forwarding !== null) return forwarding
  const headers = { 'Retry-After': '1' }
  throw new ServiceError('store_unavailable', 'This reader is not connected to the writer yet.', {}, headers)
}

const isLocal = ({ access, answersMarket, isOfNode, method }: Route): boolean =>
  answersMarket === true || isOfNode === true || (access === 'open' && method === 'GET')

/** @param routes those of a server that has everything itself */
export const readerRoutes = (routes: readonly Route[], cursors: Cursors, link: ReaderLink): Route[] =>
  routes.map((route) => {
    if (!isLocal(route)) return forwarded(route, link)
    return withCursors(route, cursors, () => forwardingOf(link))
  })

/** The connection is there only later than the routes. */
function forwarded(route: Route, link: ReaderLink): PlainRoute {
  const access = route.access === 'feed' ? 'feed' : 'forwarded'
  const { countLimit: _, answersMarket: _market, ...rest } = route
  return {
    ...rest,
    access,
    handle: (context) => forwardedRoute(route, toWriter(link)).handle(context),
  }
}
