// A local Birdeye that behaves as the real one: its envelope, the two required headers, and 429 beyond the rate limit.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SecurityFeed } from '../../../src/ingest/birdeye/security-feed.ts'
import type { FeedStatus } from '../../../src/ingest/types.ts'

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

export const SECURITY = {
  freezeAuthority: null,
  ownerAddress: 'someone',
  transferFeeEnable: null,
  isToken2022: false,
  mutableMetadata: true,
  top10HolderPercent: 0.254,
}
export const OVERVIEW = { uniqueWallet24h: 1_234, uniqueWallet1h: 0, vBuy24hUSD: 10.5, vSell24hUSD: 0 }
export const SECURITY_PATH = '/defi/token_security'
export const OVERVIEW_PATH = '/defi/token_overview'
export const PRICE_PATH = '/defi/price'

export const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Answer =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
export const success = (data: unknown): Answer => json({ success: true, data })

export class BirdeyeServer {
  /** In order of arrival. */
  readonly requests: IncomingMessage[] = []
  readonly arrivedAtMs: number[] = []
  /** Requests open now, and the most at once. */
  readonly open = { now: 0, most: 0 }
  /** Answers by path. */
  answers: Record<string, Answer> = {
    [SECURITY_PATH]: success(SECURITY),
    [OVERVIEW_PATH]: success(OVERVIEW),
    [PRICE_PATH]: success({ value: 151.25 }),
  }
  /** The number of requests answered in any second. The rest get 429. */
  planPerSecond = Number.POSITIVE_INFINITY
  readonly url: string
  readonly port: number
  readonly #http: Server
  readonly #answeredAtMs: number[] = []

  private constructor(http: Server) {
    this.#http = http
    this.port = (http.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}`
    http.on('request', (request, response) => this.#take(request, response))
  }

  /** @param port of a server that was closed, to listen there again. */
  static async start(port = 0): Promise<BirdeyeServer> {
    const http = createServer()
    http.listen(port, '127.0.0.1')
    await once(http, 'listening')
    return new BirdeyeServer(http)
  }

  /** The requested mints of a path, with repeats. */
  mintsAt(path: string): string[] {
    return this.requests.flatMap(({ url }) => {
      const { pathname, searchParams } = new URL(url as string, 'http://host')
      return pathname === path ? [searchParams.get('address') as string] : []
    })
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections()
    if (!this.#http.listening) return
    this.#http.close()
    await once(this.#http, 'close')
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const nowMs = performance.now()
    this.requests.push(request)
    this.arrivedAtMs.push(nowMs)
    this.open.most = Math.max(this.open.most, ++this.open.now)
    response.on('close', () => this.open.now--)
    this.#answerTo(request, nowMs)(request, response)
  }

  #answerTo({ url, headers }: IncomingMessage, nowMs: number): Answer {
    if (!headers['x-api-key'] || headers['x-chain'] !== 'solana')
      return json({ success: false, message: 'Unauthorized' }, 401)
    const inLastSecond = this.#answeredAtMs.filter((atMs) => atMs > nowMs - 1_000).length
    if (inLastSecond >= this.planPerSecond)
      return json({ success: false, message: 'Too many requests' }, 429, { 'retry-after': '0.05' })
    this.#answeredAtMs.push(nowMs)
    const { pathname } = new URL(url as string, 'http://host')
    return this.answers[pathname] ?? json({ success: false, message: 'Not found' }, 404)
  }
}

/** Has the feed ask for tokens, and resolves when it asks for nothing any more. */
export async function askFor(feed: SecurityFeed, ...mints: readonly string[]): Promise<void> {
  for (const mint of mints) feed.request(mint)
  const isIdle = ({ asking, waiting }: FeedStatus) => asking === 0 && waiting === 0
  while (!isIdle(feed.describe())) await sleep(1)
}
