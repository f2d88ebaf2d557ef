// Copies what is needed of a request: the engine's own request is invalid once its handler returns.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { Context, Query, RequestHeaders } from '../context.ts'
import type { EngineRequest } from '../engine.ts'
import { PARSED_QUERIES_MAX, PARSED_QUERY_CHARACTERS_MAX, QUERY_CHARACTERS_MAX } from '../limits.ts'
import { type MarketNotes, notesOn } from '../response/notes.ts'
import type { Route } from '../route.ts'
import { invalidParameter, LIST_PARAMETERS } from './parameters.ts'

const FRESH_ONLY = /no-cache|no-store|max-age=0/i

/**
 * The headers that the HTTP layer reads, copied in one pass over those that were sent: looking each up by name would cost a call
 * into the engine, sent or not. One object serves all requests: copy what is to be kept.
 */
export class RequestHead {
  accept = ''
  acceptEncoding = ''
  apiKey = ''
  authorization = ''
  cacheControl = ''
  connection = ''
  contentEncoding = ''
  contentLength = ''
  contentType = ''
  forwardedFor = ''
  forwardedProto = ''
  host = ''
  /** Null: not sent. */
  idempotencyKey: string | null = null
  ifNoneMatch = ''
  ifRange = ''
  origin = ''
  range = ''
  requestId = ''
  transferEncoding = ''
  /** X-Mintlake-Relay: of a request that another node has passed on (RelayGate). */
  relay = ''
  /** The name of a header that leaves open where the request ends or which host it is for; empty if there is none. */
  ambiguous = ''
  #hosts = 0
  /** Whether several keys were sent under one name, of which none may be ignored. */
  #hasTwoKeys = false
  #hasTwoIdempotencyKeys = false
  #request: EngineRequest | null = null

