// Answers each request once: from the response cache if it can, otherwise through its route.
import { performance } from 'node:perf_hooks'
import { assert } from '../lib/assert.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { ServiceError } from '../schema/errors.ts'
import { type AccessChecks, authorize, callerOf, isLocal, type Reader } from './access.ts'
import type { Context, HttpAnswer, Notes } from './context.ts'
import type { EngineRequest, EngineResponse, Handler } from './engine.ts'
import { BODY_BYTES_MAX, DISCARDED_BYTES_MAX } from './limits.ts'
import { type HttpNode, notForThisNode, withMarketState, withNodeName } from './node.ts'
import type { Overload } from './overload.ts'
import { clientAddress, type Sender, type TrustedProxies } from './request/addresses.ts'
import { BodyReader, discardBody, tooLarge } from './request/body.ts'
import type { ClientLimits } from './request/client-limits.ts'
import { Exchange } from './request/exchange.ts'
import { withKeyHint } from './request/key-hint.ts'
import { requestOrigin } from './request/origin.ts'
import { ambiguityOf } from './request/parameters.ts'
import { NO_LIMITS, readerOf } from './request/read-limits.ts'
import { checkBodyEncoding, checkBodyType, RequestHead, readRequest } from './request/request-head.ts'
import { RequestIds } from './request/request-ids.ts'
import { CompressionCache, preferredCoding } from './response/compress.ts'
import { conditional } from './response/etag.ts'
import { tellNotes } from './response/notes.ts'
import { encodeHead, problemAnswer, Reply, send, sendCached } from './response/reply.ts'
import { type CachedResponse, isReusable, ResponseCache } from './response/response-cache.ts'
import { toServiceError } from './response/to-service-error.ts'
import { isPublic, isRead, isWrite, type Route } from './route.ts'
import { RouteTable } from './route-table.ts'

export interface PipelineDeps extends AccessChecks {
  node: HttpNode
  overload: Pick<Overload, 'refusal'>
  routes: readonly Route[]
  limits: Pick<ClientLimits, 'countRead' | 'countRows' | 'admitRows'>
  metrics: Pick<Metrics, 'observeRequest' | 'observeError'>
  trustedProxies: TrustedProxies
  /** Why the market is not exactly the one that it stands for; null: it is. */
  approximate: string | null
  /** What a client is told that lacks a key (request/key-hint.ts). */
  keyHint: string
  /** How old a cached response may be that is not the newest any more, ms. */
  reuseMs: number
  /** How long a body may take to arrive, for routes that set no time of their own. */
  bodyMsMax: number
  /** Told of each request that is refused. */
  onRefused?(refusal: Refusal): void
  /** Logs an error that no code expected. */
  onFault(error: unknown, requestId: string): void
}

/** A request that was refused. */
export interface Refusal {
  error: ServiceError
  /** Of the route; null: there is none. */
  path: string | null
  /** Whose key was sent; null: none, or one of no agent. */
  agentId: string | null
  /** Of the client, where it was asked for. */
  address: string | null
  requestId: string
}

/** Everything that the requests of a server share. */
const partsOf = (deps: PipelineDeps) => ({
  deps,
  routes: new RouteTable(deps.routes),
  /** The headers of the request at hand; the next request overwrites them. */
  head: new RequestHead(),
  ids: new RequestIds(),
  bodies: new BodyReader(),
  /** How many are being answered. */
  exchanges: { open: 0 },
  responseCache: new ResponseCache(deps.reuseMs),
  compressionCache: new CompressionCache(),
  /** Whether the server is shutting down: then each answer asks its client to close the connection. */
  isDraining: false,
})
type PipelineParts = ReturnType<typeof partsOf>

export class Pipeline {
  readonly #parts: PipelineParts
  #requestCount = 0

  constructor(deps: PipelineDeps) {
    this.#parts = partsOf(deps)
  }

