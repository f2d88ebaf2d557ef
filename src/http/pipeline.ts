// In: requests, one by one. Out: each answered once: identity, method, size, admission, key, limit, route, errors, in the
// contract's order. An answer made a moment ago passes the same doors and is given again. Never knows what a route means.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { performance } from 'node:perf_hooks'
import { ServiceError } from '../schema/errors.ts'
import type { Caller } from '../submissions/types.ts'
import type { Context, HttpAnswer, Method } from './context.ts'
import { BODY_BYTES_MAX, DISCARDED_BYTES_MAX } from './limits.ts'
import { clientAddress, type TrustedProxies } from './request/addresses.ts'
import { BodyReader, discardBody, tooLarge } from './request/body.ts'
import { Exchange, Exchanges } from './request/exchange.ts'
import { invalidParameter } from './request/parameters.ts'
import { NO_LIMITS, readerOf } from './request/read-limits.ts'
import { cacheKeyOf, checkBodyType, contextOf, keyOf, RequestHead } from './request/request-head.ts'
import { RequestIds } from './request/request-ids.ts'
import { CompressionCache, codingOf } from './response/compress.ts'
import { conditional } from './response/etag.ts'
import { headsOf, problem, Reply, send, sendCached } from './response/reply.ts'
import { isReusable, ResponseCache } from './response/response-cache.ts'
import { toServiceError } from './response/to-service-error.ts'
import { allowedMethods, isWrite, type Route, RouteTable } from './route.ts'

export interface PipelineDeps {
  routes: readonly Route[]
  /** Knows a key, or throws 401. */
  authenticate(key: string): Caller
  /** Counts a read, and its rows where they are known, and answers the headers of its answer, or throws 429. */
  countRead(caller: Caller | null, ip: () => string, rows?: number): Record<string, string>
  /** Counts the rows of a read that was counted before, or throws 429. */
  countRows(caller: Caller | null, ip: () => string, rows: number): void
  /** Throws 429 when the reader's rows are used up. */
  admitRows(caller: Caller | null, ip: () => string): void
  /** Throws when the request may not pass now (warming up, draining). */
  admit(route: Route): void
  /** Throws 401 unless the key of a feed or an operator is right. */
  checkOperator(access: 'feed' | 'admin', key: string): void
  /** Throws 401 unless the key is one of this server's, of whatever kind. */
  checkAnyKey(key: string): void
  /** Knows a researcher's key, or the operator's (null); throws 401, or 403 for the key of another. */
  admitResearcher(key: string): Caller | null
  /** Proxies whose X-Forwarded-For is believed. */
  trustedProxies: TrustedProxies
  /** How old an answer may be that is given again, ms; 0: every one is made anew. */
  reuseMs: number
  /** How long a body may take that the route sets no time for. */
  bodyMsMax: number
  observe(route: string, status: number, seconds: number): void
  onFault(error: unknown, requestId: string): void
}

type Handler = (res: HttpResponse, req: HttpRequest) => void

export interface Pipeline {
  /** Paths whose GETs have a handler of their own: the engine has found it, nothing is looked up again. */
  gets: ReadonlyMap<string, Handler>
  /** Takes every other request. */
  handle: Handler
  /** From here on every answer tells its client that the connection ends. */
  drain(): void
  /** Requests so far. */
  requests(): number
  /** Requests being answered. */
  inFlight(): number
  /** Memory charged for request bodies. */
  bodyBytes(): number
}

const METHODS: Readonly<Record<string, Method | 'HEAD' | 'OPTIONS'>> = {
  get: 'GET',
  head: 'HEAD',
  post: 'POST',
  delete: 'DELETE',
  options: 'OPTIONS',
}

