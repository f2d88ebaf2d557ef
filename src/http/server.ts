// In: requests on a port. Out: each answered once, through one pipeline: identity, method, size, key, limit, route,
// errors. The only file that holds the HTTP engine's server. Never knows what a route means.

import {
  App,
  type HttpRequest,
  type HttpResponse,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'
import { randomBytes } from 'node:crypto'
import type { Caller } from '../analysis/types.ts'
import { ServiceError } from '../schema/errors.ts'
import { codingOf, encoded } from './compress.ts'
import type { Context, HttpAnswer, Method, RequestHeaders } from './context.ts'
import { INGEST_PATH, takeIngestSockets } from './ingest-socket.ts'
import { BODY_BYTES_MAX, QUERY_CHARACTERS_MAX, REQUEST_ID_CHARACTERS_MAX } from './limits.ts'
import { problem, type Reply, send } from './reply.ts'

export interface Route {
  method: Method
  /** Literal, or with `{id}` as its last segment. */
  path: string
  /** `read`: open, counted, a key raises the limit. `agent`, `feed`, `admin`: that key is needed. `open`: neither. */
  access: 'open' | 'read' | 'agent' | 'feed' | 'admin'
  /** One line for the docs. */
  summary: string
  /** Largest body; 0 where none is read. */
  bodyBytesMax?: number
  /** Content types taken, for routes with a body. */
  bodyTypes?: readonly string[]
  handle(context: Context): HttpAnswer | Promise<HttpAnswer>
}

export interface ServerPorts {
  /** What a held feed connection delivers; null where no feed may push. */
  ingestFrame: ((frame: Uint8Array, isBinary: boolean) => Record<string, unknown>) | null
  routes: readonly Route[]
  /** Knows a key, or throws 401. */
  authenticate(key: string): Caller
  /** Counts a read, and answers the headers of its answer, or throws 429. */
  countRead(caller: Caller | null, ip: string): Record<string, string>
  /** Throws when the request may not pass now (warming up, draining). */
  admit(route: Route): void
  /** Throws 401 unless the key of a feed or an operator is right. */
  checkOperator(access: 'feed' | 'admin', key: string): void
  /** Proxies whose X-Forwarded-For is believed. */
  trustedProxies: ReadonlySet<string>
  observe(route: string, status: number, seconds: number): void
  onFault(error: unknown, requestId: string): void
}

export interface HttpServer {
  port: number
  /** No new connection from here on. */
  stopListening(): void
  /** Ends every connection. */
  close(): void
  /** Requests being answered. */
  inFlight(): number
}

/** LIBUS_LISTEN_EXCLUSIVE_PORT, which the package's types leave out: without it two servers share a port silently. */
const LISTEN_EXCLUSIVE_PORT = 1
type Listen = (
  host: string,
  port: number,
  options: number,
  done: (socket: us_listen_socket | false) => void,
) => void

const REQUEST_ID_PATTERN = new RegExp(`^[\\w.:-]{1,${REQUEST_ID_CHARACTERS_MAX}}$`)
const METHODS: Readonly<Record<string, Method | 'HEAD' | 'OPTIONS'>> = {
  get: 'GET',
  head: 'HEAD',
  post: 'POST',
  delete: 'DELETE',
  options: 'OPTIONS',
}

/** A held feed connection passes the same doors as a push. */
function socketPorts(ports: ServerPorts) {
  const route = ports.routes.find(({ path }) => path === INGEST_PATH)!
  return {
    checkKey: (authorization: string) => ports.checkOperator('feed', keyOf(authorization)),
    admit: () => ports.admit(route),
    onFault: (error: unknown) => ports.onFault(error, 'frame'),
  }
}

/** Routes by path, for one look-up a request. */
class RouteTable {
  #literal = new Map<string, Map<Method, Route>>()
  #byPrefix = new Map<string, Map<Method, Route>>()

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const isPrefix = route.path.endsWith('{id}')
      const table = isPrefix ? this.#byPrefix : this.#literal
      const path = isPrefix ? route.path.slice(0, -'{id}'.length) : route.path
      const methods = table.get(path) ?? new Map<Method, Route>()
      methods.set(route.method, route)
      table.set(path, methods)
    }
  }

  find(path: string): { methods: Map<Method, Route>; id: string } | null {
    const literal = this.#literal.get(path)
    if (literal !== undefined) return { methods: literal, id: '' }
    const cut = path.lastIndexOf('/') + 1
    const methods = this.#byPrefix.get(path.slice(0, cut))
    return methods === undefined || cut === path.length ? null : { methods, id: path.slice(cut) }
  }
}