  /** A handler for each literal path with a GET, so that the engine's router finds it without a second look-up here. */
  getHandlers(): [string, Handler][] {
    return this.#parts.routes.getPaths.map((path) => [
      path,
      (res, req) => this.#answer(res, req, 'get', path),
    ])
  }

  /** Handles every other request. */
  readonly handle: Handler = (res, req) => this.#answer(res, req, req.getMethod(), req.getUrl())

  /** From now on every answer asks its client to close the connection. */
  drain(): void {
    this.#parts.isDraining = true
  }

  /** A write of this route has been carried out, and is acknowledged next. */
  noteWritten(route: Route): void {
    this.#parts.responseCache.invalidate(route, performance.now())
  }

  /** Requests received so far. */
  get requestCount(): number {
    return this.#requestCount
  }

  /** Requests that are being answered. */
  get inFlight(): number {
    return this.#parts.exchanges.open
  }

  /** Memory that request bodies take. */
  get bodyBytes(): number {
    return this.#parts.bodies.heldBytes
  }

  #answer(res: EngineResponse, req: EngineRequest, method: string, path: string): void {
    const startedAtMs = performance.now()
    this.#requestCount++
    const { deps, head, responseCache } = this.#parts
    const query = req.getQuery() ?? ''
    if (head.read(req).ambiguous !== '') {
      this.#refuseAmbiguous(res, path)
      return
    }
    const mayCache = method === 'get' && !isForOther(this.#parts)
    const cacheKey = mayCache ? head.cacheKey(query) : null
    let refusal: ServiceError | null = null
    if (cacheKey !== null) {
      const cached = responseCache.find(path, cacheKey, startedAtMs)
      if (cached !== undefined) refusal = deps.overload.refusal(cached.route)
      if (cached !== undefined && refusal === null && this.#sendCached(res, cached, startedAtMs)) return
    }
    new UncachedRequest(this.#parts, res, method, path, cacheKey, startedAtMs, query).start(refusal)
  }

  /**
   * Sends a cached response after the same checks that its route would make.
   * @returns false if a check refuses: the uncached way then makes the same checks again and sends the error.
   */
  #sendCached(res: EngineResponse, cached: CachedResponse, startedAtMs: number): boolean {
    const { deps, head, ids, exchanges } = this.#parts
    let limits: Record<string, string>
    try {
      const reader = authorize(deps, cached.route, head.key)
      const sender = { forwardedFor: head.sent.forwardedFor, isRelayed: head.sent.relay !== '' }
      const ip = () => clientAddress(res, sender, deps.trustedProxies)
      limits = deps.limits.countRead(reader, ip, cached.rows)
    } catch {
      return false
    }
    const unfinished = sendCached(
      res,
      cached,
      ids,
      head.sent.requestId,
      withNodeName(deps.node, head.sent.relay !== '', withMarketState(deps.node, cached.route, limits)),
    )
    if (unfinished !== null) {
      const exchange = new Exchange(unfinished, exchanges)
      unfinished.onSent = () => exchange.finish()
      exchange.wait()
    }
    deps.metrics.observeRequest(cached.route.path, 200, (performance.now() - startedAtMs) / 1_000)
    return true
  }

  /**
   * Refuses a request whose end or host can be read in two ways (request smuggling). It is answered after the engine has
   * read the whole packet, so that nothing behind it is taken for another request; then the connection is closed.
   */
  #refuseAmbiguous(res: EngineResponse, path: string): void {
    const { deps, head, ids, exchanges } = this.#parts
    const reply = new Reply(res, ids.idFor(head.sent.requestId))
    const exchange = new Exchange(reply, exchanges)
    const error = ambiguityOf(head.ambiguous)
    reply.closes = true
    deps.metrics.observeError(error.code)
    exchange.wait()
    exchange.defer(() => {
      send(reply, problemAnswer(error, path, reply.requestId), withMarketState(deps.node, null, {}))
      exchange.finish()
      deps.metrics.observeRequest('none', error.status, 0)
    })
  }
}