  /** Reads the headers of `req`. A header that was not sent is empty. */
  read(req: EngineRequest): this {
    this.accept = ''
    this.acceptEncoding = ''
    this.apiKey = ''
    this.authorization = ''
    this.cacheControl = ''
    this.connection = ''
    this.contentEncoding = ''
    this.contentLength = ''
    this.contentType = ''
    this.forwardedFor = ''
    this.forwardedProto = ''
    this.host = ''
    this.idempotencyKey = null
    this.ifNoneMatch = ''
    this.ifRange = ''
    this.origin = ''
    this.range = ''
    this.relay = ''
    this.requestId = ''
    this.transferEncoding = ''
    this.ambiguous = ''
    this.#hosts = 0
    this.#hasTwoKeys = false
    this.#hasTwoIdempotencyKeys = false
    this.#request = req
    req.forEach(this.#take)
    return this
  }

  /** The names of all headers that were sent, in lower case. Only inside the engine's handler: few requests need them. */
  names(): string[] {
    const names: string[] = []
    this.#request?.forEach((name) => {
      names.push(name)
    })
    return names
  }

  /** `Authorization`, or `X-API-Key` as `Bearer <key>`. @throws ServiceError `invalid_key` for two keys: one of them is not meant */
  get credentials(): string {
    const { apiKey, authorization } = this
    if (this.#hasTwoKeys) throw invalidKey('Two different keys were sent under one name: send one of them.')
    if (apiKey === '') return authorization
    if (authorization !== '' && parseBearer(authorization) !== apiKey.trim())
      throw invalidKey('Authorization and X-API-Key have different keys: send one of them.')
    return `Bearer ${apiKey}`
  }

  /** The API key, empty if none was sent. @throws ServiceError `invalid_key` for another form of Authorization. */
  get key(): string {
    return parseBearer(this.credentials)
  }

  /** @throws ServiceError `invalid_parameter` for two Idempotency-Keys: under which of them the answer is remembered is not said. */
  checkIdempotencyKey(): void {
    if (this.#hasTwoIdempotencyKeys)
      throw invalidParameter('Idempotency-Key', 'was sent twice, with values that differ: send one of them')
  }

  /** Content-Length in bytes; 0 without one. */
  get announcedBytes(): number {
    return Number(this.contentLength)
  }

  get hasBody(): boolean {
    return this.announcedBytes > 0 || this.transferEncoding !== ''
  }

  /** Whether the engine closes the connection after the answer. It looks at the length of the header alone, so this does too. */
  get closes(): boolean {
    return this.connection.length === 'close'.length
  }

  /**
   * The key under which an answer may be shared with other requests for the same path; null if the client wants an answer of
   * its own (RFC 9111, section 5.2.1) or asks whether its version is current.
   */
  cacheKey(query: string): string | null {
    const { ifNoneMatch, cacheControl, accept, acceptEncoding } = this
    if (ifNoneMatch !== '' || (cacheControl !== '' && FRESH_ONLY.test(cacheControl))) return null
    return accept === '' && acceptEncoding === '' ? query : `${query}\n${accept}\n${acceptEncoding}`
  }

  #firstKey(before: string, value: string): string {
    this.#hasTwoKeys ||= differs(before, value)
    return before || value
  }

  /** The first header of a name counts, except for the addresses that proxies add; of keys that differ none does. */
  readonly #take = (name: string, value: string): void => {
    switch (name) {
      case 'accept':
        this.accept ||= value
        break
      case 'accept-encoding':
        this.acceptEncoding ||= value
        break
      case 'authorization':
        this.authorization = this.#firstKey(this.authorization, value)
        break
      case 'cache-control':
        this.cacheControl ||= value
        break
      case 'connection':
        this.connection ||= value
        break
      case 'content-encoding':
        this.contentEncoding = this.contentEncoding === '' ? value : `${this.contentEncoding},${value}`
        break
      case 'content-length':
        // The engine uses the first; a proxy in front of it may use another.
        if (value === '' || (this.contentLength !== '' && this.contentLength !== value))
          this.ambiguous = 'Content-Length'
        this.contentLength ||= value
        break
      case 'content-type':
        this.contentType ||= value
        break
      case 'host':
        if (this.#hosts++ > 0) this.ambiguous = 'Host'
        this.host ||= value
        break
      case 'idempotency-key':
        this.#hasTwoIdempotencyKeys ||= differs(this.idempotencyKey, value)
        this.idempotencyKey ||= value
        break
      case 'if-none-match':
        this.ifNoneMatch ||= value
        break
      case 'if-range':
        this.ifRange ||= value
        break
      case 'origin':
        this.origin ||= value
        break
      case 'range':
        this.range ||= value
        break
      case 'transfer-encoding':
        // The engine reads every body with this header as chunked.
        if (this.transferEncoding !== '' || value.toLowerCase() !== 'chunked')
          this.ambiguous = 'Transfer-Encoding'
        this.transferEncoding ||= value
        break
      case 'x-api-key':
        this.apiKey = this.#firstKey(this.apiKey, value)
        break
      case 'x-forwarded-for':
        // A proxy may add a header of its own after that of the client.
        this.forwardedFor = this.forwardedFor === '' ? value : `${this.forwardedFor},${value}`
        break
      case 'x-forwarded-proto':
        this.forwardedProto ||= value
        break
      case 'x-mintlake-relay':
        this.relay ||= value
        break
      case 'x-request-id':
        this.requestId ||= value
        break
    }
  }
}

/** Whether a header that was sent before has another value now. */
const differs = (before: string | null, value: string): boolean =>
  Boolean(before) && value !== '' && value !== before

/** The parts of a context that act on the connection, and what the server knows of itself. */
interface ServerSide
  extends Pick<Context, 'ip' | 'client' | 'isRelayed' | 'isLocal' | 'origin' | 'onGone' | 'admitRows'> {
  market: MarketNotes
}

/**
 * What a route sees of the request in `head`.
 * @throws ServiceError `invalid_parameter` if the query is too long.
 */