export function createPipeline(deps: PipelineDeps): Pipeline {
  const table = new RouteTable(deps.routes)
  const responseCache = new ResponseCache(deps.reuseMs)
  const compressionCache = new CompressionCache()
  const ids = new RequestIds()
  const head = new RequestHead()
  const bodies = new BodyReader()
  const exchanges = new Exchanges()
  let isDraining = false
  let requests = 0

  /** Passes the doors of a read: admission, key, limit. @returns the limit's headers. */
  function passRead(route: Route, context: Pick<Context, 'caller' | 'ip'>, key: string, rows = 0) {
    deps.admit(route)
    if (key !== '') context.caller = deps.authenticate(key)
    return deps.countRead(context.caller, context.ip, rows)
  }

  /** Counts rows, or asks for them: a refusal bears the headers of that limit in the place of those of the reads. */
  function ofRows(context: Context, act: () => void): void {
    try {
      act()
    } catch (error) {
      context.limits = NO_LIMITS
      throw error
    }
  }

  /** Gives an answer that was made a moment ago. False when there is none, or a door is shut: then the ordinary way is
   *  gone, which also says why. */
  function tryCache(res: HttpResponse, path: string, cacheKey: string, startedAtMs: number): boolean {
    const made = responseCache.find(path, cacheKey, startedAtMs)
    if (made === undefined) return false
    const reader = { caller: null, ip: () => clientAddress(res, head.forwardedFor, deps.trustedProxies) }
    let limits: Record<string, string>
    try {
      limits = passRead(made.route, reader, keyOf(head.credentials), made.rows)
    } catch {
      return false
    }
    const sending = sendCached(res, made, ids, head.requestId, limits)
    if (sending !== null) {
      const exchange = new Exchange(sending, exchanges)
      sending.onSent = () => exchange.finish()
      exchange.wait()
    }
    deps.observe(made.route.path, 200, (performance.now() - startedAtMs) / 1_000)
    return true
  }

  /** Key, admission, limit: what the headers alone decide, in the contract's order, after method, content type and size
   *  and before any of a body is read. Throws to refuse. */
  function enter(route: Route, context: Context): void {
    const key = keyOf(context.headers.authorization)
    if (route.access === 'read') {
      context.limits = passRead(route, context, key)
      return
    }
    deps.admit(route)
    if (route.access === 'feed' || route.access === 'admin') deps.checkOperator(route.access, key)
    if (route.access === 'researcher') context.caller = deps.admitResearcher(key)
    if (route.access === 'agent') context.caller = deps.authenticate(key)
    if (route.access === 'open' && key !== '') deps.checkAnyKey(key)
    route.enter?.(context)
  }

  /**
   * The answer as the client can take it: compressed when it asked for that and it pays. An answer that is there at once
   * is given at once: a turn of promises costs more than a page.
   */
  function run(route: Route, context: Context): HttpAnswer | Promise<HttpAnswer> {
    const answer = route.handle(context)
    const encode = (made: HttpAnswer) => {
      const { rows } = made
      if (rows !== undefined) ofRows(context, () => deps.countRows(context.caller, context.ip, rows))
      if (made.stream !== undefined) return made
      const coding = codingOf(context.headers.acceptEncoding)
      const answer = conditional(made, context, !isOpen(route))
      return compressionCache.encoded(answer, coding, coding === null ? null : formOf(route, context, answer))
    }
    return answer instanceof Promise ? answer.then(encode) : encode(answer)
  }

  /** The route of a request, and what it may know of it. @throws ServiceError 404, 405, 400. */
  function find(res: HttpResponse, methodName: string, path: string, query: string, reply: Reply) {
    const method = METHODS[methodName]
    const found = table.find(path)
    if (found === null) throw new ServiceError('not_found', `There is nothing at ${path}.`)
    if (method === 'OPTIONS') return preflight(allowedMethods(found.methods))
    const route = found.methods.get(method === 'HEAD' ? 'GET' : (method as Method))
    if (route === undefined) throw notAllowed(methodName, path, allowedMethods(found.methods))
    const { forwardedFor } = head
    let address: string | undefined
    const ip = () => {
      address ??= clientAddress(res, forwardedFor, deps.trustedProxies)
      return address
    }
    const onGone = (act: () => void) => {
      reply.onClosed = act
    }
    const admitRows = () => ofRows(context, () => deps.admitRows(context.caller, ip))
    const calls = { ip, onGone, admitRows }
    const context: Context = contextOf(head, query, route, found.id, path, reply.requestId, calls)
    return { route, context }
  }

  /** Reads a body once its headers have passed every door. */
  function readBody(
    exchange: Exchange,
    route: Route,
    context: Context,
    done: (read: Buffer | ServiceError) => void,
  ): void {
    checkBodyType(route, context.headers.contentType)
    const { bodyBytesMax: bytesMax = BODY_BYTES_MAX, bodyMsMax: msMax = deps.bodyMsMax, access } = route
    const { announcedBytes } = head
    if (announcedBytes > bytesMax) throw tooLarge(bytesMax)
    enter(route, context)
    const isOperator = access === 'feed' || access === 'admin'
    const owner = isOperator ? null : readerOf(context.caller, context.ip)
    exchange.wait(bodies.read(exchange.reply.res, { owner, bytesMax, announcedBytes, msMax }, done))
  }

  function handleUncached(
    res: HttpResponse,
    methodName: string,
    path: string,
    query: string,
    cacheKey: string | null,
    startedAtMs: number,
  ): void {
    const reply = new Reply(res, ids.of(head.requestId), methodName === 'head')
    const exchange = new Exchange(reply, exchanges)
    const { writes } = responseCache
    let route: Route | undefined
    let context: Context | undefined
    const answer = (made: HttpAnswer) => {
      if (route !== undefined && isWrite(route) && made.status < 300) {
        responseCache.writeAnswered(route.changes ?? null)
      }
      if (route !== undefined && cacheKey !== null && isReusable(made)) {
        responseCache.keep(
          path,
          cacheKey,
          { route, ...headsOf(made, ids), body: made.body, rows: made.rows ?? 0 },
          startedAtMs,
          writes,
        )
      }
      let isSent = false
      reply.onSent = () => {
        isSent = true
        exchange.finish()
      }
      send(reply, isDraining ? lastOf(made) : made, context?.limits ?? NO_LIMITS)
      if (!isSent) exchange.wait()
      deps.observe(route?.path ?? 'none', made.status, (performance.now() - startedAtMs) / 1_000)
    }
    const fail = (error: unknown) => {
      if (toServiceError(error) === null) deps.onFault(error, reply.requestId)
      answer(problem(error, path, reply.requestId))
    }
    const proceed = (chosen: Route, asked: Context) => {
      exchange.run()
      try {
        const made = run(chosen, asked)
        if (!(made instanceof Promise)) return answer(made)
        exchange.wait()
        // Whoever asks to be told when the client goes wants that sooner than its next request.
        if (reply.onClosed === undefined) reply.pause()
        made.then(answer, fail).catch((error) => deps.onFault(error, reply.requestId))
      } catch (error) {
        fail(error)
      }
    }
    try {
      const found = find(res, methodName, path, query, reply)
      if (!('route' in found)) return void answer(found)
      const { route: chosen, context: asked } = found
      route = chosen
      context = asked
      if (chosen.method === 'POST') {
        readBody(exchange, chosen, asked, (read) => {
          if (read instanceof ServiceError) return fail(read)
          asked.body = read
          exchange.defer(() => proceed(chosen, asked))
        })
        return
      }
      enter(chosen, asked)
      if (chosen.method === 'GET') return void proceed(chosen, asked)
      exchange.wait()
      exchange.defer(() => proceed(chosen, asked))
    } catch (error) {
      if (answersBeforeBody(head)) return void fail(error)
      exchange.wait()
      discardBody(res, () => fail(error))
    }
  }

  /** A request whose end, or host, can be read in two ways: answered once the engine is through with its packet, so that
   *  nothing that follows in it is taken for another request; then the connection ends. */
  function refuseAmbiguous(res: HttpResponse, path: string): void {
    const reply = new Reply(res, ids.of(head.requestId))
    const exchange = new Exchange(reply, exchanges)
    const fault = invalidParameter(head.ambiguous, 'may be read in two ways')
    reply.closes = true
    exchange.wait()
    exchange.defer(() => {
      send(reply, problem(fault, path, reply.requestId))
      exchange.finish()
      deps.observe('none', fault.status, 0)
    })
  }

  function take(res: HttpResponse, req: HttpRequest, method: string, path: string): void {
    const startedAtMs = performance.now()
    requests++
    const query = req.getQuery() ?? ''
    if (head.read(req).ambiguous !== '') return void refuseAmbiguous(res, path)
    const cacheKey = responseCache.isOn && method === 'get' ? cacheKeyOf(head, query) : null
    if (cacheKey !== null && tryCache(res, path, cacheKey, startedAtMs)) return
    handleUncached(res, method, path, query, cacheKey, startedAtMs)
  }

  const gets = table
    .literalPaths('GET')
    .map((path): [string, Handler] => [path, (res, req) => take(res, req, 'get', path)])
  return {
    gets: new Map(gets),
    handle: (res, req) => take(res, req, req.getMethod(), req.getUrl()),
    drain: () => {
      isDraining = true
    },
    requests: () => requests,
    inFlight: () => exchanges.open,
    bodyBytes: () => bodies.heldBytes,
  }
}

