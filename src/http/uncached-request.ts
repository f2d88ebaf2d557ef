// One request on its way through its route: route, checks, body, handler, compression, sending.
import { assert } from '../lib/assert.ts'
import { ServiceError } from '../schema/errors.ts'
import { authorize, callerOf, type Reader } from './access.ts'
import type { Context, HttpAnswer, Notes } from './context.ts'
import type { EngineResponse } from './engine.ts'
import { BODY_BYTES_MAX, DISCARDED_BYTES_MAX } from './limits.ts'
import { withLag } from './node.ts'
import type { PipelineParts } from './pipeline.ts'
import { clientAddress, type Sender } from './request/addresses.ts'
import { discardBody, tooLarge } from './request/body.ts'
import { Exchange } from './request/exchange.ts'
import { requestOrigin } from './request/origin.ts'
import { NO_LIMITS, readerOf } from './request/read-limits.ts'
import { checkBodyEncoding, checkBodyType, createContext, type RequestHead } from './request/request-head.ts'
import { preferredCoding } from './response/compress.ts'
import { conditional } from './response/etag.ts'
import { tellNotes } from './response/notes.ts'
import { encodeHead, problemAnswer, Reply, send } from './response/reply.ts'
import { isReusable } from './response/response-cache.ts'
import { toServiceError } from './response/to-service-error.ts'
import { isPublic, isRead, isWrite, type Route } from './route.ts'

export class UncachedRequest {
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
  readonly #reply: Reply
  readonly #exchange: Exchange
  #address: string | null = null
  #route: Route | null = null
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
    this.#sender = parts.head.sender
    this.#reply = new Reply(res, parts.ids.idFor(parts.head.requestId), method === 'head')
    this.#exchange = new Exchange(this.#reply, parts.exchanges)
  }

  /** Answers the request, at once or later. Must be called inside the engine's handler, while the head is this request's. */
  start(): void {
    try {
      const match = this.#parts.routes.match(this.#method, this.#path)
      if ('preflight' in match) {
        this.#answer(match.preflight)
        return
      }
      const { route, id } = match
      this.#route = route
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
    return createContext(head, this.#query, route, id, this.#path, this.#reply.requestId, {
      ip,
      isRelayed: () => this.#sender.relayedClient !== null,
      origin: () => requestOrigin(this.#res, head.host, head.forwardedProto, deps.trustedProxies),
      admitRows: () => this.#limitRows(() => deps.admitRows(this.#reader, ip)),
      onGone: (onGone) => {
        this.#reply.onClosed = onGone
      },
      approximate: deps.approximate,
    })
  }

  #ip(): string {
    this.#address ??= clientAddress(this.#res, this.#sender, this.#parts.deps)
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
    this.#reader = authorize(deps, route, head.key, head)
    if (isRead(route)) this.#limits = deps.countRead(this.#reader, context.ip)
    else if (route.countLimit !== undefined) this.#limits = route.countLimit(context)
  }

  /** Checks the headers of a request with a body, reads the body, then runs the route. */
  #readBody(route: Route, context: Context): void {
    const { deps, head, bodies } = this.#parts
    checkBodyType(route, context.headers.contentType)
    checkBodyEncoding(head.contentEncoding)
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
    if (rows !== undefined) this.#limitRows(() => deps.countRows(this.#reader, context.ip, rows))
    const told = tellNotes(made, context.notes)
    if (told.stream !== undefined) return told
    const answer = conditional(told, context, !isPublic(route))
    const coding = preferredCoding(context.headers.acceptEncoding)
    const formKey = coding === null ? null : this.#compressionKey(route, answer)
    return compressionCache.encode(answer, coding, formKey)
  }

  /** The key under which compressed forms of the answer are shared, or null if the answer is for one client alone. */
  #compressionKey(route: Route, { contentType }: HttpAnswer): string | null {
    if (route.method !== 'GET' || !isPublic(route)) return null
    return `${this.#path}?${route.access === 'open' ? '' : this.#query} ${contentType}`
  }

  /** Invalidates or fills the response cache as the answer demands, then sends it. */
  #answer(made: HttpAnswer): void {
    const { deps, responseCache, ids, isDraining } = this.#parts
    const route = this.#route
    if (route !== null && isWrite(route) && made.status < 300) responseCache.invalidate(route.changes ?? null)
    if (route !== null && this.#cacheKey !== null && isPublic(route) && isReusable(made)) {
      const { body, rows = 0, isUnchanged } = made
      const cached = { route, ...encodeHead(made, ids), body, rows, isUnchanged }
      responseCache.add(this.#path, this.#cacheKey, cached, this.#startedAtMs, this.#writesBefore)
    }
    const reply = this.#reply
    let isSent = false
    reply.onSent = () => {
      isSent = true
      this.#exchange.finish()
    }
    // A relayed answer tells how far the node is behind that made it.
    const isOurs = route !== null && made.relayed !== true
    const limits = isOurs ? withLag(deps.node, route, this.#limits) : this.#limits
    send(reply, isDraining ? withConnectionClose(made) : made, limits)
    if (!isSent) this.#exchange.wait()
    deps.observe(route?.path ?? 'none', made.status, (performance.now() - this.#startedAtMs) / 1_000)
  }

  #fail(error: unknown): void {
    const { requestId } = this.#reply
    const { deps } = this.#parts
    const known = toServiceError(error)
    if (known === null) deps.onFault(error, requestId)
    deps.observeError(known?.code ?? 'internal')
    const answer = problemAnswer(error, this.#path, requestId)
    // An error that no code expected may have come after the data was stored.
    if (answer.status === 500 && this.#route !== null && isWrite(this.#route)) answer.body.mayBeStored = true
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
