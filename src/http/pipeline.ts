// Answers each request once: from the response cache if it can, otherwise through its route (uncached-request.ts).
import { performance } from 'node:perf_hooks'
import type { ErrorCode } from '../schema/errors.ts'
import { type AccessChecks, authorize, type Reader } from './access.ts'
import type { EngineRequest, EngineResponse, Handler } from './engine.ts'
import { type HttpNode, withLag } from './node.ts'
import { type BelievedSenders, clientAddress } from './request/addresses.ts'
import { BodyReader } from './request/body.ts'
import { Exchange, Exchanges } from './request/exchange.ts'
import { invalidParameter } from './request/parameters.ts'
import { RequestHead } from './request/request-head.ts'
import { RequestIds } from './request/request-ids.ts'
import { CompressionCache } from './response/compress.ts'
import { problemAnswer, Reply, send, sendCached } from './response/reply.ts'
import { type CachedResponse, ResponseCache } from './response/response-cache.ts'
import type { Route } from './route.ts'
import { RouteTable } from './route-table.ts'
import { UncachedRequest } from './uncached-request.ts'

export interface PipelineDeps extends AccessChecks, BelievedSenders {
  node: HttpNode
  routes: readonly Route[]
  /** Counts a read, and its rows if they are known. @returns the headers that describe the limit, or throws 429. */
  countRead(reader: Reader, ip: () => string, rows?: number): Record<string, string>
  /** Counts the rows of a read that is counted already, or throws 429. */
  countRows(reader: Reader, ip: () => string, rows: number): void
  /** Throws 429 if the reader has used up its rows. */
  admitRows(reader: Reader, ip: () => string): void
  /** Why the market is not exactly the one that it stands for; null: it is. */
  approximate: string | null
  /** How old a cached response may be, ms; 0 switches the response cache off. */
  reuseMs: number
  /** How long a body may take to arrive, for routes that set no time of their own. */
  bodyMsMax: number
  observe(route: string, status: number, seconds: number): void
  observeError(code: ErrorCode): void
  /** Logs an error that no code expected. */
  onFault(error: unknown, requestId: string): void
}

/** Everything that the requests of a server share. */
export interface PipelineParts {
  readonly deps: PipelineDeps
  readonly routes: RouteTable
  /** The headers of the request at hand; the next request overwrites them. */
  readonly head: RequestHead
  readonly ids: RequestIds
  readonly bodies: BodyReader
  readonly exchanges: Exchanges
  readonly responseCache: ResponseCache
  readonly compressionCache: CompressionCache
  /** Whether the server is shutting down: then each answer asks its client to close the connection. */
  isDraining: boolean
}

export class Pipeline {
  readonly #parts: PipelineParts
  #requestCount = 0

  constructor(deps: PipelineDeps) {
    this.#parts = {
      deps,
      routes: new RouteTable(deps.routes),
      head: new RequestHead(),
      ids: new RequestIds(),
      bodies: new BodyReader(),
      exchanges: new Exchanges(),
      responseCache: new ResponseCache(deps.reuseMs),
      compressionCache: new CompressionCache(),
      isDraining: false,
    }
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
    const { head, responseCache } = this.#parts
    const query = req.getQuery() ?? ''
    if (head.read(req).ambiguous !== '') {
      this.#refuseAmbiguous(res, path)
      return
    }
    const cacheKey = responseCache.isOn && method === 'get' ? head.cacheKey(query) : null
    if (cacheKey !== null) {
      const cached = responseCache.find(path, cacheKey, startedAtMs)
      if (cached !== undefined && this.#sendCached(res, cached, startedAtMs)) return
    }
    new UncachedRequest(this.#parts, res, method, path, cacheKey, startedAtMs, query).start()
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
      const ip = () => clientAddress(res, head.sender, deps)
      limits = deps.countRead(reader, ip, cached.rows)
    } catch {
      return false
    }
    const unfinished = sendCached(res, cached, ids, head.requestId, withLag(deps.node, cached.route, limits))
    if (unfinished !== null) {
      const exchange = new Exchange(unfinished, exchanges)
      unfinished.onSent = () => exchange.finish()
      exchange.wait()
    }
    deps.observe(cached.route.path, 200, (performance.now() - startedAtMs) / 1_000)
    return true
  }

  /**
   * Refuses a request whose end or host can be read in two ways (request smuggling). It is answered after the engine has
   * read the whole packet, so that nothing behind it is taken for another request; then the connection is closed.
   */
  #refuseAmbiguous(res: EngineResponse, path: string): void {
    const { deps, head, ids, exchanges } = this.#parts
    const reply = new Reply(res, ids.idFor(head.requestId))
    const exchange = new Exchange(reply, exchanges)
    const error = invalidParameter(head.ambiguous, 'may be read in two ways')
    reply.closes = true
    deps.observeError(error.code)
    exchange.wait()
    exchange.defer(() => {
      send(reply, problemAnswer(error, path, reply.requestId))
      exchange.finish()
      deps.observe('none', error.status, 0)
    })
  }
}