/** Whether another node has passed the request at hand on, and not to this one. */
const isForOther = ({ deps, head }: PipelineParts): boolean =>
  head.sent.relay !== '' && deps.node.gate?.admits(head.sent.relay) !== true

/** One request on its way through its route: route, checks, body, handler, compression, sending. */
class UncachedRequest {
  readonly #parts: PipelineParts
  readonly #res: EngineResponse
  readonly #method: string
  readonly #path: string
  readonly #query: string
  /** The key under which the answer may be cached, or null if it must not be. */
  readonly #cacheKey: string | null
  readonly #startedAtMs: number
  /** Writes that were answered before this request began: a later one makes its answer unfit for the cache. */
  readonly #writesBefore: number
  readonly #sender: Sender
  readonly #isForOther: boolean
  readonly #reply: Reply
  readonly #exchange: Exchange
  #address: string | null = null
  #route: Route | null = null
  #isFromHere = false
  #reader: Reader = null
  #notes: Notes = {}
  /** The headers that describe the limit which this request counts against. */
  #limits: Record<string, string> = NO_LIMITS

  /** @param method in lower case. */
  constructor(
    parts: PipelineParts,
    res: EngineResponse,
    method: string,
    path: string,
    cacheKey: string | null,
    startedAtMs: number,
    query: string,
  ) {
    this.#parts = parts
    this.#res = res
    this.#method = method
    this.#path = path
    this.#query = query
    this.#cacheKey = cacheKey
    this.#startedAtMs = startedAtMs
    this.#writesBefore = parts.responseCache.writes
    const { forwardedFor, relay, requestId } = parts.head.sent
    this.#isForOther = isForOther(parts)
    this.#sender = { forwardedFor, isRelayed: relay !== '' && !this.#isForOther }
    this.#reply = new Reply(res, parts.ids.idFor(requestId), method === 'head')
    this.#exchange = new Exchange(this.#reply, parts.exchanges)
  }

  /**
   * Answers the request, at once or later. Must be called inside the engine's handler, while the head is this request's.
   * @param refusal of an overloaded server, where it was asked already and refuses; null: it is asked here
   */
  start(refusal: ServiceError | null): void {
    try {
      if (this.#isForOther) throw notForThisNode()
      const match = this.#parts.routes.match(this.#method, this.#path)
      if ('preflight' in match) {
        this.#answer(match.preflight)
        return
      }
      const { route, id } = match
      this.#route = route
      const refused = refusal ?? this.#parts.deps.overload.refusal(route)
      if (refused !== null) throw refused
      const context = this.#createContext(route, id)
      this.#notes = context.notes
      if (route.method === 'POST') {
        this.#readBody(route, context)
        return
      }
      this.#admit(route, context)
      if (route.method === 'GET') {
        this.#run(route, context)
        return
      }
      this.#exchange.wait()
      this.#exchange.defer(() => this.#run(route, context))
    } catch (error) {
      this.#refuse(error)
    }
  }

  #createContext(route: Route, id: string): Context {
    const { deps, head } = this.#parts
    const ip = () => this.#ip()
    // The body may end after the client has disconnected; then the engine no longer knows the address.
    if (route.method !== 'GET' && (isPublic(route) || route.access === 'forwarded')) this.#ip()
    // By then the head may be that of another request, too.
    this.#isFromHere = route.opensLocally === true && isLocal(head)
    const { host, forwardedProto } = head.sent
    const market = { approximate: deps.approximate, warmingUp: deps.health.warmingUp() }
    return {
      ...readRequest(head, this.#query, route, id, this.#path, market),
      requestId: this.#reply.requestId,
      ip,
      client: () => readerOf(this.#reader, ip),
      isRelayed: () => this.#sender.isRelayed,
      isLocal: () => this.#isFromHere,
      origin: () => requestOrigin(this.#res, host, forwardedProto, deps.trustedProxies),
      admitRows: () => this.#limitRows(() => deps.limits.admitRows(this.#reader, ip)),
      onGone: (onGone) => {
        this.#reply.onClosed = onGone
      },
    }
  }

  #ip(): string {
    this.#address ??= clientAddress(this.#res, this.#sender, this.#parts.deps.trustedProxies)
    return this.#address
  }

  /** Runs a check of the reader's rows. If it refuses, the answer shows the headers of that limit, not of the reads. */
  #limitRows(check: () => void): void {
    try {
      check()
    } catch (error) {
      this.#limits = NO_LIMITS
      throw error
    }
  }

  /** Makes the checks that need the headers alone, after those of method, content type and size. Throws to refuse. */
  #admit(route: Route, context: Context): void {
    const { deps, head } = this.#parts
    this.#reader = authorize(deps, route, head.key, this.#isFromHere)
    if (isRead(route)) this.#limits = deps.limits.countRead(this.#reader, context.ip)
    else if (route.countLimit !== undefined) this.#limits = route.countLimit(context)
  }

