// In: a path of the Birdeye API. Out: the `data` of its answer, or a fault that says why there is none. At most so many
// requests a second and at once, each with a timeout and a bound on its size. Never logs the key, never caches.
import pLimit from 'p-limit'
import { z } from 'zod'
import { assert } from '../../lib/assert.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import {
  PROVIDER_ANSWER_BYTES_MAX,
  PROVIDER_CONCURRENCY,
  PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_MS_MAX,
  PROVIDER_REQUESTS_PER_SECOND_MAX,
  PROVIDER_TIMEOUT_MS,
} from '../limits.ts'
import { wait } from '../wait.ts'

export interface BirdeyeOptions {
  apiKey: string
  baseUrl: string
  /** As the plan allows: 1 to 100. */
  requestsPerSecond: number
  timeoutMs?: number
}

export type BirdeyeAnswer =
  | { data: Record<string, unknown>; fault: null }
  | { data: null; fault: BirdeyeFault }
export type BirdeyeFault =
  | 'timeout'
  | 'unreachable'
  | 'rate_limited'
  | 'refused'
  | 'not_found'
  | 'malformed'
  | 'stopped'

const envelope = z.object({ success: z.literal(true), data: z.record(z.string(), z.unknown()) })
const failed = (fault: BirdeyeFault): BirdeyeAnswer => ({ data: null, fault })

/** The one client of a plan: all that ask share its rate. */
export class Birdeye {
  readonly requestsPerSecond: number
  private readonly options: BirdeyeOptions
  private readonly baseUrl: string
  private readonly limit = pLimit(PROVIDER_CONCURRENCY)
  private readonly intervalMs: number
  /** Monotonic: the earliest moment of the next request. */
  private nextAtMs = 0
  private latestTurn = Promise.resolve()

  constructor(options: BirdeyeOptions) {
    const { requestsPerSecond, baseUrl } = options
    const isAllowed = requestsPerSecond > 0 && requestsPerSecond <= PROVIDER_REQUESTS_PER_SECOND_MAX
    assert(isAllowed, `a plan allows up to ${PROVIDER_REQUESTS_PER_SECOND_MAX} requests a second`)
    this.options = options
    this.baseUrl = baseUrl.replace(/\/+$/, '')
    this.requestsPerSecond = requestsPerSecond
    this.intervalMs = 1_000 / requestsPerSecond
  }

  /**
   * The answer to `GET path?address=...`. Never rejects for what the world does.
   * @param signal ends the request, or its waiting for a turn.
   */
  get(path: string, address: string, signal: AbortSignal): Promise<BirdeyeAnswer> {
    return this.limit(async () => {
      await this.turn(signal)
      if (signal.aborted) return failed('stopped')
      return this.request(`${this.baseUrl}${path}?address=${encodeURIComponent(address)}`, signal)
    })
  }

  /** Whoever asked first has the next turn. */
  private turn(signal: AbortSignal): Promise<void> {
    this.latestTurn = this.latestTurn.then(() => this.pace(signal))
    return this.latestTurn
  }

  private async pace(signal: AbortSignal): Promise<void> {
    for (;;) {
      const nowMs = performance.now()
      if (nowMs >= this.nextAtMs) {
        // A timer that rings late must not slow the pace down.
        const lateMs = nowMs - this.nextAtMs
        this.nextAtMs = nowMs + this.intervalMs - (lateMs < this.intervalMs ? lateMs : 0)
        return
      }
      if (signal.aborted) return
      await wait(this.nextAtMs - nowMs, signal)
    }
  }

  private async request(url: string, signal: AbortSignal): Promise<BirdeyeAnswer> {
    const timeout = AbortSignal.timeout(this.options.timeoutMs ?? PROVIDER_TIMEOUT_MS)
    try {
      const response = await fetch(url, {
        headers: { 'X-API-KEY': this.options.apiKey, 'x-chain': 'solana', accept: 'application/json' },
        signal: AbortSignal.any([timeout, signal]),
        redirect: 'manual',
      })
      const body = await boundedText(response)
      return body === null ? failed('malformed') : this.read(response, body)
    } catch {
      return failed(signal.aborted ? 'stopped' : timeout.aborted ? 'timeout' : 'unreachable')
    }
  }

  private read(response: Response, body: string): BirdeyeAnswer {
    if (response.status === 429) {
      this.pause(response.headers.get('retry-after'))
      return failed('rate_limited')
    }
    if (response.status === 404) return failed('not_found')
    if (!response.ok) return failed('refused')
    const data = dataOf(body)
    return data === null ? failed('malformed') : { data, fault: null }
  }

  private pause(retryAfter: string | null): void {
    const saidMs = Number(retryAfter ?? Number.NaN) * 1_000
    const pauseMs = saidMs > 0 ? Math.min(saidMs, PROVIDER_PAUSE_MS_MAX) : PROVIDER_PAUSE_MS
    this.nextAtMs = Math.max(this.nextAtMs, performance.now() + pauseMs)
  }
}

/** The body as text, or null where it is larger than an answer may be. */
async function boundedText(response: Response): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > PROVIDER_ANSWER_BYTES_MAX) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** What an answer's envelope holds; null where it is no envelope of this provider. */
export function dataOf(text: string): Record<string, unknown> | null {
  try {
    return safeParse(envelope, JSON.parse(text)).data?.data ?? null
  } catch {
    return null
  }
}
