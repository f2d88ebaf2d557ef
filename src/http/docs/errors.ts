// Which errors an operation may answer with: those of its access and its body, and its own.
import { ERRORS, type ErrorCode } from '../../schema/errors.ts'
import type { Route } from '../route.ts'

const KEYS: readonly ErrorCode[] = ['missing_key', 'invalid_key', 'revoked_key']

const OF_ACCESS: Readonly<Record<Route['access'], readonly ErrorCode[]>> = {
  open: ['invalid_key', 'revoked_key'],
  read: ['invalid_key', 'revoked_key', 'read_rate_limited'],
  personal: ['invalid_key', 'revoked_key', 'read_rate_limited'],
  agent: KEYS,
  researcher: [...KEYS, 'key_not_allowed'],
  // Without such a key the server has no such endpoint.
  feed: [...KEYS, 'not_found'],
  admin: [...KEYS, 'not_found'],
  // Documents are made of the routes where they are carried out.
  forwarded: [],
}
const OF_BODIES: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type', 'body_timeout']

/** The codes of a route's errors by status, ascending. */
export function errorsOf(route: Route): Map<number, ErrorCode[]> {
  const { access, answersMarket, docs, method, path } = route
  const isApi = path.startsWith('/api/')
  const codes = new Set<ErrorCode>([
    'invalid_parameter',
    'internal',
    ...OF_ACCESS[access],
    ...(isApi ? (['warming_up', 'draining', 'overloaded'] as const) : []),
    // Of several processes one answers these, and the others ask it.
    ...(isApi && answersMarket !== true ? (['store_unavailable'] as const) : []),
    ...(method === 'POST' ? OF_BODIES : []),
    ...(docs.body?.['application/json'] ? (['invalid_json', 'validation_failed'] as const) : []),
    ...(docs.errors ?? []),
  ])
  return Map.groupBy(
    [...codes].toSorted((a, b) => ERRORS[a].status - ERRORS[b].status),
    (code) => ERRORS[code].status,
  )
}