export function createContext(
  head: RequestHead,
  query: string,
  route: Route,
  id: string,
  path: string,
  requestId: string,
  { market, ...calls }: ServerSide,
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
    range: head.range,
    ifRange: head.ifRange,
  }
  const parsed = parseQuery(query)
  return {
    method: route.method,
    path,
    id,
    query: parsed,
    queryText: query,
    notes: notesOn(route, parsed, market),
    headers,
    requestId,
    body: NO_BODY,
    ip: calls.ip,
    client: calls.client,
    isRelayed: calls.isRelayed,
    isLocal: calls.isLocal,
    origin: calls.origin,
    onGone: calls.onGone,
    admitRows: calls.admitRows,
  }
}

interface ParsedQuery extends Query {
  /** The names in it, each once. */
  names: readonly string[]
  /** Those that were sent several times with values that differ: the first counts. */
  repeated: readonly string[]
}

/** Recently parsed queries: clients repeat the same few. */
const parsedQueries = new BoundedMap<string, ParsedQuery>({ entriesMax: PARSED_QUERIES_MAX })

function parseQuery(text: string): ParsedQuery {
  const known = parsedQueries.get(text)
  if (known !== undefined) return known
  const parameters = new URLSearchParams(text)
  const names = [...new Set(parameters.keys())].filter((name) => name !== '')
  const repeated: string[] = []
  // Few queries repeat a name: the others are not searched for it.
  for (const name of parameters.size > names.length ? names : []) {
    const values = parameters.getAll(name)
    if (LIST_PARAMETERS.has(name)) parameters.set(name, values.join(','))
    else if (values.some((value) => value !== values[0])) repeated.push(name)
  }
  const query = { get: (name: string) => parameters.get(name), names, repeated }
  if (text.length <= PARSED_QUERY_CHARACTERS_MAX) parsedQueries.set(text, query)
  return query
}

const NO_BODY = Buffer.alloc(0)

/** The key of a bearer authorization; empty for an empty one. @throws ServiceError `invalid_key` for another form. */
export function parseBearer(authorization: string): string {
  if (authorization === '') return ''
  const key = /^Bearer\s+(\S.*)$/i.exec(authorization)?.[1]
  if (key !== undefined) return key.trim()
  if (authorization.trim() === '') return ''
  throw invalidKey('The Authorization header must have the form: Bearer <API_KEY>.')
}

const invalidKey = (sentence: string): ServiceError =>
  new ServiceError('invalid_key', sentence, {}, { 'WWW-Authenticate': 'Bearer' })

/**
 * The Idempotency-Key of a request; null: without one.
 * @throws ServiceError `invalid_parameter` for an empty one: a client that sends it takes its retries for safe. So it does with one that is
 *  no UTF-8, of which others look the same here. (The engine takes bytes at its end that are no ASCII for blanks.)
 */
export function idempotencyKeyOf({ idempotencyKey }: RequestHeaders): string | null {
  if (idempotencyKey === '' || idempotencyKey?.includes('\ufffd'))
    throw invalidParameter(
      'Idempotency-Key',
      'must be ASCII and not be empty: leave the header out, or send a key',
    )
  return idempotencyKey
}

/** @throws ServiceError `unsupported_media_type`. */
export function checkBodyType({ bodyTypes = ['application/json'] }: Route, contentType: string): void {
  const [mediaType = ''] = contentType.split(';', 1)
  const type = mediaType.trim().toLowerCase()
  if (bodyTypes.includes(type) || (bodyTypes.length === 0 && type === '')) return
  throw new ServiceError('unsupported_media_type', `Content-Type must be ${bodyTypes.join(' or ')}.`, {
    allowed: bodyTypes,
  })
}

/** Bodies are taken as they are. @throws ServiceError `unsupported_media_type`. */
export function checkBodyEncoding(contentEncoding: string): void {
  if (contentEncoding.split(',').every((coding) => ['', 'identity'].includes(coding.trim().toLowerCase())))
    return
  throw new ServiceError(
    'unsupported_media_type',
    'Content-Encoding must be identity: send the body uncompressed.',
    { allowed: ['identity'] },
    { 'Accept-Encoding': 'identity' },
  )
}