/** Whether a refusal can be sent while its body is still coming: not where the engine then closes the connection. */
const answersBeforeBody = ({ hasBody, closes, announcedBytes }: RequestHead): boolean =>
  !hasBody || !closes || announcedBytes > DISCARDED_BYTES_MAX

/** An answer after which its client is to leave. The client closes: a server that does so first resets what crosses. */
const lastOf = (answer: HttpAnswer): HttpAnswer => ({
  ...answer,
  headers: { ...answer.headers, Connection: 'close' },
})

const isOpen = ({ access }: Route): boolean => access === 'open' || access === 'read'

/** What names the answer for all who may ask for it; null where it is for one. */
const formOf = (route: Route, { path, query }: Context, { contentType }: HttpAnswer): string | null =>
  route.method === 'GET' && isOpen(route)
    ? `${path}?${route.access === 'open' ? '' : query} ${contentType}`
    : null

const notAllowed = (method: string, path: string, allowed: string[]) =>
  new ServiceError(
    'method_not_allowed',
    `${method.toUpperCase()} is not allowed at ${path}.`,
    { allowed },
    { Allow: allowed.join(', ') },
  )

const preflight = (allowed: readonly string[]): HttpAnswer => ({
  status: 204,
  body: {},
  headers: {
    Allow: allowed.join(', '),
    'Access-Control-Allow-Methods': allowed.join(', '),
    'Access-Control-Allow-Headers':
      'Authorization, X-API-Key, Content-Type, Accept, If-None-Match, Cache-Control, Idempotency-Key, X-Request-Id',
    'Access-Control-Max-Age': '86400',
  },
})
