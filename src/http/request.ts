// In: a request as the HTTP engine hands it over. Out: what the pipeline needs of it, copied: the engine's request dies with
// its handler. Refuses what is too long or of a wrong type. Never answers.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { randomBytes } from 'node:crypto'
import { ServiceError } from '../schema/errors.ts'
import type { Context, Method, RequestHeaders } from './context.ts'
import { QUERY_CHARACTERS_MAX, REQUEST_ID_CHARACTERS_MAX } from './limits.ts'
import type { Route } from './route.ts'

const REQUEST_ID_PATTERN = new RegExp(`^[\\w.:-]{1,${REQUEST_ID_CHARACTERS_MAX}}$`)

export function contextOf(
  req: HttpRequest,
  route: Route,
  id: string,
  path: string,
  requestId: string,
  ip: () => string,
): Context {
  const query = req.getQuery() ?? ''
  if (query.length > QUERY_CHARACTERS_MAX) {
    throw new ServiceError(
      'invalid_parameter',
      `The query is longer than ${QUERY_CHARACTERS_MAX} characters.`,
    )
  }
  const headers: RequestHeaders = {
    accept: req.getHeader('accept'),
    contentType: req.getHeader('content-type'),
    ifNoneMatch: req.getHeader('if-none-match'),
    idempotencyKey: req.getHeader('idempotency-key'),
    authorization: authorizationOf(req),
    acceptEncoding: req.getHeader('accept-encoding'),
  }
  return {
    method: route.method,
    path,
    id,
    query: new URLSearchParams(query),
    headers,
    requestId,
    ip: kept(route.method, ip),
    limits: {},
    caller: null,
    body: NO_BODY,
  }
}

const NO_BODY = Buffer.alloc(0)

/** A body may come after the engine's request is gone: then the address is read now, else when it is asked for. */
function kept(method: Method, ip: () => string): () => string {
  if (method === 'GET') return ip
  const address = ip()
  return () => address
}

export function authorizationOf(req: HttpRequest): string {
  const authorization = req.getHeader('authorization')
  if (authorization !== '') return authorization
  const apiKey = req.getHeader('x-api-key')
  return apiKey && `Bearer ${apiKey}`
}

/**
 * What an answer that was made a moment ago must have been asked to be given again; null where none will do: not a GET,
 * a conditional one, or one whose client insists on an answer of its own.
 */
export function questionOf(req: HttpRequest): string | null {
  if (req.getMethod() !== 'get' || req.getHeader('if-none-match') !== '') return null
  if (FRESH_ONLY.test(req.getHeader('cache-control'))) return null
  const query = req.getQuery() ?? ''
  const accept = req.getHeader('accept')
  const coding = req.getHeader('accept-encoding')
  return accept === '' && coding === '' ? query : `${query}\n${accept}\n${coding}`
}

/** RFC 9111, section 5.2.1. */
const FRESH_ONLY = /no-cache|no-store|max-age=0/i

/** The peer's address; behind a trusted proxy the last address that the proxy itself did not add. */
export function clientIp(req: HttpRequest, res: HttpResponse, trustedProxies: ReadonlySet<string>): string {
  const peer = normalIp(Buffer.from(res.getRemoteAddressAsText()).toString())
  if (!trustedProxies.has(peer)) return peer
  const forwarded = req
    .getHeader('x-forwarded-for')
    .split(',')
    .map((address) => normalIp(address.trim()))
  return forwarded.findLast((address) => address !== '' && !trustedProxies.has(address)) ?? peer
}

/** IPv4 addresses inside IPv6 are the same client. */
const normalIp = (address: string): string =>
  address.replace(/^(?:::ffff:|0000:0000:0000:0000:0000:ffff:)(\d+\.\d+\.\d+\.\d+)$/i, '$1').slice(0, 64)

export function keyOf(authorization: string): string {
  if (authorization === '') return ''
  const match = /^Bearer\s+(\S.*)$/i.exec(authorization)
  if (match !== null) return match[1].trim()
  if (authorization.trim() === '' || /^Bearer$/i.test(authorization.trim())) return ''
  throw new ServiceError(
    'invalid_key',
    'The Authorization header must have the form: Bearer <API_KEY>.',
    {},
    { 'WWW-Authenticate': 'Bearer' },
  )
}

export function checkBodyType({ bodyTypes = ['application/json'] }: Route, contentType: string): void {
  const type = contentType.split(';')[0].trim().toLowerCase()
  if (bodyTypes.includes(type) || (bodyTypes.length === 0 && type === '')) return
  throw new ServiceError('unsupported_media_type', `Content-Type must be ${bodyTypes.join(' or ')}.`, {
    allowed: bodyTypes,
  })
}

export const tooLarge = (bytesMax: number) =>
  new ServiceError('payload_too_large', `The body is larger than ${bytesMax} bytes.`, { limit: bytesMax })

/** Gathers a body of at most `bytesMax`; calls back once, with null when there is more. */
export function readBody(res: HttpResponse, bytesMax: number, done: (body: Buffer | null) => void): void {
  let chunks: Buffer[] = []
  let bytes = 0
  let over = false
  res.onData((chunk, isLast) => {
    if (over) return
    bytes += chunk.byteLength
    if (bytes > bytesMax) {
      over = true
      chunks = []
      done(null)
      return
    }
    // The engine reuses the chunk's memory after this call.
    chunks.push(Buffer.from(new Uint8Array(chunk).slice()))
    if (isLast) done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
  })
}

/** A client's own request id when it is a plain word, else one that no other request of this server bears. */
export function requestIds(): (req: HttpRequest) => string {
  const run = randomBytes(6).toString('hex')
  let count = 0
  return (req) => {
    const sent = req.getHeader('x-request-id')
    return REQUEST_ID_PATTERN.test(sent) ? sent : `${run}-${(count++).toString(36)}`
  }
}