  /** Checks the headers of a request with a body, reads the body, then runs the route. */
  #readBody(route: Route, context: Context): void {
    const { deps, head, bodies } = this.#parts
    checkBodyType(route, context.headers.contentType)
    checkBodyEncoding(head.sent.contentEncoding)
    head.checkIdempotencyKey()
    const { bodyBytesMax: bytesMax = BODY_BYTES_MAX, bodyMsMax: msMax = deps.bodyMsMax, access } = route
    const { announcedBytes } = head
    if (announcedBytes > bytesMax) throw tooLarge(bytesMax)
    this.#admit(route, context)
    const owner = access === 'feed' || access === 'admin' ? null : readerOf(this.#reader, context.ip)
    const body = bodies.read(this.#res, { owner, bytesMax, announcedBytes, msMax }, (read) => {
      if (read instanceof ServiceError) {
        this.#fail(read)
        return
      }
      context.body = read
      this.#exchange.defer(() => this.#run(route, context), route.watchesClient !== true)
    })
    this.#exchange.wait(body)
  }

  /** Runs the route. An answer that is there at once is sent at once: a turn of promises costs more than a page. */
  #run(route: Route, context: Context): void {
    this.#exchange.run()
    try {
      const made = this.#handle(route, context)
      const answer =
        made instanceof Promise
          ? made.then((later) => this.#encode(later, route, context))
          : this.#encode(made, route, context)
      if (!(answer instanceof Promise)) {
        this.#answer(answer)
        return
      }
      this.#exchange.wait()
      // A handler that asks to be told of a disconnect needs the socket to be read.
      if (this.#reply.onClosed === undefined) this.#reply.pause()
      answer
        .then(
          (encoded) => this.#answer(encoded),
          (error) => this.#fail(error),
        )
        .catch((error) => this.#parts.deps.onFault(error, this.#reply.requestId))
    } catch (error) {
      this.#fail(error)
    }
  }

  #handle(route: Route, context: Context): HttpAnswer | Promise<HttpAnswer> {
    const caller = callerOf(this.#reader)
    if (route.access === 'personal' || route.access === 'researcher')
      return route.handle(Object.assign(context, { caller }))
    if (route.access !== 'agent') return route.handle(context)
    assert(caller !== null, 'a route for agents runs only with the key of one')
    return route.handle(Object.assign(context, { caller }))
  }

  /** Counts the answer's rows, answers If-None-Match, and compresses what is worth it. */
  #encode(made: HttpAnswer, route: Route, context: Context): HttpAnswer | Promise<HttpAnswer> {
    const { deps, compressionCache } = this.#parts
    const { rows } = made
    if (made.relayed) return made
    if (rows !== undefined) this.#limitRows(() => deps.limits.countRows(this.#reader, context.ip, rows))
    const told = tellNotes(made, context.notes)
    if (told.stream !== undefined) return told
    const answer = conditional(told, context, !isPublic(route))
    const coding = preferredCoding(context.headers.acceptEncoding)
    const formKey = coding === null ? null : this.#compressionKey(route, answer)
    return compressionCache.encode(answer, coding, formKey)
  }

  /** The key under which compressed forms of the answer are shared, or null if the answer is for one client alone. */
  #compressionKey(route: Route, { contentType }: HttpAnswer): string | null {
    // No version counts how far a market is that is not whole yet.
    if (route.method !== 'GET' || !isPublic(route) || this.#notes.warming_up !== undefined) return null
    return `${this.#path}?${route.access === 'open' ? '' : this.#query} ${contentType}`
  }

  /** Invalidates or fills the response cache as the answer demands, then sends it. */
  #answer(made: HttpAnswer): void {
    const { deps, responseCache, ids, isDraining } = this.#parts
    const route = this.#route
    if (route !== null && isWrite(route) && made.status < 300)
      responseCache.invalidate(route, performance.now())
    if (route !== null && this.#cacheKey !== null && isPublic(route) && isReusable(made)) {
      const { body, rows = 0, isUnchanged, isNewest } = made
      const cached = { route, ...encodeHead(made, ids), body, rows, isUnchanged, isNewest }
      responseCache.add(this.#path, this.#cacheKey, cached, this.#startedAtMs, this.#writesBefore)
    }
    const reply = this.#reply
    let isSent = false
    reply.onSent = () => {
      isSent = true
      this.#exchange.finish()
    }
    // A relayed answer tells how far the node is behind that made it.
    const limits = made.relayed ? this.#limits : withMarketState(deps.node, route, this.#limits)
    const headers = withNodeName(deps.node, this.#sender.isRelayed, limits)
    send(reply, isDraining ? withConnectionClose(made) : made, headers)
    if (!isSent) this.#exchange.wait()
    deps.metrics.observeRequest(
      route?.path ?? 'none',
      made.status,
      (performance.now() - this.#startedAtMs) / 1_000,
    )
  }

  #fail(error: unknown): void {
    const { requestId } = this.#reply
    const { deps } = this.#parts
    const known = toServiceError(error)
    if (known === null) deps.onFault(error, requestId)
    deps.metrics.observeError(known?.code ?? 'internal')
    const route = this.#route
    if (known !== null)
      deps.onRefused?.({
        error: known,
        path: route?.path ?? null,
        requestId,
        agentId: callerOf(this.#reader)?.agent.agentId ?? null,
        address: this.#address,
      })
    const told = known && route && withKeyHint(known, route.access, this.#reader, deps.keyHint)
    const answer = problemAnswer(told ?? error, this.#path, requestId)
    // An error that no code expected may have come after the data was stored.
    if (answer.status === 500 && route !== null && isWrite(route)) answer.body.mayBeStored = true
    this.#answer(tellNotes(answer, this.#notes))
  }

  /** Answers a request whose body has not been read: at once if the engine allows it, otherwise behind the body. */
  #refuse(error: unknown): void {
    if (mayAnswerBeforeBody(this.#parts.head)) {
      this.#fail(error)
      return
    }
    this.#exchange.wait()
    discardBody(this.#res, () => this.#fail(error))
  }
}

/** False where the engine would close the connection on the client while it still sends: the answer would be lost. A body
 *  that is too large to be read and discarded is answered at once all the same. */
const mayAnswerBeforeBody = ({ hasBody, closes, announcedBytes }: RequestHead): boolean =>
  !hasBody || !closes || announcedBytes > DISCARDED_BYTES_MAX

/** Asks the client to close the connection. If the server closed it, a request already on its way would be reset. */
const withConnectionClose = (answer: HttpAnswer): HttpAnswer => ({
  ...answer,
  headers: { ...answer.headers, Connection: 'close' },
})
