// In: a request as the HTTP engine hands it over. Out: what the pipeline needs of it, copied: the engine's request dies with
// its handler. Refuses what is too long or of a wrong type. Never answers.
import type { HttpRequest } from 'uWebSockets.js'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { Context, Query, RequestHeaders } from '../context.ts'
import { QUERIES_READ_MAX, QUERY_CHARACTERS_MAX } from '../limits.ts'
import type { Route } from '../route.ts'

/**
 * The headers that the HTTP layer reads. Taken in one pass over those that were sent: asking the engine for each by name costs
 * a call into it every time, sent or not. One object serves all requests: what is kept must be copied.
 */
export class RequestHead {
  accept = ''
  acceptEncoding = ''
  apiKey = ''
  authorization = ''
  cacheControl = ''
  connection = ''
  contentLength = ''
  contentType = ''
  forwardedFor = ''
  idempotencyKey = ''
  ifNoneMatch = ''
  requestId = ''
  transferEncoding = ''
  /** The name of a header that leaves open where the request ends, or whom it is for; empty where there is none. */
  ambiguous = ''
  #hosts = 0

  /** Reads the headers of `req`; what it lacks is empty. */
  read(req: HttpRequest): this {
    this.accept = ''
    this.acceptEncoding = ''
    this.apiKey = ''
    this.authorization = ''
    this.cacheControl = ''
    this.connection = ''
    this.contentLength = ''
    this.contentType = ''
    this.forwardedFor = ''
    this.idempotencyKey = ''
    this.ifNoneMatch = ''
    this.requestId = ''
    this.transferEncoding = ''
    this.ambiguous = ''
    this.#hosts = 0
    req.forEach(this.#take)
    return this
  }

  /** `Authorization`, or `X-API-Key` in its form. */
  get credentials(): string {
    return this.authorization === '' && this.apiKey !== '' ? `Bearer ${this.apiKey}` : this.authorization
  }

  /** Bytes that Content-Length announces; 0 without one. */
  get announcedBytes(): number {
    return Number(this.contentLength)
  }

  get hasBody(): boolean {
    return this.announcedBytes > 0 || this.transferEncoding !== ''
  }

  /** Whether the engine closes the connection after the answer: it goes by the header's length, so this does too. */
  get closes(): boolean {
    return this.connection.length === 'close'.length
  }

  /** The first of a name counts, but for addresses that proxies add. */
  #take = (name: string, value: string): void => {
    switch (name) {
      case 'accept':
        this.accept ||= value
        break
      case 'accept-encoding':
        this.acceptEncoding ||= value
        break
      case 'authorization':
        this.authorization ||= value
        break
      case 'cache-control':
        this.cacheControl ||= value
        break
      case 'connection':
        this.connection ||= value
        break
      case 'content-length':
        // The engine goes by the first; a proxy before it may go by another.
        if (value === '' || (this.contentLength !== '' && this.contentLength !== value))
          this.ambiguous = 'Content-Length'
        this.contentLength ||= value
        break
      case 'content-type':
        this.contentType ||= value
        break
      case 'host':
        if (this.#hosts++ > 0) this.ambiguous = 'Host'
        break
      case 'idempotency-key':
        this.idempotencyKey ||= value
        break
      case 'if-none-match':
        this.ifNoneMatch ||= value
        break
      case 'transfer-encoding':
        // The engine takes every body that has one for chunked.
        if (this.transferEncoding !== '' || value.toLowerCase() !== 'chunked')
          this.ambiguous = 'Transfer-Encoding'
        this.transferEncoding ||= value
        break
      case 'x-api-key':
        this.apiKey ||= value
        break
      case 'x-forwarded-for':
        // A proxy may add its word as a header of its own behind that of the client.
        this.forwardedFor = this.forwardedFor === '' ? value : `${this.forwardedFor},${value}`
        break
      case 'x-request-id':
        this.requestId ||= value
        break
    }
  }
}

export function contextOf(
  head: RequestHead,
  query: string,
  route: Route,
  id: string,
  path: string,
  requestId: string,
  { ip, onGone, admitRows }: Pick<Context, 'ip' | 'onGone' | 'admitRows'>,
): Context {
  if (query.length > QUERY_CHARACTERS_MAX) {
    throw new ServiceError(
      'invalid_parameter',
      `The query is longer than ${QUERY_CHARACTERS_MAX} characters.`,
    )
  }
  const headers: RequestHeaders = {
    accept: head.accept,
    contentType: head.contentType,
    ifNoneMatch: head.ifNoneMatch,
    idempotencyKey: head.idempotencyKey,
    authorization: head.credentials,
    acceptEncoding: head.acceptEncoding,
  }
  return {
    method: route.method,
    path,
    id,
    query: parametersOf(query),
    headers,
    requestId,
    ip: kept(route, ip),
    limits: {},
    caller: null,
    body: NO_BODY,
    onGone,
    admitRows,
  }
}

/** Queries that were read lately: the same few are asked over and over. */
const queriesRead = new BoundedMap<string, Query>({ entriesMax: QUERIES_READ_MAX })

function parametersOf(query: string): Query {
  const read = queriesRead.get(query)
  if (read !== undefined) return read
  const parameters = new URLSearchParams(query)
  queriesRead.set(query, parameters)
  return parameters
}

const NO_BODY = Buffer.alloc(0)

/** A body may come after the engine's request is gone: then the address is read now, where the route asks for it. */
function kept({ method, access }: Route, ip: () => string): () => string {
  if (method === 'GET') return ip
  const address = access === 'open' || access === 'read' ? ip() : ''
  return () => address
}

/**
 * What an answer that was made a moment ago must have been asked to be given again; null where none will do: a
 * conditional request, or one whose client insists on an answer of its own.
 */
export function cacheKeyOf(
  { ifNoneMatch, cacheControl, accept, acceptEncoding }: RequestHead,
  query: string,
): string | null {
  if (ifNoneMatch !== '' || (cacheControl !== '' && FRESH_ONLY.test(cacheControl))) return null
  return accept === '' && acceptEncoding === '' ? query : `${query}\n${accept}\n${acceptEncoding}`
}

/** RFC 9111, section 5.2.1. */
const FRESH_ONLY = /no-cache|no-store|max-age=0/i

export function keyOf(authorization: string): string {
  if (authorization === '') return ''
  const match = /^Bearer\s+(\S.*)$/i.exec(authorization)
  if (match !== null) return match[1].trim()
  if (authorization.trim() === '') return ''
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
