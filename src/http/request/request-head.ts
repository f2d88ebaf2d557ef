// Copies what is needed of a request: the engine's own request is invalid once its handler returns.
import { ServiceError } from '../../schema/errors.ts'
import { type Context, NO_BYTES, type Query, SentHeaders } from '../context.ts'
import type { EngineRequest } from '../engine.ts'
import { QUERY_CHARACTERS_MAX } from '../limits.ts'
import { type MarketNotes, notesOn } from '../response/notes.ts'
import type { Route } from '../route.ts'
import { invalidParameter, LIST_PARAMETERS } from './parameters.ts'

const FRESH_ONLY = /no-cache|no-store|max-age=0/i

/**
 * The headers of a request, copied in one pass over those that were sent: looking each up by name would cost a call into the engine, sent or
 * not. One object serves all requests, and only `sent` may be kept of it.
 */
export class RequestHead {
  sent = new SentHeaders()
  /** The name of a header that leaves open where the request ends or which host it is for; empty if there is none. */
  ambiguous = ''
  #hosts = 0
  /** Whether several keys were sent under one name, of which none may be ignored. */
  #hasTwoKeys = false
  #hasTwoIdempotencyKeys = false
  #request: EngineRequest | null = null

  /** Reads the headers of `req`. */
  read(req: EngineRequest): this {
    this.sent = new SentHeaders()
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
    const { apiKey, authorization } = this.sent
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
    return Number(this.sent.contentLength)
  }

  get hasBody(): boolean {
    return this.announcedBytes > 0 || this.sent.transferEncoding !== ''
  }

  /** Whether the engine closes the connection after the answer. It looks at the length of the header alone, so this does too. */
  get closes(): boolean {
    return this.sent.connection.length === 'close'.length
  }

  /**
   * The key under which an answer may be shared with other requests for the same path; null if the client wants an answer of
   * its own (RFC 9111, section 5.2.1) or asks whether its version is current.
   */
  cacheKey(query: string): string | null {
    const { ifNoneMatch, cacheControl, accept, acceptEncoding } = this.sent
    if (ifNoneMatch !== '' || (cacheControl !== '' && FRESH_ONLY.test(cacheControl))) return null
    return accept === '' && acceptEncoding === '' ? query : `${query}\n${accept}\n${acceptEncoding}`
  }

  #firstKey(before: string, value: string): string {
    this.#hasTwoKeys ||= differs(before, value)
    return before || value
  }

  /** The first header of a name counts, except for addresses, which a proxy adds in a header of its own behind the client's; of keys that
   *  differ none does. */
  readonly #take = (name: string, value: string): void => {
    const { sent } = this
    switch (name) {
      case 'accept':
        sent.accept ||= value
        break
      case 'accept-encoding':
        sent.acceptEncoding ||= value
        break
      case 'authorization':
        sent.authorization = this.#firstKey(sent.authorization, value)
        break
      case 'cache-control':
        sent.cacheControl ||= value
        break
      case 'connection':
        sent.connection ||= value
        break
      case 'content-encoding':
        sent.contentEncoding = sent.contentEncoding === '' ? value : `${sent.contentEncoding},${value}`
        break
      case 'content-length':
        // The engine uses the first; a proxy in front of it may use another.
        if (value === '' || (sent.contentLength !== '' && sent.contentLength !== value))
          this.ambiguous = 'Content-Length'
        sent.contentLength ||= value
        break
      case 'content-type':
        sent.contentType ||= value
        break
      case 'host':
        if (this.#hosts++ > 0) this.ambiguous = 'Host'
        sent.host ||= value
        break
      case 'idempotency-key':
        this.#hasTwoIdempotencyKeys ||= differs(sent.idempotencyKey, value)
        sent.idempotencyKey ||= value
        break
      case 'if-none-match':
        sent.ifNoneMatch ||= value
        break
      case 'if-range':
        sent.ifRange ||= value
        break
      case 'origin':
        sent.origin ||= value
        break
      case 'range':
        sent.range ||= value
        break
      case 'transfer-encoding':
        // The engine reads every body with this header as chunked.
        if (sent.transferEncoding !== '' || value.toLowerCase() !== 'chunked')
          this.ambiguous = 'Transfer-Encoding'
        sent.transferEncoding ||= value
        break
      case 'x-api-key':
        sent.apiKey = this.#firstKey(sent.apiKey, value)
        break
      case 'x-forwarded-for':
        sent.forwardedFor = sent.forwardedFor === '' ? value : `${sent.forwardedFor},${value}`
        break
      case 'x-forwarded-proto':
        sent.forwardedProto ||= value
        break
      case 'x-mintlake-relay':
        sent.relay ||= value
        break
      case 'x-request-id':
        sent.requestId ||= value
        break
    }
  }
}