/** Starts to listen; rejects when the port cannot be had. Port 0 takes a free one. */
export function startServer(host: string, port: number, ports: ServerPorts): Promise<HttpServer> {
  const table = new RouteTable(ports.routes)
  const identity = requestIds()
  let inFlight = 0
  const app = App()
  const { ingestFrame } = ports
  if (ingestFrame !== null) takeIngestSockets(app, { ...socketPorts(ports), ingestFrame })

  app.any('/*', (res, req) => {
    const startedAt = performance.now()
    const reply: Reply = {
      res,
      aborted: false,
      headOnly: req.getMethod() === 'head',
      requestId: identity(req),
    }
    const path = req.getUrl()
    let routeName = 'none'
    inFlight++
    let open = true
    const finish = () => {
      if (open) inFlight--
      open = false
    }
    res.onAborted(() => {
      reply.aborted = true
      reply.onClosed?.()
      finish()
    })
    const answer = (made: HttpAnswer) => {
      send(reply, made)
      finish()
      ports.observe(routeName, made.status, (performance.now() - startedAt) / 1_000)
    }
    const fail = (error: unknown) => {
      if (!(error instanceof ServiceError)) ports.onFault(error, reply.requestId)
      answer(problem(error, path, reply.requestId))
    }
    try {
      const method = METHODS[req.getMethod()]
      const found = table.find(path)
      if (found === null) throw new ServiceError('not_found', `There is nothing at ${path}.`)
      const allowed = allowedMethods(found.methods)
      if (method === 'OPTIONS') return answer(preflight(allowed))
      const route = found.methods.get(method === 'HEAD' ? 'GET' : (method as Method))
      if (route === undefined) {
        throw new ServiceError(
          'method_not_allowed',
          `${req.getMethod().toUpperCase()} is not allowed at ${path}.`,
          { allowed },
          { Allow: allowed.join(', ') },
        )
      }
      routeName = route.path
      const context = contextOf(req, res, route, found.id, path, reply.requestId, ports.trustedProxies)
      const proceed = () => {
        try {
          const made = run(route, context, ports)
          if (!(made instanceof Promise)) return answer(made)
          made.then(answer, fail).catch((error) => ports.onFault(error, reply.requestId))
        } catch (error) {
          fail(error)
        }
      }
      if (route.method !== 'POST') return void proceed()
      checkBodyType(route, context.headers.contentType)
      const bytesMax = route.bodyBytesMax ?? BODY_BYTES_MAX
      if (Number(req.getHeader('content-length')) > bytesMax) throw tooLarge(bytesMax)
      readBody(res, bytesMax, (body) => {
        if (body === null) return fail(tooLarge(bytesMax))
        context.body = body
        proceed()
      })
    } catch (error) {
      fail(error)
    }
  })

  return new Promise((resolve, reject) => {
    const listen = app.listen.bind(app) as unknown as Listen
    listen(host, port, LISTEN_EXCLUSIVE_PORT, (socket) => {
      if (!socket) {
        reject(
          new Error(
            `port ${port} on ${host} cannot be had: another program listens there, or the address is not this machine's`,
          ),
        )
        return
      }
      let listening = true
      const stopListening = () => {
        if (listening) us_listen_socket_close(socket)
        listening = false
      }
      resolve({
        port: us_socket_local_port(socket),
        stopListening,
        close: () => {
          stopListening()
          app.close()
        },
        inFlight: () => inFlight,
      })
    })
  })
}

/**
 * The answer as the client can take it: compressed when it asked for that and it pays. An answer that is there at once
 * is given at once: a turn of promises costs more than a page.
 */
function run(route: Route, context: Context, ports: ServerPorts): HttpAnswer | Promise<HttpAnswer> {
  const answer = dispatch(route, context, ports)
  const encode = (made: HttpAnswer) =>
    made.stream === undefined ? encoded(made, codingOf(context.headers.acceptEncoding)) : made
  return answer instanceof Promise ? answer.then(encode) : encode(answer)
}

