// The routes of a reader: what is about the market, documents and the state of the node are answered here, all else by the writer.
import type { Cursors } from '../../http/response/cursors.ts'
import type { Route } from '../../http/route.ts'
import { ServiceError } from '../../schema/errors.ts'
import { withCursors } from '../proxy/cursor-route.ts'
import { passedRoute } from '../proxy/passed-route.ts'
import type { PassingOn } from '../proxy/passing-on.ts'
import type { ReaderLink } from './reader-link.ts'

/** @throws ServiceError while it is not connected */
function toWriter({ parts }: ReaderLink): PassingOn {
  if (parts !== null) return parts.passingOn
  const headers = { 'Retry-After': '1' }
  throw new ServiceError('store_unavailable', 'This reader is not connected to the writer yet.', {}, headers)
}

const isLocal = ({ access, answersMarket, isOfNode, method }: Route): boolean =>
  answersMarket === true || isOfNode === true || (access === 'open' && method === 'GET')

/** @param routes those of a server that has everything itself. The connection is there only later than they are */
export const readerRoutes = (routes: readonly Route[], cursors: Cursors, link: ReaderLink): Route[] =>
  routes.map((route) =>
    isLocal(route)
      ? withCursors(route, cursors, () => link.parts?.passingOn ?? null)
      : passedRoute(route, () => toWriter(link)),
  )