/** Whether a header that was sent before has another value now. */
const differs = (before: string | null, value: string): boolean =>
  Boolean(before) && value !== '' && value !== before

/** What a request tells by itself. */
type Told = Pick<Context, 'method' | 'path' | 'id' | 'query' | 'queryText' | 'notes' | 'headers' | 'body'>

/**
 * What a route sees of the request in `head`, beside what acts on its connection.
 * @throws ServiceError `invalid_parameter` if the query is too long.
 */
export function readRequest(
  head: RequestHead,
  queryText: string,
  route: Route,
  id: string,
  path: string,
  market: MarketNotes,
): Told {
  if (queryText.length > QUERY_CHARACTERS_MAX) {
    throw new ServiceError(
      'invalid_parameter',
      `The query is longer than ${QUERY_CHARACTERS_MAX} characters.`,
    )
  }
  const query = parseQuery(queryText)
  const notes = notesOn(route, query, market)
  const headers = { ...head.sent, authorization: head.credentials }
  return { method: route.method, path, id, query, queryText, notes, headers, body: NO_BYTES }
}

interface ParsedQuery extends Query {
  /** The names in it, each once. */
  names: readonly string[]
  /** Those that were sent several times with values that differ: the first counts. */
  repeated: readonly string[]
}

function parseQuery(text: string): ParsedQuery {
  const parameters = new URLSearchParams(text)
  const names = [...new Set(parameters.keys())].filter((name) => name !== '')
  const repeated: string[] = []
  // Few queries repeat a name: the others are not searched for it.
  for (const name of parameters.size > names.length ? names : []) {
    const values = parameters.getAll(name)
    if (LIST_PARAMETERS.has(name)) parameters.set(name, values.join(','))
    else if (values.some((value) => value !== values[0])) repeated.push(name)
  }
  return { get: (name) => parameters.get(name), names, repeated }
}

/** The key of a bearer authorization; empty for an empty one. @throws ServiceError `invalid_key` for another form. */
export function parseBearer(authorization: string): string {
  if (authorization === '') return ''
  const key = /^Bearer\s+(\S.*)$/i.exec(authorization)?.[1]
  if (key !== undefined) return key.trim()
  if (authorization.trim() === '') return ''
  throw invalidKey('The Authorization header must have the form: Bearer <API_KEY>.')
}

const invalidKey = (sentence: string): ServiceError => new ServiceError('invalid_key', sentence)

/**
 * The Idempotency-Key of a request; null: without one.
 * @throws ServiceError `invalid_parameter` for an empty one: a client that sends it takes its retries for safe. So it does with one that is
 *  no UTF-8, of which others look the same here. (The engine takes bytes at its end that are no ASCII for blanks.)
 */
export function idempotencyKeyOf({ idempotencyKey }: SentHeaders): string | null {
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
  if (bodyTypes.includes(type)) return
  // '': without a body none is needed.
  const allowed = bodyTypes.filter((each) => each !== '')
  throw new ServiceError('unsupported_media_type', `Content-Type must be ${allowed.join(' or ')}.`, {
    allowed,
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