/** Key, admission, limit, handler: the order of the contract, after method, content type and size. */
function dispatch(route: Route, context: Context, ports: ServerPorts): HttpAnswer | Promise<HttpAnswer> {
  ports.admit(route)
  const key = keyOf(context.headers.authorization)
  if (route.access === 'feed' || route.access === 'admin') {
    ports.checkOperator(route.access, key)
    return route.handle(context)
  }
  if (route.access === 'open') return route.handle(context)
  if (key !== '' || route.access === 'agent') context.caller = ports.authenticate(key)
  if (route.access === 'agent') return route.handle(context)
  const limits = ports.countRead(context.caller, context.ip)
  const limited = (made: HttpAnswer) => {
    made.headers = made.headers === undefined ? limits : Object.assign(limits, made.headers)
    return made
  }
  const answer = route.handle(context)
  return answer instanceof Promise ? answer.then(limited) : limited(answer)
}

function contextOf(
  req: HttpRequest,
  res: HttpResponse,
  route: Route,
  id: string,
  path: string,
  requestId: string,
  trustedProxies: ReadonlySet<string>,
): Context {
  const query = req.getQuery() ?? ''
  if (query.length > QUERY_CHARACTERS_MAX) {
    throw new ServiceError(
      'invalid_parameter',
      `The query is longer than ${QUERY_CHARACTERS_MAX} characters.`,
    )
  }
  const apiKey = req.getHeader('x-api-key')
  const headers: RequestHeaders = {
    accept: req.getHeader('accept'),
    contentType: req.getHeader('content-type'),
    ifNoneMatch: req.getHeader('if-none-match'),
    idempotencyKey: req.getHeader('idempotency-key'),
    authorization: req.getHeader('authorization') || (apiKey && `Bearer ${apiKey}`),
    acceptEncoding: req.getHeader('accept-encoding'),
  }
  return {
    method: route.method,
    path,
    id,
    query: new URLSearchParams(query),
    headers,
    requestId,
    ip: clientIp(req, res, trustedProxies),
    caller: null,
    body: Buffer.alloc(0),
  }
}

/** The peer's address; behind a trusted proxy the last address that the proxy itself did not add. */
function clientIp(req: HttpRequest, res: HttpResponse, trustedProxies: ReadonlySet<string>): string {
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

function keyOf(authorization: string): string {
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

function checkBodyType({ bodyTypes = ['application/json'] }: Route, contentType: string): void {
  const type = contentType.split(';')[0].trim().toLowerCase()
  if (bodyTypes.includes(type) || (bodyTypes.length === 0 && type === '')) return
  throw new ServiceError('unsupported_media_type', `Content-Type must be ${bodyTypes.join(' or ')}.`, {
    allowed: bodyTypes,
  })
}

const tooLarge = (bytesMax: number) =>
  new ServiceError('payload_too_large', `The body is larger than ${bytesMax} bytes.`, { limit: bytesMax })

/** Gathers a body of at most `bytesMax`; calls back once, with null when there is more. */
function readBody(res: HttpResponse, bytesMax: number, done: (body: Buffer | null) => void): void {
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

function allowedMethods(methods: Map<Method, Route>): string[] {
  return [...methods.keys()]
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .concat('OPTIONS')
}

const preflight = (allowed: readonly string[]): HttpAnswer => ({
  status: 204,
  body: {},
  headers: {
    Allow: allowed.join(', '),
    'Access-Control-Allow-Methods': allowed.join(', '),
    'Access-Control-Allow-Headers':
      'Authorization, X-API-Key, Content-Type, Accept, If-None-Match, Idempotency-Key, X-Request-Id',
    'Access-Control-Max-Age': '86400',
  },
})

/** A client's own request id when it is a plain word, else one that no other request of this server bears. */
function requestIds(): (req: HttpRequest) => string {
  const run = randomBytes(6).toString('hex')
  let count = 0
  return (req) => {
    const sent = req.getHeader('x-request-id')
    return REQUEST_ID_PATTERN.test(sent) ? sent : `${run}-${(count++).toString(36)}`
  }
}
